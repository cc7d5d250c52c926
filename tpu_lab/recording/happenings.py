"""Collects the rare events of a recording (syncs, fallbacks, builds, breaks, recompiles, exceptions) and turns them into record data.

Keeps no tensors, exceptions or tracebacks: an exception is read at once and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..compiler.events import BreakTold, Frame, GraphTold, RecompileTold, RegionTold
from ..device.events import FlushTold, OpProgram
from ..record.break_remedies import remedy_for
from ..record.graphs import Graph, Region
from ..record.happenings import Failure, Fallback, Flush, GraphBreak, Recompile, Sync
from ..record.privacy import message as clean
from ..record.reasons import BreakReason, FallbackReason, RecompileReason
from .frames import SourceTable

LIMIT = 10_000
"""Of each kind, this many are kept; all are counted."""

Row = TypeVar("Row")


@dataclass
class Counts:
    """Totals of the rare events, also of those over the limit."""

    syncs: int = 0
    sync_ns: int = 0
    fallbacks: int = 0
    fallback_ns: int = 0
    graph_breaks: int = 0
    recompiles: int = 0
    failures: int = 0
    builds: int = 0
    build_ns: int = 0
    flushes: int = 0
    flush_ns: int = 0


class Happenings:
    """Raw rare events. Positions are lengths of the recorder's event list."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.builds: dict[OpProgram, tuple[int, str]] = {}
        self._syncs: list[tuple[Any, ...]] = []
        self._fallbacks: list[tuple[Any, ...]] = []
        self._breaks: list[BreakTold] = []
        self._recompiles: list[RecompileTold] = []
        self._graphs: list[GraphTold] = []
        self._regions: list[RegionTold] = []
        self._failures: list[tuple[Any, ...]] = []
        self._flushes: list[tuple[FlushTold, Any, int]] = []
        self._failed_ids: set[int] = set()

    def compiled(self, program: OpProgram, duration_ns: int, cache: str) -> None:
        self.counts.builds += 1
        self.counts.build_ns += duration_ns
        if len(self.builds) < LIMIT:
            self.builds[program] = (duration_ns, cache)

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int, places: Any, position: int) -> None:
        self.counts.syncs += 1
        self.counts.sync_ns += end_ns - start_ns
        _add(self._syncs, (reason, nbytes, start_ns, end_ns, places, position))

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int, places: Any) -> None:
        self.counts.fallbacks += 1
        self.counts.fallback_ns += end_ns - start_ns
        _add(self._fallbacks, (op, FallbackReason.from_text(reason).id, bytes_out, bytes_in, start_ns, end_ns, places))

    def graph_break(self, told: BreakTold) -> None:
        self.counts.graph_breaks += 1
        _add(self._breaks, told)

    def recompile(self, told: RecompileTold) -> None:
        self.counts.recompiles += 1
        _add(self._recompiles, told)

    def graph(self, told: GraphTold) -> None:
        _add(self._graphs, told)

    def region(self, told: RegionTold) -> None:
        _add(self._regions, told)

    def flush(self, told: FlushTold, places: Any, position: int) -> None:
        self.counts.flushes += 1
        self.counts.flush_ns += told.end_ns - told.start_ns
        _add(self._flushes, (told, places, position))

    def failed(self, op: str, error: BaseException, places: Any, position: int) -> None:
        if self.has(error):
            return
        self._failed_ids.add(id(error))
        self.counts.failures += 1
        _add(self._failures, (op, type(error).__name__, clean(str(error)), places, position))

    def has(self, error: BaseException) -> bool:
        """Whether this exception was recorded where it arose."""
        return id(error) in self._failed_ids

    def syncs(self, table: SourceTable, start_ns: int, op_before: Callable[[int], int]) -> tuple[Sync, ...]:
        return tuple(
            Sync(reason, nbytes, start - start_ns, end - start, table.place(*places[:2]), table.place(*places[2:]), op_before(position))
            for reason, nbytes, start, end, places, position in self._syncs
        )

    def fallbacks(self, table: SourceTable, start_ns: int) -> tuple[Fallback, ...]:
        return tuple(
            Fallback(op, reason, out, back, start - start_ns, end - start, table.place(*places[:2]), table.place(*places[2:]))
            for op, reason, out, back, start, end, places in self._fallbacks
        )

    def graph_breaks(self, table: SourceTable, syncs: Sequence[Sync]) -> tuple[GraphBreak, ...]:
        """In the order they were told; `syncs` are those of the run, for what a break's line waited."""
        waits: dict[tuple[int, int], list[int]] = {}
        for sync in syncs:
            for index in {sync.location, sync.cell_location} - {-1}:
                waits.setdefault(_line(table, index), []).append(sync.duration_ns)
        return tuple(_graph_break(told, table, waits) for told in self._merged().values())

    def _merged(self) -> dict[tuple[str, str, Frame | None], BreakTold]:
        """Equal breaks on one line as one, which counts them all."""
        merged: dict[tuple[str, str, Frame | None], BreakTold] = {}
        for told in self._breaks:
            key = _same(told)
            merged[key] = replace(told, count=merged[key].count + told.count) if key in merged else told
        return merged

    def recompiles(self, table: SourceTable) -> tuple[Recompile, ...]:
        found = []
        for told in self._recompiles:
            location = _place(table, told.frame)
            reason = told.reason or RecompileReason.from_guard(f"{told.message} {told.guard}").id
            function = told.frame.function if told.frame is not None else ""
            message, guard, old, new = (clean(text) for text in (told.message, told.guard, told.old, told.new))
            where = location, table.cell(location)
            found.append(Recompile(reason, function, message, told.duration_ns, *where, guard, old, new, version=told.version, limit=told.limit))
        return tuple(found)

    def graphs(self, table: SourceTable) -> tuple[Graph, ...]:
        found = []
        breaks = {key: number for number, key in enumerate(self._merged())}
        for told in self._graphs:
            location, function = _place(table, told.frame), told.frame.function if told.frame is not None else ""
            counts = told.nodes, told.compile_ns, told.runs, told.programs, told.sizes
            ended = breaks.get(_same(told.ended_by), -1) if told.ended_by is not None else -1
            found.append(Graph(told.name, function, *counts, ended, location, table.cell(location), tuple(clean(g) for g in told.guards)))
        return tuple(found)

    def regions(self, table: SourceTable) -> tuple[Region, ...]:
        found = []
        for told in sorted(self._regions, key=lambda region: region.first_line):
            first, last = (table.locations[table.line(told.filename, line)] for line in (told.first_line, told.last_line))
            found.append(Region(first.source, first.line, last.line, not told.reason, told.reason))
        return tuple(found)

    def flushes(self, table: SourceTable, start_ns: int, op_before: Callable[[int], int]) -> tuple[Flush, ...]:
        found = []
        for told, places, position in self._flushes:
            took = told.start_ns - start_ns, told.end_ns - told.start_ns
            where = table.place(*places[:2]), table.place(*places[2:]), op_before(position)
            found.append(Flush(told.reason, told.state, told.ops, told.live, *took, told.difference, told.message, *where))
        return tuple(found)

    def failures(self, table: SourceTable, op_before: Callable[[int], int]) -> tuple[Failure, ...]:
        return tuple(
            Failure(op, kind, message, table.place(*places[:2]), table.place(*places[2:]), op_before(position))
            for op, kind, message, places, position in self._failures
        )


