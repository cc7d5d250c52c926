"""One XLA program for a cluster: the functions of its calls' strict programs, one after the other, without what nobody reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import jax

from ...xla.executable import Executable, compile_program
from .. import policies
from . import artifacts, governor
from .trace import Step, results_of

Variant = tuple[tuple[int, ...], tuple[int, ...]]
"""Slots of the results that live, positions of the arrays that they replace."""


class FusedProgram:
    """A cluster's program. Inputs: the arrays from outside, then every call's numbers. Results: live slots, then index checks.

    `constant`: the storage offsets it was made for, by their place among all offsets; `passed`: for each number of the calls
    whether it is an input (None: all are).
    """

    __slots__ = ("constant", "executable", "last", "live", "passed", "steps")

    def __init__(self, executable: Executable, live: tuple[int, ...], steps: int, constant: dict[int, Any], passed: list[bool] | None) -> None:
        self.executable = executable
        self.live = live
        self.steps = steps
        self.constant = constant
        self.passed = passed
        self.last = 0


def build(steps: Sequence[Step], variant: Variant, constant: dict[int, Any]) -> FusedProgram:
    """Traces and compiles a cluster for some storage offsets. Raises whatever jax and XLA raise."""
    live, donated = variant
    outside, numbers, largest = arguments(steps)
    known = {place: int(constant[i]) for i, place in enumerate(offset_places(steps)) if i in constant}
    avals = outside + [aval for place, aval in enumerate(numbers) if place not in known]
    fenced = governor.fences(steps)
    options = {**(governor.FENCED if fenced else {}), **policies.for_xla()}
    function = function_of(steps, live, len(outside), known, fenced)
    with artifacts.compiling(steps, function, avals, donated):
        executable = compile_program(function, avals, donated, largest=largest, options=options)
    passed = [place not in known for place in range(len(numbers))] if known else None
    return FusedProgram(executable, live, len(steps), constant, passed)


def offset_places(steps: Sequence[Step]) -> list[int]:
    """Where among a cluster's numbers the storage offsets are."""
    found, first = [], 0
    for entry, *slots in steps:
        found += [first + i for i in entry.offsets]
        first += len(entry.avals) - len(slots)
    return found


def arguments(steps: Sequence[Step]) -> tuple[list[Any], list[Any], int]:
    """Shapes and dtypes of a cluster's arrays from outside and of its numbers, and the bytes of the largest array in it."""
    outside: dict[int, Any] = {}
    numbers: list[Any] = []
    largest = 0
    for entry, *slots in steps:
        wanted = entry.avals
        for slot, aval in zip(slots, wanted, strict=False):
            if slot < 0:
                outside.setdefault(~slot, aval)
            largest = max(largest, aval.size * aval.dtype.itemsize)
        numbers += wanted[len(slots) :]
        largest = max(largest, entry.bytes)
    return [outside[i] for i in range(len(outside))], numbers, largest


def check_slots(steps: Sequence[Step]) -> list[int]:
    """The slots of index checks: the last result of each call that has one."""
    ends = accumulate(results_of(entry) for entry, *_ in steps)
    return [end - 1 for (entry, *_), end in zip(steps, ends, strict=True) if entry.checked]


def function_of(
    steps: Sequence[Step], live: tuple[int, ...], outside: int, known: dict[int, int], fenced: frozenset[int]
) -> Callable[..., list[jax.Array]]:
    """The cluster as a function of flat arrays: `outside` ones, then its numbers without those whose values are `known`.

    Behind the calls in `fenced` nothing is fused with what is before.
    """
    wanted = [*live, *check_slots(steps)]

    def cluster(*arrays: jax.Array) -> list[jax.Array]:
        values: list[Any] = []
        rest = iter(arrays[outside:])
        place = 0
        for at, (entry, *slots) in enumerate(steps):
            numbers: list[Any] = []
            for _ in range(len(entry.avals) - len(slots)):
                numbers.append(known[place] if place in known else next(rest))
                place += 1
            results = entry.function(*(values[s] if s >= 0 else arrays[~s] for s in slots), *numbers)
            values += jax.lax.optimization_barrier(results) if at in fenced else results
        return [values[s] for s in wanted]

    return cluster
