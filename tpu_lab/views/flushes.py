"""Flushes of the deferred executor as a table: by reason, line and how the cluster ran."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.happenings import Flush
from ..record.reasons import ClusterState, FlushReason, RecompileReason
from ..record.run import Run
from .numbers import TIME, column_unit, count, counted, in_unit
from .source_table import line_label
from .text_table import table

MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class FlushGroup:
    """Flushes with one reason on one line, of clusters that ran alike and differ alike from what has a program."""

    first: Flush
    count: int
    ops: int
    """Calls of all their clusters."""
    duration_ns: int


def flush_groups(run: Run) -> list[FlushGroup]:
    """In the order they were first met."""
    rows: dict[tuple[str, str, str, int, int], list[Flush]] = {}
    for flush in run.flushes:
        rows.setdefault((flush.reason, flush.state, flush.difference, flush.location, flush.cell_location), []).append(flush)
    return [FlushGroup(same[0], len(same), sum(f.ops for f in same), sum(f.duration_ns for f in same)) for same in rows.values()]


def flush_table(run: Run) -> str:
    """The table as text; empty for a run without flushes."""
    groups = flush_groups(run)
    if not groups:
        return ""
    unit = column_unit([g.duration_ns for g in groups], TIME)
    rows, notes = [], []
    for group in groups[:MOST_ROWS]:
        first = group.first
        where = line_label(run, first.location, first.cell_location)
        reason, state = FlushReason.of(first.reason), ClusterState.of(first.state)
        rows.append([reason.id, where, state.title, count(group.count), count(group.ops), count(first.live), in_unit(group.duration_ns, unit)])
        if first.difference:
            notes.append(f"  {where}: {RecompileReason.of(first.difference).title}: {first.message}".rstrip(": "))
    lines = table(["flush", "line", "ran as", "times", "ops", "live", unit.name], rows, "lllrrrr")
    more = len(groups) - len(rows)
    return "\n".join(["Flushes", *lines, *dict.fromkeys(notes), *([f"... {counted(more, 'more row')}"] if more > 0 else [])])
