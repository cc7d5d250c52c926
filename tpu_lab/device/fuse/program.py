"""One XLA program for a cluster: the functions of its calls' strict programs, one after the other, without what nobody reads."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import jax

from ...xla.executable import Executable, compile_program
from .. import policies
from .trace import Step, results_of

Variant = tuple[tuple[int, ...], tuple[int, ...]]
"""Slots of the results that live, positions of the arrays that they replace."""


class FusedProgram:
    """A cluster's program. Inputs: the arrays from outside, then every call's numbers. Results: live slots, then index checks."""

    __slots__ = ("executable", "last", "live", "steps")

    def __init__(self, executable: Executable, live: tuple[int, ...], steps: int) -> None:
        self.executable = executable
        self.live = live
        self.steps = steps
        self.last = 0


def build(steps: Sequence[Step], variant: Variant) -> FusedProgram:
    """Traces and compiles a cluster. Raises whatever jax and XLA raise."""
    live, donated = variant
    avals, largest = arguments(steps)
    executable = compile_program(function_of(steps, live), avals, donated, largest=largest, options=policies.for_xla())
    return FusedProgram(executable, live, len(steps))


def arguments(steps: Sequence[Step]) -> tuple[list[Any], int]:
    """Shapes and dtypes of a cluster's inputs, and the bytes of the largest array in it."""
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
    return [outside[i] for i in range(len(outside))] + numbers, largest


def check_slots(steps: Sequence[Step]) -> list[int]:
    """The slots of index checks: the last result of each call that has one."""
    ends = accumulate(results_of(entry) for entry, *_ in steps)
    return [end - 1 for (entry, *_), end in zip(steps, ends, strict=True) if entry.checked]


def function_of(steps: Sequence[Step], live: tuple[int, ...]) -> Callable[..., list[jax.Array]]:
    """The cluster as a function of flat arrays."""
    count = 1 + max((~slot for _, *slots in steps for slot in slots if slot < 0), default=-1)
    wanted = [*live, *check_slots(steps)]

    def cluster(*arrays: jax.Array) -> list[jax.Array]:
        values: list[jax.Array] = []
        at = count
        for entry, *slots in steps:
            end = at + len(entry.avals) - len(slots)
            values += entry.function(*(values[s] if s >= 0 else arrays[~s] for s in slots), *arrays[at:end])
            at = end
        return list(operator.itemgetter(*wanted)(values)) if len(wanted) > 1 else [values[s] for s in wanted]

    return cluster
