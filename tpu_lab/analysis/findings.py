"""Findings of a run: equal happenings on one line become one finding with a count, a cost, a mechanism and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ..record.findings import Finding
from ..record.happenings import Fallback, GraphBreak, Recompile, Sync
from ..record.reasons import BreakReason, FallbackReason, FindingKind, RecompileReason, SyncReason
from ..record.run import Run

Row = TypeVar("Row", Sync, Fallback, GraphBreak, Recompile)


def with_findings(run: Run) -> Run:
    """The run with its findings worked out; one that has findings is returned as it is."""
    return run if run.findings else replace(run, findings=findings(run))


def findings(run: Run) -> tuple[Finding, ...]:
    """All findings of a run: wrong values first, then by cost, costs that are not known last; those that go away with others after all."""
    found = [*_syncs(run), *_fallbacks(run), *_recompiles(run), *_breaks(run)]
    return tuple(sorted(found, key=lambda f: (f.severity != "wrong", bool(f.goes_away_with), f.cost_ns is None, -(f.cost_ns or 0), f.id)))


def _syncs(run: Run) -> list[Finding]:
    found = []
    for rows in _groups(run.syncs, lambda row: (row.reason, _line(run, row))):
        reason = SyncReason.of(rows[0].reason)
        words = "" if reason is not SyncReason.UNKNOWN else rows[0].reason
        cost, moved = sum(row.duration_ns for row in rows), sum(row.nbytes for row in rows)
        found.append(_finding(FindingKind.HOST_SYNC, reason.title, reason.sentence, reason.remedy, rows, cost, moved, words))
    return found


def _fallbacks(run: Run) -> list[Finding]:
    found = []
    for rows in _groups(run.fallbacks, lambda row: (row.op, row.reason, _line(run, row))):
        reason = FallbackReason.of(rows[0].reason)
        words = "" if reason is not FallbackReason.UNKNOWN else rows[0].reason
        cost, moved = sum(row.duration_ns for row in rows), sum(row.bytes_out + row.bytes_in for row in rows)
        title = f"{rows[0].op.removesuffix('.default')} {reason.title}"
        found.append(_finding(FindingKind.FALLBACK, title, reason.sentence, reason.remedy, rows, cost, moved, words))
    return found


def _recompiles(run: Run) -> list[Finding]:
    found = []
    for rows in _groups(run.recompiles, lambda row: (row.reason, row.function, _line(run, row))):
        reason = RecompileReason.of(rows[0].reason)
        cost = sum(row.duration_ns for row in rows) or None
        found.append(_finding(FindingKind.RECOMPILE, reason.title, reason.sentence, reason.remedy, rows, cost, None, rows[-1].message))
    return found


_READS_VALUES = (BreakReason.ITEM, BreakReason.BRANCH, BreakReason.DYNAMIC_SIZE, BreakReason.PRINT, BreakReason.NUMPY)


def _breaks(run: Run) -> list[Finding]:
    found = []
    sync_lines = {_line(run, sync) for sync in run.syncs}
    for rows in _groups(run.graph_breaks, lambda row: (row.reason, _line(run, row))):
        reason, line = BreakReason.of(rows[0].reason), _line(run, rows[0])
        one = _finding(FindingKind.GRAPH_BREAK, reason.title, reason.sentence, reason.remedy, rows, None, None, rows[0].message)
        one = replace(one, count=sum(row.count for row in rows))
        if reason in _READS_VALUES and line and line in sync_lines:  # no value read, no break
            one = replace(one, goes_away_with=FindingKind.HOST_SYNC.id, remedy="")
        found.append(one)
    return found


def _finding(
    kind: FindingKind, title: str, reason: str, remedy: str, rows: Sequence[Row], cost: int | None, moved: int | None, words: str
) -> Finding:
    first = rows[0]
    return Finding(
        kind.id,
        title,
        reason,
        remedy,
        count=len(rows),
        cost_ns=cost,
        bytes=moved or None,
        location=first.location,
        cell_location=first.cell_location,
        message=words,
    )


def _groups(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> list[list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _line(run: Run, row: Sync | Fallback | GraphBreak | Recompile) -> tuple[tuple[int, int], ...]:
    """Source and line of the cell and of the code in it that a row belongs to."""
    places = [run.locations[index] for index in (row.cell_location, row.location) if index >= 0]
    return tuple((place.source, place.line) for place in places)
