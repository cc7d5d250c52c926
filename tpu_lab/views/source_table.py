"""The lines of a run with what each cost and which findings it has: the same rows for text and HTML."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..record.findings import Finding
from ..record.happenings import Failure
from ..record.run import Run
from ..record.source import Source, SourceLine
from ..record.totals import LineCost

CELL_LINES = 300
"""Most lines shown of the cell."""
OTHER_SOURCES, OTHER_LINES = 4, 16
"""Most other sources shown, and most lines of each: the dearest ones."""


@dataclass(frozen=True)
class SourceRow:
    """One line. `time_ns` is None where no op ran."""

    number: int
    text: str
    time_ns: int | None
    backward_ns: int
    new_bytes: int
    findings: tuple[Finding, ...]
    failed: bool


@dataclass(frozen=True)
class SourceTable:
    """One source's rows. `hidden` lines were left out."""

    source: Source
    rows: tuple[SourceRow, ...]
    hidden: int

    @property
    def title(self) -> str:
        """What stands over the code."""
        return "Cell as it ran" if self.source.kind == "cell" else self.source.name


def source_tables(run: Run) -> list[SourceTable]:
    """The cell first, whole; then the code it called that cost most, only lines that cost something or have a finding."""
    costs = {(cost.source, cost.line): cost for cost in run.lines}
    found: dict[tuple[int, int], list[Finding]] = {}
    for finding in run.findings:
        for where in _places(run, finding.location, finding.cell_location):
            found.setdefault(where, []).append(finding)
    failed = {where for failure in run.failures for where in _places(run, failure.location, failure.cell_location)}
    cells, others = [], []
    for index, source in enumerate(run.sources):
        rows = []
        for line in source.lines:
            where = (index, line.number)
            cost = costs.get(where)
            if cost is not None or where in found or source.kind == "cell":
                rows.append(_row(line, cost, tuple(found.get(where, ())), where in failed))
        if rows and source.kind == "cell":
            cells.append(SourceTable(source, tuple(rows[:CELL_LINES]), len(rows) - len(rows[:CELL_LINES])))
        elif rows:
            dearest = sorted(rows, key=lambda row: -(row.time_ns or 0))[:OTHER_LINES]
            others.append(SourceTable(source, _outdented(sorted(dearest, key=lambda row: row.number)), len(rows) - len(dearest)))
    others.sort(key=lambda one: -sum(row.time_ns or 0 for row in one.rows))
    return cells + others[:OTHER_SOURCES]


def _outdented(rows: list[SourceRow]) -> tuple[SourceRow, ...]:
    """Rows without the indentation that all of them share."""
    shared = min((len(row.text) - len(row.text.lstrip()) for row in rows if row.text.strip()), default=0)
    return tuple(replace(row, text=row.text[shared:]) for row in rows)


def _row(line: SourceLine, cost: LineCost | None, found: tuple[Finding, ...], failed: bool) -> SourceRow:
    if cost is None:
        return SourceRow(line.number, line.text, None, 0, 0, found, failed)
    return SourceRow(line.number, line.text, cost.time_ns, cost.backward_ns, cost.new_bytes, found, failed)


def _places(run: Run, location: int, cell_location: int) -> set[tuple[int, int]]:
    """Source index and line in the cell and in the code it called."""
    return {(run.locations[index].source, run.locations[index].line) for index in (location, cell_location) if index >= 0}


def line_label(run: Run, location: int, cell_location: int = -1) -> str:
    """`line 8` in the cell, `net.py:8` elsewhere, both if the cell called other code; empty if not known."""
    parts = []
    for index in dict.fromkeys(index for index in (cell_location, location) if index >= 0):
        place = run.locations[index]
        source = run.sources[place.source]
        parts.append(f"line {place.line}" if source.kind == "cell" else f"{source.name}:{place.line}")
    return ", ".join(dict.fromkeys(parts))


def failure_label(run: Run, failure: Failure) -> str:
    """`RuntimeError in aten.mm at line 8`, `KeyboardInterrupt at line 5`."""
    parts = [failure.kind]
    if failure.op:
        parts.append(f"in {failure.op.removesuffix('.default')}")
    if label := line_label(run, failure.location, failure.cell_location):
        parts.append(f"at {label}")
    return " ".join(parts)
