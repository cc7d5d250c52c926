"""Which clusters were seen, and which get a program: the tiers.

An unseen cluster costs what strict costs. One that comes back is compiled on the background thread once its repeats make that
pay, and its calls are put into the tree that traces are compared with. One that cannot be compiled stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...xla._jax_internals import XlaRuntimeError
from .. import host_first, program_cache
from . import governor
from .program import FusedProgram, Variant, build
from .trace import Node, Step

SIGHTINGS = 3
"""A cluster seen so often is compiled."""
_MOST_STEPS = 300_000
"""Calls in all clusters that are remembered: some 60 MB."""
POLICIES = ("tiered", "always", "replay")
policy = os.environ.get("TPU_LAB_FUSE", "tiered")
"""`tiered`; `always`: every cluster is compiled where it is met; `replay`: every call is deferred, none compiled (both for tests)."""

root = Node((), None)
"""The tree of clusters that have programs."""


class Sighting:
    """What is known of a cluster that ends with these live results."""

    __slots__ = ("count", "offsets", "state", "varying")

    def __init__(self) -> None:
        self.count = 0
        self.state = "unseen"
        self.offsets: list[Any] = []
        self.varying: set[int] = set()

    def look_at(self, offsets: list[Any]) -> None:
        """Notes which storage offsets are not what they were: those become inputs of the program, the others constants."""
        if self.offsets:
            self.varying.update(i for i, (a, b) in enumerate(zip(offsets, self.offsets, strict=True)) if a is not b)
        self.offsets = offsets


_seen: dict[tuple[Step, ...], dict[Variant, Sighting]] = {}
_steps_held = 0
compiling = 0
"""Clusters that wait for the background compiler or are with it."""
news = 0
"""Changes each time a cluster gets its program or turns out to get none."""


def forced() -> bool:
    """True where every call is deferred, whether its cluster has a program or not."""
    return policy != "tiered"


def grow(node: Node, step: Step) -> Node:
    """The node behind `node`, made if need be."""
    found = node.next.get(step)
    if found is None:
        found = node.next.setdefault(step, Node(step, node))
    return found


def state(steps: Sequence[Step], variant: Variant) -> str:
    """What is known of a cluster: an id of `record.reasons.ClusterState`."""
    sighting = _seen.get(tuple(steps), {}).get(variant)
    return "unseen" if sighting is None or sighting.state == "ready" else sighting.state


def sighted(steps: Sequence[Step], variant: Variant, offsets: list[Any]) -> bool:
    """Counts a cluster that ran call by call, and has it compiled when it is time.

    True if nothing will come of it as far as one can see: it is new, too short, or was tried.
    """
    global _steps_held, compiling
    key = tuple(steps)
    variants = _seen.get(key)
    if variants is None:
        if _steps_held > _MOST_STEPS:
            _seen.clear()
            _steps_held = 0
        variants = _seen[key] = {}
        _steps_held += len(key)
    sighting = variants.setdefault(variant, Sighting())
    sighting.count += 1
    sighting.look_at(offsets)
    if sighting.state == "unseen" and sighting.count >= SIGHTINGS and len(key) >= governor.rules.least_calls:
        sighting.state = "compiling"
        compiling += 1
        if not host_first.in_background(lambda: _compile(key, variant, sighting)):
            sighting.state = "unseen"
            compiling -= 1
    return sighting.count == 1 or len(key) < governor.rules.least_calls or sighting.state in ("slower", "failed")


def _compile(key: tuple[Step, ...], variant: Variant, sighting: Sighting) -> None:
    global compiling, news
    constant = {i: o for i, o in enumerate(sighting.offsets) if i not in sighting.varying}
    program = _built(key, variant, constant)
    sighting.state = "failed" if program is None else "ready"
    compiling -= 1
    news += 1


def _built(steps: Sequence[Step], variant: Variant, constant: dict[int, Any]) -> FusedProgram | None:
    """The program of a cluster, compiled and put into the tree; None where that fails: its calls go on one by one."""
    try:
        program = build(steps, variant, constant)
    except (XlaRuntimeError, RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
        return None
    node = root
    for step in steps:
        node = grow(node, step)
    program_cache.remember(node.programs, variant, program, program.executable.nbytes)
    return program


def program_for(node: Node, steps: Sequence[Step], variant: Variant, offsets: list[Any]) -> FusedProgram | None:
    """The program of a deferred cluster; None if it has none (yet), or none for these storage offsets, which then vary from now on."""
    found: FusedProgram | None = node.programs.get(variant)
    if found is not None and any(offsets[i] is not o for i, o in found.constant.items()):
        node.programs.pop(variant, None)
        sighting = _seen.get(tuple(steps), {}).get(variant)
        if sighting is not None:
            sighting.state = "unseen"
        found = None
        if policy == "always":
            return _built(steps, variant, {})
    if found is None and policy == "always":
        found = _built(steps, variant, dict(enumerate(offsets)))
    return found


def now() -> int:
    """A tick of the clock that `FusedProgram.last` is read from."""
    return program_cache.tick()


def drop(since: int) -> None:
    """Drops every program that ran since a tick: what they make is slower than the calls one by one."""
    for steps, variants in list(_seen.items()):
        for variant, sighting in variants.items():
            if sighting.state == "ready" and _last_run(steps, variant) >= since:
                sighting.state = "slower"
                _remove(root, steps, variant, 0)


def _last_run(steps: Sequence[Step], variant: Variant) -> int:
    node: Node | None = root
    for step in steps:
        node = node.next.get(step) if node is not None else None
    program = node.programs.get(variant) if node is not None else None
    return -1 if program is None else program.last


def _remove(node: Node, steps: Sequence[Step], variant: Variant, at: int) -> None:
    """Takes a program out of the tree, and the branch that led to it alone."""
    if at == len(steps):
        node.programs.pop(variant, None)
        return
    following = node.next.get(steps[at])
    if following is not None:
        _remove(following, steps, variant, at + 1)
        if not following.next and not following.programs:
            del node.next[steps[at]]


def forget() -> None:
    """Takes every cluster as never seen (for tests)."""
    global _steps_held
    host_first.finish()
    _seen.clear()
    root.next.clear()
    _steps_held = 0
