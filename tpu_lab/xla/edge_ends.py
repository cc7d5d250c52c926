"""The two ends of an edge between kernels: the instruction inside the producer that makes the value, and those that use it inside the consumer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..record.program import Edge, Kernel
from .hlo_module import Module, Node

_FREE = frozenset({"bitcast", "get-tuple-element", "reshape"})


def with_ends(module: Module, edges: Sequence[Edge], kernels: Sequence[Kernel]) -> tuple[Edge, ...]:
    """The edges with `maker` and `users`.

    Inside fusions, converts and copies of the compiler's own and instructions that move nothing are looked through.
    """
    nodes = list(module.nodes)
    fusions = {node.called[0].index: node for node in nodes if node.opcode == "fusion"}
    done = []
    for edge in edges:
        value = nodes[edge.instruction]
        maker = _maker(value).index if edge.producer >= 0 else -1
        users = _taken(module, value, nodes[kernels[edge.consumer].instruction], fusions) if edge.consumer >= 0 else ()
        done.append(replace(edge, maker=maker, users=tuple(dict.fromkeys(user.index for user in users))))
    return tuple(done)


def _maker(node: Node) -> Node:
    place: list[int] = []
    while True:
        if node.opcode == "get-tuple-element":
            place.append(node.message["tuple_index"])
            node = node.operands[0]
        elif node.opcode == "tuple" and place:
            node = node.operands[place.pop()]
        elif node.opcode in ("fusion", "while"):
            node = node.called[0].root
        elif (node.opcode in _FREE or _added(node)) and node.operands[0].opcode != "parameter":
            node = node.operands[0]
        else:
            return node


def _taken(module: Module, value: Node, kernel: Node, fusions: dict[int, Node]) -> Iterator[Node]:
    """The instructions that use `value` in a kernel that takes it; if it only moves the value, what ends it; the kernel itself if it is no fusion."""
    if kernel.opcode != "fusion":
        return iter((kernel,))
    found = [user for inner in _parameters(kernel, value) for user in _users(module, inner, kernel, fusions)]
    return iter(found or (kernel.called[0].root,))


def _users(module: Module, value: Node, kernel: Node, fusions: dict[int, Node]) -> Iterator[Node]:
    """The same for a value inside the kernel. What a fusion in it passes on is used where that fusion is."""
    around = fusions[value.computation]
    if around is not kernel and value is around.called[0].root:
        yield from _users(module, around, kernel, fusions)
    for user in module.users[value]:
        if user.opcode == "fusion":
            for inner in _parameters(user, value):
                yield from _users(module, inner, kernel, fusions)
        elif user.opcode in _FREE or _added(user):
            yield from _users(module, user, kernel, fusions)
        elif user.opcode != "tuple":
            yield user


def _parameters(fusion: Node, value: Node) -> Iterator[Node]:
    """What an operand of a fusion is called inside it."""
    places = {place for place, operand in enumerate(fusion.operands) if operand is value}
    return (node for node in fusion.called[0].nodes if node.opcode == "parameter" and node.message["parameter"] in places)


def _added(node: Node) -> bool:
    """Whether a convert or copy inside a fusion is the compiler's own."""
    if node.opcode == "convert":
        return not (node.message["metadata"] and node.message["metadata"]["op_name"])
    return node.opcode == "copy" and not node.op
