"""The modules that were dumped before and after each fusion pass of a compile, and what a pass merged without writing it into its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from .hlo_module import Computation, Module, Node
from .hlo_proto import decode

PASSES = "^(tpu_fusion|tpu_multi_output_fusion)$"
"""The value of `xla_dump_hlo_pass_re` that dumps what is read here, for TPU targets."""
CPU_PASSES = "^fusion$"
"""The same for XLA:CPU."""
_NAME = re.compile(r"\.(\d{4,})\.([^.]+)\.after_([^.]+)\.before_([^.]+)\.hlo\.pb$")
_FREE = frozenset({"get-tuple-element", "bitcast"})


@dataclass(frozen=True)
class Pass:
    """One run of a pass."""

    name: str
    pipeline: str
    before: State
    after: State


class State:
    """The module between two passes, by the names of the instructions that are not inside a fusion."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def module(self) -> Module:
        """The decoded module. Raises DecodeError."""
        return Module(decode(self.path.read_bytes())["module"], "HBM")

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Instructions outside fusions and outside what reductions apply, by name."""
        inner = {c.index for node in self.module.nodes if node.opcode not in ("while", "conditional", "call") for c in node.called}
        return {node.name: node for node in self.module.nodes if node.computation not in inner}

    def users(self, name: str) -> list[Node]:
        """The instructions outside fusions that take an instruction's result."""
        return self.module.users[self.nodes[name]]

    def members(self, name: str) -> frozenset[str]:
        """Names of the instructions that an instruction holds: its own, or those inside a fusion."""
        return frozenset(node.name for node in held(self.nodes[name]) if node.opcode != "parameter")

    def computations(self) -> Iterator[Computation]:
        """The computations that are no fusion and not what a reduction applies."""
        return (c for c in self.module.computations if c.root.name in self.nodes)


def held(node: Node) -> Iterator[Node]:
    """An instruction, or those inside a fusion at any depth, without what a reduction or a sort in it applies."""
    if node.opcode != "fusion":
        yield node
        return
    for computation in node.called:
        for inner in computation.nodes:
            yield from held(inner)


def read_passes(folder: Path) -> tuple[Pass, ...]:
    """The runs of fusion passes in a folder that a compiler dumped into, in order. A pass without both dumps is left out."""
    found = sorted((int(m[1]), m[2], m[3], m[4], path) for path in folder.glob("*.hlo.pb") if (m := _NAME.search(path.name)))
    states = {path: State(path) for *_, path in found}
    passes = []
    for (_, pipeline, _, coming, path), (_, _, done, _, following) in pairwise(found):
        if coming == done and (re.search(CPU_PASSES, done) or re.search(PASSES, done)):
            passes.append(Pass(done, pipeline, states[path], states[following]))
    return tuple(passes)


def renamed(before: State, after: State) -> Iterator[tuple[str, str]]:
    """(old name, new name) of instructions that only changed their names between two states.

    A fusion is found again by the instruction that ends it; a computation that was cloned (a loop's body), by the opcodes it consists of.
    """
    roots = {node.called[0].root.name: name for name, node in before.nodes.items() if node.opcode == "fusion" and name not in after.nodes}
    for name, node in after.nodes.items():
        if node.opcode == "fusion" and name not in before.nodes and (old := roots.get(node.called[0].root.name)):
            yield old, name
    gone: dict[tuple[str, ...], list[Computation]] = {}
    for computation in before.computations():
        if not any(node.name in after.nodes for node in computation.nodes):
            gone.setdefault(tuple(node.opcode for node in computation.nodes), []).append(computation)
    for computation in after.computations():
        if not any(node.name in before.nodes for node in computation.nodes):
            like = gone.get(tuple(node.opcode for node in computation.nodes))
            if like:
                yield from ((old.name, new.name) for old, new in zip(like[0].nodes, computation.nodes, strict=True))


def absorbed(before: State, after: State) -> Iterator[tuple[str, str]]:
    """What became part of what between two states: (name that vanished, name that holds it now), each pair once.

    An instruction that vanished went into what its users now take its result from (a fusion that kept it as a further output), or, if
    nobody takes it any more, into its users. One whose users all vanished with it goes where they go.
    """
    gone = [name for name, node in before.nodes.items() if name not in after.nodes and node.opcode not in (*_FREE, "tuple")]
    holders: dict[str, set[str]] = {}
    for name in reversed(gone):  # operands stand before users, so users come first here
        holders[name] = _holders(name, before, after, holders)
        yield from ((name, holder) for holder in sorted(holders[name]))


def _holders(name: str, before: State, after: State, known: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    fed: set[str] = set()
    for user in _real_users(before, name):
        now = after.nodes.get(user.name)
        if now is None:
            fed |= known.get(user.name, set())
        elif (maker := _replaced(before.nodes[name], user, now, after)) is not None:
            found.add(maker)
        elif now.opcode == "fusion":
            fed.add(user.name)
    return found or fed


def _real_users(state: State, name: str) -> Iterator[Node]:
    for user in state.users(name):
        if user.opcode in _FREE:
            yield from _real_users(state, user.name)
        else:
            yield user


def _replaced(gone: Node, user: Node, now: Node, after: State) -> str | None:
    """The new maker of the operand that `gone` was for a user, if the user still takes it from one instruction."""
    if len(user.operands) != len(now.operands):
        return None
    for old, new in zip(user.operands, now.operands, strict=True):
        while old.opcode in _FREE and old is not gone:
            old = old.operands[0]
        if old is gone:
            while new.opcode in _FREE:
                new = new.operands[0]
            return new.name if new.opcode not in ("parameter", "constant") and new.name in after.nodes else None
    return None
