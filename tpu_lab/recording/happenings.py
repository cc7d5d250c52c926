"""Collects the rare events of a recording (syncs, fallbacks, builds, breaks, recompiles, exceptions) and turns them into record data.

Keeps no tensors, exceptions or tracebacks: an exception is read at once and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..device.events import OpProgram
from ..record.happenings import Failure, Fallback, GraphBreak, Recompile, Sync
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


class Happenings:
    """Raw rare events. Positions are lengths of the recorder's event list."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.builds: dict[OpProgram, tuple[int, str]] = {}
        self._syncs: list[tuple[Any, ...]] = []
        self._fallbacks: list[tuple[Any, ...]] = []
        self._breaks: list[tuple[Any, ...]] = []
        self._recompiles: list[tuple[Any, ...]] = []
        self._failures: list[tuple[Any, ...]] = []
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

    def graph_break(self, message: str, filename: str, line: int, reason: str) -> None:
        self.counts.graph_breaks += 1
        _add(self._breaks, (reason or BreakReason.from_dynamo(message).id, clean(message), filename, line))

    def recompile(self, message: str, function: str, filename: str, line: int, duration_ns: int, reason: str) -> None:
        self.counts.recompiles += 1
        _add(self._recompiles, (reason or RecompileReason.from_guard(message).id, function, clean(message), duration_ns, filename, line))

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

    def graph_breaks(self, table: SourceTable) -> tuple[GraphBreak, ...]:
        """Equal breaks on one line are one entry with a count."""
        counts: dict[tuple[Any, ...], int] = {}
        for row in self._breaks:
            counts[row] = counts.get(row, 0) + 1
        found = []
        for (reason, message, filename, line), count in counts.items():
            location = table.line(filename, line) if filename else -1
            found.append(GraphBreak(reason, message, location, table.cell(location), count))
        return tuple(found)

    def recompiles(self, table: SourceTable) -> tuple[Recompile, ...]:
        found = []
        for reason, function, message, duration, filename, line in self._recompiles:
            location = table.line(filename, line, function) if filename else -1
            found.append(Recompile(reason, function, message, duration, location, table.cell(location)))
        return tuple(found)

    def failures(self, table: SourceTable, op_before: Callable[[int], int]) -> tuple[Failure, ...]:
        return tuple(
            Failure(op, kind, message, table.place(*places[:2]), table.place(*places[2:]), op_before(position))
            for op, kind, message, places, position in self._failures
        )


def _add(rows: list[Row], row: Row) -> None:
    if len(rows) < LIMIT:
        rows.append(row)
