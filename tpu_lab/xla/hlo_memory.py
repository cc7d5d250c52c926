"""Buffers and the live curve of each memory space, from the buffer assignment and the heap trace of a dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..record.program_memory import Buffer, ProgramMemory, SpaceUse
from ..record.targets import Target
from .hlo_module import Module, Node
from .hlo_proto import Message
from .hlo_shapes import Shape, space_name

_ALLOC, _FREE, _SHARE = 0, 1, 2
_PASSES_ON = frozenset(
    {"get-tuple-element", "bitcast", "tuple", "copy-start", "copy-done", "slice-done", "async-done", "async-update", "opt-barrier"}
)


@dataclass(eq=False, slots=True)
class _Value:
    """A logical buffer with where it lies and how long it lives, in positions of the schedule."""

    message: Message
    node: Node | None
    shape: Shape | None
    kind: str = "temporary"
    offset: int = -1
    born: int = -1
    died: int = -1
    counted: bool = True
    """False: it takes the place of another buffer, which is counted."""


@dataclass(eq=False, slots=True)
class _Space:
    """Events of one memory space: position to change in bytes, and what the space holds from start to end."""

    steady: int = 0
    reserved: int = 0
    events: list[tuple[int, int, int]] = field(default_factory=list)
    """(position, change in bytes, buffer id) in the order they happen."""


def read_memory(module: Module, assignment: Message | None, target: Target) -> ProgramMemory:
    """Memory of a module; empty where the dump holds no buffer assignment."""
    if assignment is None:
        return ProgramMemory()
    position = {node: i for i, node in enumerate(module.entry.nodes)}
    values = {b["id"]: _value(module, b) for b in assignment["buffers"]}
    spaces: dict[str, _Space] = {}
    traced = {event["buffer"] for trace in assignment["traces"] for event in trace["events"]}
    alias_bytes = 0
    for allocation in assignment["allocations"]:
        if allocation["thread_local"]:
            continue
        space = spaces.setdefault(space_name(allocation["color"], module.main), _Space())
        space.reserved += allocation["size"]
        kind = _kind(allocation)
        alias_bytes += allocation["size"] if allocation["is_parameter"] and allocation["live_out"] else 0
        steady = kind != "temporary" or not any(a["buffer"] in traced for a in allocation["assigned"])
        space.steady += allocation["size"] if steady else 0
        held = [(values[a["buffer"]], a["offset"]) for a in allocation["assigned"] if a["buffer"] in values]
        _place(held, kind, steady, position)
    for trace in assignment["traces"]:
        _follow(module, trace, values, position, spaces)
    buffers, numbers = _buffers(module, values)
    uses = tuple(_use(name, space, module.main, target, values, numbers) for name, space in sorted(spaces.items()))
    sizes = {kind: sum(b.bytes for b in buffers if b.kind == kind and b.space == module.main) for kind in ("argument", "output", "temporary")}
    main = spaces.get(module.main, _Space())
    temp = max(main.reserved - sizes["argument"] - sizes["output"], 0)
    return ProgramMemory(uses, tuple(buffers), sizes["argument"], sizes["output"] + alias_bytes, temp, alias_bytes)


def _value(module: Module, message: Message) -> _Value:
    defined = message["defined"]
    node = module.by_id.get(defined["instruction"]) if defined else None
    shape: Shape | None = node.shape if node is not None else None
    for index in defined["path"] if defined else ():
        shape = shape.parts[index] if shape is not None and index < len(shape.parts) else None
    return _Value(message, node, shape)


def _kind(allocation: Message) -> str:
    if allocation["is_parameter"]:
        return "argument"
    if allocation["is_constant"]:
        return "constant"
    return "output" if allocation["live_out"] else "temporary"


def _place(held: Sequence[tuple[_Value, int]], kind: str, steady: bool, position: Mapping[Node, int]) -> None:
    """Notes where the values of one allocation lie. Of several in the place of an argument or output, the argument or the last counts."""
    for value, offset in held:
        value.offset, value.kind = offset, kind
        value.born = position.get(value.node, -1) if value.node is not None else -1
        value.died = len(position) if steady else value.born
    if kind in ("argument", "output"):
        owner = max((v for v, _ in held), key=lambda v: (v.node is not None and v.node.opcode == "parameter", v.born), default=None)
        for value, _ in held:
            value.counted = value is owner
        if owner is not None:
            owner.born = -1


def _follow(module: Module, trace: Message, values: Mapping[int, _Value], position: Mapping[Node, int], spaces: dict[str, _Space]) -> None:
    """Walks one heap trace. A free tells which buffer, not when: it comes after the buffer's last use and before the next allocation."""
    last, next_allocation = _LastUse(module, position), len(position)
    at = [-1]
    for event in trace["events"]:
        node = values[event["buffer"]].node if event["kind"] != _FREE and event["buffer"] in values else None
        at.append(max(at[-1], position.get(node, -1)) if node is not None else at[-1])
    allocated = {event["buffer"] for event in trace["events"] if event["kind"] == _ALLOC}
    for event, where in reversed(list(zip(trace["events"], at[1:], strict=True))):
        value = values.get(event["buffer"])
        if value is None:
            continue
        name = space_name(value.message["color"], module.main)
        if event["kind"] == _FREE:
            value.died = min(max(where, last.of(value.node)), max(next_allocation - 1, where))
            change, when = -value.message["size"], value.died + 1
        else:
            value.born = when = where
            change = value.message["size"]
            next_allocation = where
            value.died = max(value.died, where)
            value.counted = event["kind"] != _SHARE
        if event["buffer"] in allocated and event["kind"] != _SHARE:
            spaces.setdefault(name, _Space()).events.append((when, change, event["buffer"]))


