"""What compile mode made of a cell: its graphs as table rows, and which lines ran together, as words."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.compile_reasons import RegionReason
from ..record.run import Run
from .numbers import TIME, column_unit, count, in_unit
from .source_table import line_label

HEADER = ("graph", "function", "line", "operators", "runs", "programs", "ends at")
MOST = 20
"""Graphs shown; the rest is counted."""


@dataclass(frozen=True)
class GraphTable:
    """Rows of text with the header `HEADER` and then the compile time in `unit`."""

    unit: str
    rows: list[list[str]]
    more: int


def graph_table(run: Run) -> GraphTable:
    """The graphs of a run, in the order they were first met."""
    unit = column_unit([graph.compile_ns for graph in run.graphs], TIME)
    rows = []
    for graph in run.graphs[:MOST]:
        end = run.graph_breaks[graph.ended_by] if graph.ended_by >= 0 else None
        ends = "its return" if end is None else f"break, {line_label(run, end.location, end.cell_location)}"
        where = line_label(run, graph.location, graph.cell_location)
        counts = count(graph.nodes), count(graph.runs), count(graph.programs)
        ready = in_unit(graph.compile_ns, unit) if graph.compile_ns else "before"
        rows.append([graph.name, graph.function, where, *counts, ends, ready])
    return GraphTable(unit.name, rows, len(run.graphs) - len(rows))


def region_sentence(run: Run) -> str:
    """`Compiled together: lines 3-7, 9. As plain Python: line 2 (a statement Dynamo cannot take).` Empty without regions."""
    compiled = [_lines(r.first_line, r.last_line) for r in run.regions if r.compiled]
    reasons: dict[str, list[str]] = {}
    for region in run.regions:
        if not region.compiled:
            title = RegionReason.of(region.reason).title
            reasons.setdefault(title[0].lower() + title[1:], []).append(_lines(region.first_line, region.last_line))
    words = f"Compiled together: lines {', '.join(compiled)}." if compiled else ""
    plain = "; ".join(f"{', '.join(lines)} ({title})" for title, lines in reasons.items())
    return " ".join(filter(None, [words, f"As plain Python: {plain}." if plain else ""]))


def _lines(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
