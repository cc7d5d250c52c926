"""The operator table to look at: text, an HTML fragment, and the data of the explorer in the extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..views import html_parts as parts
from ..views import theme
from ..views.markup import Markup, element
from ..views.numbers import count, percent
from ..views.packed import packed
from ..views.page import page
from .families import ORDER
from .rows import EXECUTORS, HERE, THERE, Coverage, Overload
from .sources import lowering_source

MIME_TYPE = "application/vnd.tpu-lab.coverage+json"
FORMAT = "tpu-lab-coverage-view"
WORDS = {"native": "native", "decomposed": "decomposed", "fallback": "CPU fallback", "missing": "missing"}
SIGNS = {"native": "●", "decomposed": "◐", "fallback": "△", "missing": "✕"}
_LETTERS = {"pass": "p", "declared": "d", "fail": "f"}
_LISTED = 12


def on_device(row: Overload, dtype: str) -> bool:
    """Whether samples of a dtype agreed with the CPU without leaving the device."""
    return row.here in ("native", "decomposed") and row.dtypes.get(dtype) == "pass"


def families(table: Coverage) -> list[str]:
    """The families with rows, in their order."""
    found = {row.family for row in table.rows}
    return [family for family in ORDER if family in found]


def heat(table: Coverage) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """For each family its rows, and by dtype how many overloads have samples and how many of these run on the device."""
    for family in families(table):
        rows = [row for row in table.rows if row.family == family]
        cells = [(sum(d in row.dtypes for row in rows), sum(on_device(row, d) for row in rows)) for d in table.dtypes]
        yield family, len(rows), cells


def summary(table: Coverage) -> str:
    """Counts by status here and on TorchTPU, the overloads that models use and that are not on the device, and how old the data is."""
    there = {name: sum(row.torch_tpu == name for row in table.rows) for name in THERE}
    lines = [
        f"{count(len(table))} ATen overloads",
        "here             " + ", ".join(f"{count(n)} {WORDS[name]}" for name, n in table.counts().items()),
        "TorchTPU 0.2.0   " + ", ".join(f"{count(n)} {THERE[name]}" for name, n in there.items()),
    ]
    for title, rows in (("not on the device here", _wanted(table, "here")), ("missing on TorchTPU", _wanted(table, "torch_tpu"))):
        if rows:
            names = ", ".join(f"{row.aten} ({row.model_types})" for row in rows)
            lines.append(f"used by models and {title} (model types): {names}")
    made = table.made["conformance"]
    lines.append(f"verified {made['date']} with torch {made['torch']}, jax {made['jax']}")
    return "\n".join(lines)


def _wanted(table: Coverage, by: str) -> list[Overload]:
    bad = ("fallback", "missing")
    used = [row for row in table.rows if row.model_types and row.way != "elsewhere"]  # the counts were taken on a CPU, with its own kernels
    return [row for row in used if (row.here in bad if by == "here" else row.torch_tpu == "missing")][:_LISTED]


def html_fragment(table: Coverage) -> Markup:
    """The counts, the heat map and the most wanted rows, without scripts."""
    counts = [parts.figure(f"{SIGNS[name]} {WORDS[name]}", count(n)) for name, n in table.counts().items()]
    made = table.made["conformance"]
    note = f"verified {made['date']} with torch {made['torch']}, jax {made['jax']}; number: % of the overloads with samples that run on the device"
    columns = [parts.Column("family", "left"), parts.Column("overloads"), *(parts.Column(dtype) for dtype in table.dtypes)]
    rows = [[family, count(size), *(_share(ran, tried) for tried, ran in cells)] for family, size, cells in heat(table)]
    wanted = [_line(row) for row in _wanted(table, "here") + _wanted(table, "torch_tpu")]
    heads = [parts.Column("overload", "left", theme.CODE), parts.Column("here", "left"), parts.Column("TorchTPU 0.2.0", "left")]
    heads += [parts.Column("model types"), parts.Column("", "left")]
    return parts.frame(
        element("div", f"{count(len(table))} ATen overloads", style="font-size:15px;font-weight:600;margin:0 0 8px"),
        element("div", *counts, style="display:flex;flex-wrap:wrap"),
        parts.title("Family by dtype", note),
        parts.table(columns, rows),
        *([parts.title("Used by models, not on the device here or on TorchTPU"), parts.table(heads, wanted)] if wanted else []),
        label="Operator coverage",
    )


def _line(row: Overload) -> list[str]:
    why = row.note or (f"needs aten.{row.torch_tpu_needs}" if row.torch_tpu_needs else "")
    return [row.aten, WORDS[row.here], THERE[row.torch_tpu], count(row.model_types), why]


def _share(ran: int, tried: int) -> str:
    return percent(ran, tried).removesuffix("%").strip() if tried else "·"


def view_data(table: Coverage) -> dict[str, Any]:
    """The data of the explorer: a column for each field, what only the pane of one overload shows as compressed text."""
    names = families(table)
    rows = table.rows
    return {
        "format": FORMAT,
        "schema": "1.0",
        "made": table.made,
        "dtypes": list(table.dtypes),
        "families": names,
        "model_types": table.model_types,
        "statuses": {name: [WORDS[name], HERE[name]] for name in HERE},
        "name": [row.name for row in rows],
        "family": [names.index(row.family) for row in rows],
        "here": [list(HERE).index(row.here) for row in rows],
        "there": [list(THERE).index(row.torch_tpu) for row in rows],
        "models": [row.model_types for row in rows],
        "tried": ["".join(_LETTERS.get(row.dtypes.get(d, ""), "-") for d in table.dtypes) for row in rows],
        "executors": ["".join(_LETTERS.get(row.executors.get(e, ""), "-") for e in EXECUTORS) for row in rows],
        "details": _details(table),
    }


def _details(table: Coverage) -> dict[str, str]:
    """What the pane shows of each row, in their order, packed: it is read when the table is on the screen."""
    from .table import programs

    texts = programs()
    found = []
    for row in table.rows:
        where, source = lowering_source(row.lowering) if row.lowering else ("", "")
        entry = {
            "schema": row.schema,
            "note": row.note,
            "needs": row.torch_tpu_needs,
            "tests": list(row.tests),
            "where": where,
            "source": source,
            "calls": list(row.calls),
            "example": row.example,
            "program": texts.get(row.name, ""),
        }
        found.append({key: value for key, value in entry.items() if value})
    return packed(found)


def coverage_page(table: Coverage) -> str:
    """One page that opens from disk. Raises MissingPackageError where the front end was not built."""
    return page("coverage", view_data(table), "Operator coverage", html_fragment(table), engine=False)


def mime_bundle(table: Coverage) -> dict[str, Any]:
    """Text, HTML and the explorer's data."""
    return {"text/plain": summary(table), "text/html": html_fragment(table), MIME_TYPE: packed(view_data(table))}
