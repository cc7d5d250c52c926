"""Sums over a run, and costs per source line. Kept in the record so that a run cut small for a notebook still tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .happenings import Fallback, Sync
from .memory import Storages
from .ops import Ops, RunProgram
from .source import Location


@dataclass(frozen=True, slots=True)
class LineCost:
    """What one source line cost.

    An op counts for the cell's line that led to it, and also for the line of other code that called it (a model in a file or
    another cell): sums are over one source only. A backward op counts for the line that called backward.
    """

    source: int
    """Index in `Run.sources`."""
    line: int
    time_ns: int = 0
    """Wall time of its ops and syncs; overlapping ones count once."""
    backward_ns: int = 0
    """Time of the backward ops whose forward op this line called. Already in the time of the line that called backward."""
    new_bytes: int = 0
    """Bytes of storages made by its ops, freed since or not."""
    ops: int = 0
    syncs: int = 0
    fallbacks: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole run, also over what was not kept."""

    wall_ns: int = 0
    ops: int = 0
    views: int = 0
    """Ops that ran no program."""
    kernels: int = 0
    kernels_exact: bool = True
    """False: a lower bound; some program did not tell how many kernels it has."""
    op_ns: int = 0
    """Time in ops, from the first to the last of their wall times; overlapping ones count once."""
    builds: int = 0
    """Programs built in this run."""
    build_ns: int = 0
    peak_bytes: int = 0
    syncs: int = 0
    sync_ns: int = 0
    fallbacks: int = 0
    fallback_ns: int = 0
    graph_breaks: int = 0
    recompiles: int = 0
    failures: int = 0
    flushes: int = 0
    flush_ns: int = 0


def kernel_count(program: RunProgram) -> tuple[int, bool]:
    """Kernels one call of a program launches, and whether that is exact. Views, host kernels, transfers and fallbacks launch none."""
    if program.kernels is not None:
        return program.kernels, True
    if program.kind in ("xla", "compiled"):
        return 1, False
    return (1 if program.kind == "aten" else 0), True


def exclusive(intervals: Sequence[tuple[int, int, int]]) -> list[int]:
    """For intervals `(start, end, thread)`, the part of each that no earlier one of its thread covers, in the given order.

    Overlap arises where an event lies within another (the op inside a sync); it must not be counted twice.
    """
    order = sorted(range(len(intervals)), key=lambda i: (intervals[i][2], intervals[i][0], -intervals[i][1]))
    own = [0] * len(intervals)
    covered, thread = 0, None
    for i in order:
        start, end, on = intervals[i]
        if on != thread:
            covered, thread = start, on
        own[i] = max(0, end - max(start, covered))
        covered = max(covered, end)
    return own


def line_costs(
    ops: Ops, storages: Storages, locations: Sequence[Location], syncs: Sequence[Sync], fallbacks: Sequence[Fallback]
) -> tuple[LineCost, ...]:
    """Costs by source line, in source order. `ops` must be complete (positions equal ids)."""
    made: dict[int, int] = {}
    for maker, nbytes in zip(storages.made_by, storages.nbytes, strict=True):
        made[maker] = made.get(maker, 0) + nbytes
    own = exclusive(
        [(s, s + d, t) for s, d, t in zip(ops.start_ns, ops.duration_ns, ops.thread, strict=True)]
        + [(s.start_ns, s.start_ns + s.duration_ns, 0) for s in syncs]
    )
    lines: dict[tuple[int, int], list[int]] = {}

    def rows(cell_location: int, location: int) -> list[list[int]]:
        places = {(locations[i].source, locations[i].line) for i in (cell_location, location) if i >= 0}
        return [lines.setdefault(place, [0] * 6) for place in places]

    for i, (cell, location, forward) in enumerate(zip(ops.cell_location, ops.location, ops.forward, strict=True)):
        for costs in rows(cell, location):
            costs[0] += own[i]
            costs[2] += made.get(i, 0)
            costs[3] += 1
        for costs in rows(ops.cell_location[forward], ops.location[forward]) if forward >= 0 else ():
            costs[1] += own[i]
    for i, sync in enumerate(syncs):
        for costs in rows(sync.cell_location, sync.location):
            costs[0] += own[len(ops) + i]
            costs[4] += 1
    for fallback in fallbacks:
        for costs in rows(fallback.cell_location, fallback.location):
            costs[5] += 1
    return tuple(LineCost(source, line, *costs) for (source, line), costs in sorted(lines.items()))
