"""A decoded HLO module with its cross-references resolved: the form in which costs, kernels and memory are computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from .hlo_proto import DecodeError, Message
from .hlo_shapes import Shape, shape_of

_ID = re.compile(r"\bn\d+:[^/;\"]+")


@dataclass(eq=False, slots=True)
class Node:
    """One instruction. `message` holds the fields that only some opcodes have."""

    index: int
    """Position among all instructions of the module, the entry's first."""
    name: str
    opcode: str
    computation: int
    """Position in `Module.computations`."""
    shape: Shape
    message: Message
    operands: list[Node] = field(default_factory=list)
    called: list[Computation] = field(default_factory=list)
    op: str = ""
    """Id of the ATen op in its metadata, the outermost of nested scopes: those within belong to graphs inside the op."""


@dataclass(eq=False, slots=True)
class Computation:
    """A computation: its instructions in the order they run if it is scheduled, else operands before users."""

    index: int
    name: str
    nodes: list[Node]
    root: Node


class Module:
    """A whole module. `main` names memory space 0: `HBM` on a TPU, `RAM` on XLA:CPU. Raises DecodeError for a broken reference."""

    def __init__(self, message: Message, main: str) -> None:
        self.name: str = message["name"]
        self.message = message
        self.main = main
        shapes: dict[int, Shape] = {}
        given = sorted(message["computations"], key=lambda c: c["id"] != message["entry"])
        order = {s["computation"]: s["value"]["ids"] for s in (message["schedule"] or {"sequences": []})["sequences"] if s["value"]}
        by_id: dict[int, Node] = {}
        self.computations: list[Computation] = []
        try:
            for index, computation in enumerate(given):
                self.computations.append(_computation(index, computation, order.get(computation["id"]), by_id, main, shapes))
            places = {c["id"]: self.computations[i] for i, c in enumerate(given)}
            for node in by_id.values():
                node.operands = [by_id[i] for i in node.message["operands"]]
                node.called = [places[i] for i in node.message["called"]]
        except KeyError as error:
            raise DecodeError(f"the module refers to {error}, which it does not hold") from None
        if not self.computations:
            raise DecodeError("the module holds no computation")
        self.by_id = by_id

    @property
    def entry(self) -> Computation:
        """The computation that runs first."""
        return self.computations[0]

    @property
    def nodes(self) -> Iterator[Node]:
        """All instructions, by index."""
        return (node for computation in self.computations for node in computation.nodes)

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The instructions that take each instruction's result, in order."""
        found: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for operand in dict.fromkeys(node.operands):
                found[operand].append(node)
        return found


def _computation(index: int, message: Message, order: list[int] | None, by_id: dict[int, Node], main: str, shapes: dict[int, Shape]) -> Computation:
    """One computation; `shapes` holds those made so far by the id of their message, which many instructions share."""
    instructions = message["instructions"]
    if order is not None and len(order) == len(instructions):
        named = {i["id"]: i for i in instructions}
        instructions = [named[i] for i in order]
    nodes, start = [], len(by_id)
    for place, instruction in enumerate(instructions):
        given = instruction["shape"]
        shape = shapes.get(id(given))
        if shape is None:
            shape = shapes[id(given)] = shape_of(given, main)
        metadata = instruction["metadata"]
        ids = _ID.findall(metadata["op_name"]) if metadata else []
        node = Node(
            start + place,
            instruction["name"],
            instruction["opcode"],
            index,
            shape,
            instruction,
            op=ids[0] if ids else "",
        )
        by_id[instruction["id"]] = node
        nodes.append(node)
    return Computation(index, message["name"], nodes, by_id[message["root"]])


def inside(node: Node) -> Iterator[Node]:
    """The instructions of the computations that a node calls, at any depth, parameters included."""
    for computation in node.called:
        for inner in computation.nodes:
            yield inner
            yield from inside(inner)