class _LastUse:
    """The last position in the schedule at which a value is read, through instructions that only pass it on."""

    def __init__(self, module: Module, position: Mapping[Node, int]) -> None:
        self._users = module.users
        self._position = position
        self._known: dict[Node, int] = {}

    def of(self, node: Node | None) -> int:
        """-1 for a value of which nothing is known."""
        if node is None:
            return -1
        if node not in self._known:
            self._known[node] = self._position.get(node, -1)
            for user in self._users[node]:
                reach = self.of(user) if user.opcode in _PASSES_ON else self._position.get(user, -1)
                self._known[node] = max(self._known[node], reach)
        return self._known[node]


def _buffers(module: Module, values: Mapping[int, _Value]) -> tuple[list[Buffer], dict[int, int]]:
    """The buffers that take memory of their own, and the position of each by its id."""
    buffers: list[Buffer] = []
    numbers: dict[int, int] = {}
    for key, value in values.items():
        if value.offset < 0 or not value.counted or (value.shape is not None and value.shape.parts):
            continue
        numbers[key] = len(buffers)
        shape, node = value.shape, value.node
        is_input = node is not None and node.opcode == "parameter" and node.computation == 0
        buffers.append(
            Buffer(
                instruction=node.index if node is not None else -1,
                path=tuple(value.message["defined"]["path"]) if value.message["defined"] else (),
                kind=value.kind,
                space=space_name(value.message["color"], module.main),
                dtype=shape.dtype if shape is not None else "",
                shape=shape.dims if shape is not None else (),
                bytes=value.message["size"],
                useful_bytes=min(shape.useful_bytes, value.message["size"]) if shape is not None else value.message["size"],
                offset=value.offset,
                born=value.born,
                died=value.died,
                op=node.op if node is not None else "",
                label=(node.op or node.name) if node is not None else "",
                parameter=node.message["parameter"] if node is not None and is_input else -1,
            )
        )
    return buffers, numbers


def _use(name: str, space: _Space, main: str, target: Target, values: Mapping[int, _Value], numbers: Mapping[int, int]) -> SpaceUse:
    live, peak, peak_at, count = space.steady, space.steady, -1, 0
    curve: dict[int, int] = {-1: live}
    events = sorted(space.events, key=lambda e: (e[0], e[1] > 0))  # frees before allocations of the same position
    for i, (where, change, _) in enumerate(events):
        live += change
        curve[where] = live
        if live > peak:
            peak, peak_at, count = live, where, i + 1
    held = {k: None for k, v in values.items() if v.kind != "temporary" and space_name(v.message["color"], main) == name}
    for _, change, buffer in events[:count]:
        if change > 0:
            held[buffer] = None
        else:
            held.pop(buffer, None)
    largest = sorted((b for b in held if b in numbers), key=lambda b: -values[b].message["size"])
    capacity = {"HBM": target.hbm_bytes, "VMEM": target.vmem_bytes}.get(name, 0)
    return SpaceUse(name, capacity, peak, peak_at, tuple(curve), tuple(curve.values()), tuple(numbers[b] for b in largest), space.reserved)
