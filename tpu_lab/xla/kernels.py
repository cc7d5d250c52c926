"""Kernels of a module: which instructions do work on their own, what they hold, what travels between them, what they cost."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..record.program import Edge, Kernel
from ..record.targets import Target
from . import hlo_costs
from .hlo_module import Computation, Module, Node, inside

_FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "iota",
        "after-all",
        "partition-id",
        "replica-id",
        "add-dependency",
        "opt-barrier",
        "copy-done",
        "slice-done",
        "async-done",
        "async-update",
        "send-done",
        "recv-done",
        "all-reduce-done",
        "all-gather-done",
        "collective-permute-done",
    }
)
"""Instructions that are no kernel of their own: they move nothing, or end what their `-start` began."""
_COLLECTIVES = re.compile(r"^(all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast|ragged-all-to-all)")
_FREE_CALLS = {"ConcatBitcast": "joins slices that were fetched separately; takes no time", "AssumeGatherIndicesInBound": "a promise; takes no time"}
_EMULATION = re.compile(r"^X(64|128)(Split|Combine)")
_CONTROL = frozenset({"while", "conditional", "call"})
_LEAVES = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
_CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"?(\d+)')
ON_CHIP = frozenset({"VMEM", "CMEM", "SMEM", "sync flag"})


@dataclass(eq=False, slots=True)
class Draft:
    """A kernel being made: its instruction, members, and how often it runs."""

    node: Node
    members: list[Node]
    repeats: int
    ops: tuple[str, ...] = ()
    inherited: bool = False
    feeds: list[Draft] = field(default_factory=list)
    fed_by: list[Draft] = field(default_factory=list)


@dataclass(frozen=True)
class Kernels:
    """The kernels of a module, the edges between them, and the index of the kernel that each instruction is in (-1: none)."""

    kernels: tuple[Kernel, ...]
    edges: tuple[Edge, ...]
    of_instruction: dict[Node, int]


def find_kernels(module: Module, target: Target) -> Kernels:
    """The kernels of a module, in the order they run. Lines and phases are not known here (`extract.with_source`)."""
    drafts = list(_drafts(module, module.entry, 1))
    number = {draft.node: i for i, draft in enumerate(drafts)}
    edges = _edges(module, drafts, number)
    for edge in edges:
        if edge.producer >= 0 and edge.consumer >= 0:
            drafts[edge.producer].feeds.append(drafts[edge.consumer])
            drafts[edge.consumer].fed_by.append(drafts[edge.producer])
    for draft in drafts:
        draft.ops = _own_ops(draft)
    _inherit(drafts)
    kernels = tuple(_kernel(module, draft, target) for draft in drafts)
    inner = {member: i for i, draft in enumerate(drafts) for member in (draft.node, *inside(draft.node)) if draft.node.opcode not in _CONTROL}
    return Kernels(kernels, tuple(edges), inner)


def _drafts(module: Module, computation: Computation, repeats: int) -> Iterable[Draft]:
    for node in computation.nodes:
        if node.opcode in _FREE or node.message["target"] in _FREE_CALLS:
            continue
        if node.opcode in _CONTROL:
            trips = _TRIPS.search(node.message["backend_config"]) if node.opcode == "while" else None
            for called in node.called:
                yield from _drafts(module, called, repeats * (int(trips.group(1)) if trips else 1))
            continue
        members = [n for n in inside(node) if n.opcode not in ("parameter", "constant")] if node.opcode == "fusion" else [node]
        yield Draft(node, members, repeats)


def _own_ops(draft: Draft) -> tuple[str, ...]:
    found = {member.op for member in (*draft.members, draft.node) if member.op}
    return tuple(sorted(found, key=op_number))


def op_number(id: str) -> int:
    """The number in an id: 77 of `n77:aten.tanh`."""
    return int(id[1:].partition(":")[0])


def _inherit(drafts: Sequence[Draft]) -> None:
    """Gives kernels without an id those of the nearest kernel they feed, else of the nearest that feeds them."""
    for way in ("feeds", "fed_by"):
        for draft in [d for d in drafts if not d.ops]:
            seen, queue = {id(draft)}, deque(getattr(draft, way))
            while queue:
                other = queue.popleft()
                if other.ops and not other.inherited:
                    draft.ops, draft.inherited = other.ops, True
                    break
                if id(other) not in seen:
                    seen.add(id(other))
                    queue.extend(getattr(other, way))


def _edges(module: Module, drafts: Sequence[Draft], number: dict[Node, int]) -> list[Edge]:
    """What each kernel takes, from which kernel (-1: an input), and what leaves the program."""
    edges = []
    for i, draft in enumerate(drafts):
        for operand in dict.fromkeys(draft.node.operands):
            edges += [Edge(number.get(made, -1), i, value.index, value.shape.bytes, value.shape.space) for value, made in _sources(operand, number)]
    results = module.entry.root
    outputs = results.operands if results.opcode == "tuple" else [results]
    for output in dict.fromkeys(outputs):
        edges += [Edge(number.get(made, -1), -1, value.index, value.shape.bytes, value.shape.space) for value, made in _sources(output, number)]
    return edges


def _sources(value: Node, number: dict[Node, int]) -> list[tuple[Node, Node]]:
    """The value that travels (the nearest to the consumer) and the instruction that makes it, through instructions that do nothing."""
    maker = value
    while maker not in number and maker.opcode not in ("parameter", "constant", "iota"):
        if maker.opcode == "get-tuple-element" and maker.operands[0].opcode == "while" and maker.operands[0].called[0].root.opcode == "tuple":
            maker = maker.operands[0].called[0].root.operands[maker.message["tuple_index"]]  # what the loop's body makes it in the end
            continue
        if maker.opcode in _CONTROL:
            root = maker.called[0 if maker.opcode == "while" else -1].root
            return [(value, made) for _, made in _sources(root, number)][:1]
        if maker.opcode == "get-tuple-element" and maker.operands[0].opcode == "tuple":
            maker = maker.operands[0].operands[maker.message["tuple_index"]]
        elif len(maker.operands) == 1 or maker.opcode in ("get-tuple-element", "bitcast"):
            maker = maker.operands[0]
        elif maker.operands:
            return [pair for operand in dict.fromkeys(maker.operands) for pair in _sources(operand, number)]
        else:
            break
    if maker.opcode in ("constant", "iota"):
        return []
    return [(value, maker)]


def _kernel(module: Module, draft: Draft, target: Target) -> Kernel:
    node = draft.node
    main = module.main
    flops = sum(hlo_costs.flops(member) for member in draft.members)
    moved = hlo_costs.traffic(module, node)
    nbytes, on_chip = moved.get(main, 0), sum(moved.get(space, 0) for space in ON_CHIP)
    time, bound = _bound(flops, nbytes, on_chip, target)
    cycles = _CYCLES.search(node.message["backend_config"])
    return Kernel(
        name=node.name,
        kind=_kind(draft),
        instruction=node.index,
        members=tuple(member.index for member in draft.members),
        ops=draft.ops,
        lines=(),
        inherited=draft.inherited,
        role="" if draft.ops else _role(draft),
        phase="",
        flops=flops,
        bytes=nbytes,
        vmem_bytes=on_chip,
        time_s=time,
        bound_by=bound,
        cycles=int(cycles.group(1)) if cycles else 0,
        repeats=draft.repeats,
    )


def _bound(flops: float, nbytes: int, on_chip: int, target: Target) -> tuple[float, str]:
    if not target.flops:
        return 0.0, ""
    compute, memory = flops / target.flops, nbytes / target.hbm_bandwidth
    if memory > compute:
        return memory, "memory"
    return compute, "compute" if nbytes or not on_chip else "on chip"


def _kind(draft: Draft) -> str:
    node = draft.node
    if _COLLECTIVES.match(node.opcode):
        return "collective"
    if node.opcode in ("copy-start", "slice-start", "async-start"):
        return "prefetch"
    if any(member.opcode in ("convolution", "dot") for member in draft.members):
        return "matmul"
    if node.opcode == "custom-call":
        return "custom call"
    if node.opcode in ("copy", "transpose") or (node.opcode == "fusion" and all(m.opcode in _LEAVES or m.opcode == "copy" for m in draft.members)):
        return "copy"
    return "fusion" if node.opcode == "fusion" else "single"


def _role(draft: Draft) -> str:
    """What a kernel that leads to no op is."""
    node = draft.node
    if node.opcode == "custom-call":
        name = node.message["target"]
        return f"emulation of a dtype ({name})" if _EMULATION.match(name) else f"a call of {name} that the compiler added"
    return {
        "copy": "a copy that the compiler added",
        "prefetch": "brings an argument into on-chip memory before it is used",
        "collective": "talks to other chips",
    }.get(_kind(draft), f"{node.opcode}, added by the compiler")


def emulated(module: Module) -> dict[str, tuple[str, ...]]:
    """For each width of dtypes (`64-bit`) that the hardware has not and the compiler emulates: the ids of the ops that meet it."""
    found: dict[str, dict[str, None]] = {}
    for node in module.nodes:
        match = _EMULATION.match(node.message["target"]) if node.opcode == "custom-call" else None
        if match is not None:
            found.setdefault(f"{match.group(1)}-bit", {}).update({node.op: None} if node.op else {})
    return {width: tuple(ops) for width, ops in found.items()}
