"""Which instructions a kernel really holds, found without the log: by what is computed, not by names.

Every instruction gets a value number, made of its opcode, its place in the user's program (`op_name`) and the value numbers of its operands,
through fusions. Equal numbers before and after fusion mean the same instruction, copied or not. Instructions that compute nothing
(constants, bitcasts, copies, tuples, moves between memories, and converts, which the compiler adds and drops) are not compared.
"""

from __future__ import annotations

from tpu_lab.xla.hlo_module import Computation, Module, Node

Value = int | tuple["Value", ...]
_THROUGH = frozenset({"bitcast", "copy", "convert", "reshape", "copy-start", "copy-done", "domain", "optimization-barrier"})
_NAMELESS = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "fusion", "while", "conditional", "call"}) | _THROUGH


def counts(node: Node) -> bool:
    """Whether an instruction is compared: it computes something."""
    return node.opcode not in _NAMELESS and not node.opcode.endswith(("-start", "-done"))


def _op_name(node: Node) -> str:
    metadata = node.message["metadata"]
    return str(metadata["op_name"]) if metadata else ""


class Values:
    """Value numbers of every instruction of a module, those inside fusions included."""

    def __init__(self, module: Module, origin: Values | None = None) -> None:
        """`origin`: the numbers before fusion. Where the compiler has rewritten an operand since, an instruction is found again by opcode, place in
        the program and shape, if only one is like it."""
        self.of: dict[Node, Value] = {}
        self._known = set(origin.of.values()) if origin else set()
        self._alike: dict[tuple[object, ...], set[Value]] = {}
        for node, value in origin.of.items() if origin else ():
            self._alike.setdefault(_likeness(node), set()).add(value)
        inner = {c.index for node in module.nodes if node.opcode not in ("while", "conditional", "call") for c in node.called}
        for computation in module.computations:
            if computation.index not in inner:
                self._walk(computation, None)

    def _walk(self, computation: Computation, arguments: list[Value] | None) -> Value:
        done: set[Node] = set()
        for root in (*computation.nodes, computation.root):
            self._number(root, arguments, done)
        return self.of[computation.root]

    def _number(self, node: Node, arguments: list[Value] | None, done: set[Node]) -> None:
        stack = [node]
        while stack:
            top = stack[-1]
            waiting = [o for o in top.operands if o not in done]
            if waiting and top not in done:
                stack.extend(waiting)
                continue
            stack.pop()
            if top not in done:
                self.of[top] = self._value(top, arguments)
                done.add(top)

    def _value(self, node: Node, arguments: list[Value] | None) -> Value:
        operands = [self.of[o] for o in node.operands]
        if node.opcode == "parameter":
            number = node.message["parameter"]
            return hash(("parameter", number)) if arguments is None else arguments[number]
        if node.opcode == "fusion":
            return self._walk(node.called[0], operands)
        if node.opcode == "tuple":
            return tuple(operands)
        if node.opcode == "get-tuple-element" and isinstance(operands[0], tuple):
            return operands[0][node.message["tuple_index"]]
        if node.opcode in _THROUGH:
            return operands[0] if operands else 0
        value = hash((node.opcode, _op_name(node), node.message["tuple_index"], tuple(operands)))
        alike = self._alike.get(_likeness(node), set())
        return next(iter(alike)) if value not in self._known and len(alike) == 1 else value


def _likeness(node: Node) -> tuple[object, ...]:
    return node.opcode, _op_name(node), node.shape.dims
