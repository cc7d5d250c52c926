"""Findings of a run: equal happenings on one line become one finding with a count, a cost, a mechanism and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ..record.findings import Finding
from ..record.happenings import Fallback, Flush, GraphBreak, Recompile, Sync
from ..record.reasons import BreakReason, ClusterState, FallbackReason, FindingKind, RecompileReason, SyncReason
from ..record.run import Run

Row = TypeVar("Row", Sync, Fallback, Flush, GraphBreak, Recompile)


def with_findings(run: Run) -> Run:
    """The run with its findings worked out; one that has findings is returned as it is."""
    return run if run.findings else replace(run, findings=findings(run))


def findings(run: Run) -> tuple[Finding, ...]:
    """All findings of a run: wrong values first, then by cost, costs that are not known last; those that go away with others after all."""
    found = [*_syncs(run), *_fallbacks(run), *_recompiles(run), *_near_limit(run), *_breaks(run), *_not_fused(run), *_not_rewound(run)]
    return tuple(sorted(found, key=lambda f: (f.severity != "wrong", bool(f.goes_away_with), f.cost_ns is None, -(f.cost_ns or 0), f.id)))


_IN_LOOPS = (SyncReason.ITEM, SyncReason.CPU)
_ONCE = "Nothing, where Python needs the value: it was read once. In a loop, keep it on the device and read it after the loop."


def _syncs(run: Run) -> list[Finding]:
    found = []
    for rows in _groups(run.syncs, lambda row: (row.reason, _line(run, row))):
        reason = SyncReason.of(rows[0].reason)
        words = "" if reason is not SyncReason.UNKNOWN else rows[0].reason
        cost, moved = sum(row.duration_ns for row in rows), sum(row.nbytes for row in rows)
        remedy = _ONCE if len(rows) == 1 and reason in _IN_LOOPS else reason.remedy
        found.append(_finding(FindingKind.HOST_SYNC, reason.title, reason.sentence, remedy, rows, cost, moved, words))
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
        kind = FindingKind.RECOMPILE_LIMIT if reason is RecompileReason.LIMIT else FindingKind.RECOMPILE
        cost = sum(row.duration_ns for row in rows) or None
        sentence = " ".join(filter(None, [reason.sentence, _changed(rows)]))
        found.append(_finding(kind, reason.title, sentence, reason.remedy, rows, cost, None, rows[-1].message))
    return found


def _changed(rows: Sequence[Recompile]) -> str:
    """`n was 2, then 3, 4.`, where the values are known."""
    values = [row.new for row in rows if row.new]
    if not values or not rows[0].guard:
        return ""
    name = rows[0].guard.partition(" == ")[0]
    shown = list(dict.fromkeys(values))
    later = ", ".join(shown[:_VALUES_SHOWN]) + (f" and {len(shown) - _VALUES_SHOWN} more" if len(shown) > _VALUES_SHOWN else "")
    return f"`{name}`: {rows[0].old or 'another value'}, then {later}."


_VALUES_SHOWN = 4
_MARGIN = 2
"""A function that may be compiled this many times more, or fewer, is near its limit."""


def _near_limit(run: Run) -> list[Finding]:
    """Functions that are about to be no longer compiled, each once; not those that already are not."""
    latest: dict[tuple[str, Hashable], Recompile] = {}
    for row in run.recompiles:
        latest[row.function, _line(run, row)] = row
    beyond = {row.function for row in run.recompiles if RecompileReason.of(row.reason) is RecompileReason.LIMIT}
    highest: dict[str, Recompile] = {}
    for row in latest.values():
        if row.function not in highest or row.version > highest[row.function].version:
            highest[row.function] = row
    kind = FindingKind.NEAR_RECOMPILE_LIMIT
    found = []
    for function, row in highest.items():
        left = row.limit - row.version
        if row.limit and 0 <= left <= _MARGIN and function not in beyond:
            words = (
                f"{function or 'The function'} has {row.version} programs; with {row.limit} torch.compile stops compiling it, and it runs op by op."
            )
            remedy = "Remove the cause of its recompiles; `torch._dynamo.config.recompile_limit` raises the limit."
            found.append(_finding(kind, f"{row.version} of {row.limit} programs: near the limit", words, remedy, [row], None, None, ""))
    return found


_READS_VALUES = (BreakReason.ITEM, BreakReason.BRANCH, BreakReason.DYNAMIC_SIZE, BreakReason.PRINT, BreakReason.NUMPY)


def _breaks(run: Run) -> list[Finding]:
    found = []
    sync_lines = {_line(run, sync) for sync in run.syncs}
    for rows in _groups(run.graph_breaks, lambda row: (row.reason, row.id, _line(run, row))):
        row, reason, line = rows[0], BreakReason.of(rows[0].reason), _line(run, rows[0])
        kind = FindingKind.TRACE_GIVEN_UP if reason is BreakReason.TOO_LONG else FindingKind.GRAPH_BREAK
        one = _finding(kind, reason.title, _why(rows, reason), row.remedy or reason.remedy, rows, _extra_ns(rows), None, row.message)
        one = replace(one, count=sum(row.count for row in rows), link=row.link)
        if reason in _READS_VALUES and line and line in sync_lines:  # no value read, no break
            one = replace(one, goes_away_with=FindingKind.HOST_SYNC.id, remedy="")
        found.append(one)
    return found


def _extra_ns(rows: Sequence[GraphBreak]) -> int | None:
    """What compiling the extra graphs took; the waits on the line are a finding of their own."""
    return sum(row.graph_ns for row in rows) or None


def _why(rows: Sequence[GraphBreak], reason: BreakReason) -> str:
    """The mechanism, what it led to, and PyTorch's id."""
    graphs, syncs = sum(row.graphs for row in rows), sum(row.syncs for row in rows)
    led = [f"{graphs} extra {'graph' if graphs == 1 else 'graphs'}"] if graphs else []
    led += [f"{syncs} host {'sync' if syncs == 1 else 'syncs'} on the line"] if syncs else []
    words = [reason.sentence, f"It led to {' and '.join(led)}." if led else ""]
    if any(row.uncompiled for row in rows) and reason is not BreakReason.SKIPPED:
        words.append("Nothing of the function is compiled.")
    words.append(f"PyTorch calls it {rows[0].id}." if rows[0].id else "")
    return " ".join(filter(None, words))


def _not_fused(run: Run) -> list[Finding]:
    """Clusters that could not be compiled, by line."""
    kind, state = FindingKind.NOT_FUSED, ClusterState.FAILED
    failed = [row for row in run.flushes if row.state == state.id]
    found = []
    for rows in _groups(failed, lambda row: _line(run, row)):
        cost = sum(row.duration_ns for row in rows) or None
        found.append(_finding(kind, kind.title, state.sentence, state.remedy, rows, cost, None, rows[0].message))
    return found


def _not_rewound(run: Run) -> list[Finding]:
    names = run.comparison.not_rewound if run.comparison is not None else ()
    if not names:
        return []
    kind = FindingKind.NOT_REWOUND
    words = f"{', '.join(names)} cannot be put back to where it was before the cell, so later modes go on where the first one stopped."
    remedy = "Make the iterator inside the cell: `for x in make()` instead of `for x in it`."
    return [Finding(kind.id, kind.title, words, remedy, severity="wrong", count=len(names))]


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


def _line(run: Run, row: Sync | Fallback | Flush | GraphBreak | Recompile) -> tuple[tuple[int, int], ...]:
    """Source and line of the cell and of the code in it that a row belongs to."""
    places = [run.locations[index] for index in (row.cell_location, row.location) if index >= 0]
    return tuple((place.source, place.line) for place in places)
