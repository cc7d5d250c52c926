"""Floating-point operations and memory traffic of HLO instructions.

FLOPs are counted as XLA's own HloCostAnalysis does: one for each element of an element-wise operation, two for each
multiply-add of a product, padding positions of a convolution left out. Transcendental functions count as one each.
"""

from __future__ import annotations

from math import prod

from .hlo_module import Module, Node
from .hlo_shapes import Shape

_ELEMENTWISE = frozenset(
    {
        "abs",
        "add",
        "and",
        "atan2",
        "ceil",
        "clamp",
        "compare",
        "divide",
        "floor",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "power",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "subtract",
        "xor",
        "is-finite",
        "popcnt",
        "clz",
        "cbrt",
        "cosine",
        "erf",
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "rsqrt",
        "sine",
        "sqrt",
        "tan",
        "tanh",
    }
)
_SLICED = frozenset({"dynamic-slice", "slice", "gather"})
_FORWARDED = frozenset({"bitcast", "convert", "reshape", "copy", "get-tuple-element"})


def flops(node: Node) -> float:
    """FLOPs of one instruction, without those of a fusion's or loop's body (`reduce` and the like include their small functions)."""
    opcode = node.opcode
    if opcode in _ELEMENTWISE:
        return float(node.shape.elements)
    if opcode == "convolution":
        return _convolution(node)
    if opcode == "dot":
        return _dot(node)
    if opcode in ("reduce", "all-reduce", "reduce-scatter", "all-reduce-start"):
        return _reduce(node)
    if opcode == "reduce-window":
        return float(_elements(node.shape) * max(prod(d["size"] for d in node.message["window"]["dims"]) - 1, 0))
    if opcode == "select-and-scatter":
        source = node.operands[1].shape.elements
        return float(source * prod(d["size"] for d in node.message["window"]["dims"]))
    if opcode == "scatter":
        return float(sum(o.shape.elements for o in node.operands[-(len(node.operands) // 2) :]))
    return 0.0


def _elements(shape: Shape) -> int:
    return shape.parts[0].elements if shape.parts else shape.elements


def _reduce(node: Node) -> float:
    """Each element that goes in, less those that come out, by the operations of the reducing function."""
    if node.opcode == "reduce":
        work = sum(1 for inner in node.called[0].nodes if inner.opcode in _ELEMENTWISE) if node.called else 1
        return float(max(node.operands[0].shape.elements - _elements(node.shape), 0) * work)
    return float(_elements(node.shape))


def _dot(node: Node) -> float:
    left = node.operands[0].shape.dims
    contracted: int = prod(left[i] for i in node.message["dot"]["lhs_contracting"])
    return 2.0 * node.shape.elements * contracted


def _convolution(node: Node) -> float:
    """Two for each pair of a kernel element and an input element that meet: per spatial dimension the valid pairs are counted."""
    numbers, window = node.message["convolution"], node.message["window"]
    image, kernel, result = node.operands[0].shape.dims, node.operands[1].shape.dims, node.shape.dims
    dims = window["dims"] if window else []
    pairs = 1
    for place, dim in enumerate(dims):
        pairs *= _valid_pairs(dim, image[numbers["input_spatial"][place]], result[numbers["output_spatial"][place]])
    features: int = kernel[numbers["kernel_input"]] * result[numbers["output_feature"]]
    batch: float = image[numbers["input_batch"]] / max(node.message["batch_groups"], 1)
    return 2.0 * batch * features * pairs


def _valid_pairs(dim: dict[str, int], image: int, result: int) -> int:
    """How many (output position, kernel position) pairs fall on an element of the image, along one dimension."""
    size, stride = dim["size"], max(dim["stride"], 1)
    window_dilation, base_dilation = max(dim["window_dilation"], 1), max(dim["base_dilation"], 1)
    if dim["low"] == dim["high"] == 0 and stride == base_dilation == 1:
        return size * result
    extent = (image - 1) * base_dilation + 1
    count = 0
    for k in range(size):
        start = k * window_dilation - dim["low"]
        if base_dilation == 1:
            first = max(0, -(start // stride))
            last = min(result - 1, (extent - 1 - start) // stride)
            count += max(0, last - first + 1)
        else:
            count += sum(1 for o in range(result) if 0 <= (at := o * stride + start) < extent and at % base_dilation == 0)
    return count


def traffic(module: Module, node: Node) -> dict[str, int]:
    """Bytes that a kernel reads and writes, by memory space: its distinct operands and its result, padding included.

    Of an operand that is only sliced, the slices count; an update in place counts the part that is written.
    """
    moved: dict[str, int] = {}
    inner = _parameters(node)
    for operand in dict.fromkeys(node.operands):
        places = [i for i, other in enumerate(node.operands) if other is operand]
        read = max(_bytes_read(module, node, operand, inner[i] if i < len(inner) else None) for i in places)
        for shape in _arrays(operand.shape):
            share = min(read, shape.bytes) if not operand.shape.parts else shape.bytes
            moved[shape.space] = moved.get(shape.space, 0) + share
    root = node.called[0].root if node.opcode == "fusion" else node
    for place, shape in enumerate(_results(node)):
        part = root.operands[place] if root.opcode == "tuple" and place < len(root.operands) else root
        written = _update_bytes(part)
        moved[shape.space] = moved.get(shape.space, 0) + (shape.bytes if written is None else min(written, shape.bytes))
    return moved


def _results(node: Node) -> list[Shape]:
    """The arrays an instruction writes. The result of a `-start` also names its operands and a flag, which it does not write."""
    if node.opcode.endswith("-start") and len(node.shape.parts) > 1:
        return _arrays(node.shape.parts[0 if node.opcode == "copy-start" else 1])
    return _arrays(node.shape)


def _arrays(shape: Shape) -> list[Shape]:
    if shape.parts:
        return [array for part in shape.parts for array in _arrays(part)]
    return [shape]


def _parameters(node: Node) -> list[Node]:
    """The parameters of a fusion's computation, in the order of the operands; empty for anything else."""
    if node.opcode != "fusion":
        return []
    return sorted((n for n in node.called[0].nodes if n.opcode == "parameter"), key=lambda n: int(n.message["parameter"]))


def _bytes_read(module: Module, node: Node, operand: Node, inner: Node | None) -> int:
    whole = operand.shape.bytes
    if node.opcode in ("async-start", "slice-start"):
        return min(sum(shape.bytes for shape in _results(node)), whole)
    if inner is None:
        if node.opcode in _SLICED and node.operands[0] is operand:
            return min(node.shape.bytes, whole)
        if node.opcode == "dynamic-update-slice" and node.operands[0] is operand:
            return 0
        return whole
    read = 0
    for user, source in _uses(module, inner):
        if user.opcode in _SLICED and user.operands[0] is source:
            read += user.shape.bytes
        elif user.opcode == "dynamic-update-slice" and user.operands[0] is source:
            read += 0
        else:
            return whole
    return min(read, whole)


def _uses(module: Module, node: Node) -> list[tuple[Node, Node]]:
    """Who takes a value inside a fusion, looking through instructions that only pass it on; with what each takes it from."""
    found = []
    for user in module.users[node]:
        if user.opcode in _FORWARDED and module.users[user]:
            found += _uses(module, user)
        else:
            found.append((user, node))
    return found


def _update_bytes(root: Node) -> int | None:
    """Bytes written by an update in place at the end of a fusion; None for any other root."""
    while root.opcode in _FORWARDED and root.operands:
        root = root.operands[0]
    return root.operands[1].shape.bytes if root.opcode == "dynamic-update-slice" else None