def _add(rows: list[Row], row: Row) -> None:
    if len(rows) < LIMIT:
        rows.append(row)


def _same(told: BreakTold) -> tuple[str, str, Frame | None]:
    return told.reason, told.message, told.frame


def _place(table: SourceTable, frame: Frame | None) -> int:
    return table.line(frame.filename, frame.line, frame.function) if frame is not None and frame.filename else -1


def _line(table: SourceTable, location: int) -> tuple[int, int]:
    place = table.locations[location]
    return place.source, place.line


def _graph_break(told: BreakTold, table: SourceTable, waits: dict[tuple[int, int], list[int]]) -> GraphBreak:
    location = _place(table, told.frame)
    waited = waits.get(_line(table, location), []) if location >= 0 else []
    reason = BreakReason.of(told.reason) if told.reason else BreakReason.from_dynamo(f"{told.message} {told.id}")
    return GraphBreak(
        told.reason or reason.id,
        clean(told.message),
        location,
        table.cell(location),
        told.count,
        told.id,
        told.link,
        clean(told.explanation),
        tuple(clean(hint) for hint in told.hints),
        remedy_for(told.id, told.hints, reason),
        told.frame.function if told.frame is not None else "",
        tuple(_place(table, frame) for frame in told.stack),
        told.graphs,
        told.graph_ns,
        len(waited),
        sum(waited),
        told.uncompiled,
    )
