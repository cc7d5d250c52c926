"""A comparison of modes as HTML: the sentences that state the result, bars with spread, and the table."""

from __future__ import annotations

from ..record.comparison import Comparison, ModeResult
from . import sentences, theme
from .html_parts import Column, frame, paragraph, spread_bar, table
from .markup import Markup, element
from .numbers import BYTES, TIME, Unit, at_least, column_unit, count, digits, duration, exact_bytes, spread


def comparison_html(data: Comparison) -> str:
    """The fragment for a comparison alone."""
    return frame(*comparison_parts(data), label="tpu_lab comparison: " + " ".join(sentences.compare_sentences(data)))


def comparison_parts(data: Comparison) -> list[Markup]:
    """The parts of a comparison, to stand in a run's frame."""
    box = element("span", "measured", style=f"border:1px solid {theme.LINE};border-radius:3px;padding:0 4px;margin-left:6px")
    head = element("div", " ".join(sentences.compare_sentences(data)), style="font-size:15px;font-weight:600;margin:2px 0")
    note = paragraph(sentences.conditions(data), box, muted=True)
    parts = [head, note, element("div", _bars(data), style="margin:8px 0")]
    parts += [paragraph(text, muted=True) for text in (*sentences.overlap_notes(data), *sentences.unsteady_notes(data))]
    parts += [paragraph(text) for text in sentences.break_even_sentences(data)]
    memory = " ".join(sentences.memory_sentences(data))
    parts += [paragraph(text) for text in (memory, sentences.numerics_sentence(data), sentences.largest_sentence(data)) if text]
    parts += [_table(data)]
    parts += [paragraph(f"{r.mode} failed: {r.failure}") for r in data.modes if r.failure]
    return parts


def _bars(data: Comparison) -> Markup:
    ran = [r for r in data.modes if not r.failure]
    # One late call of a mode does not shrink the bars of all others: the table has its time.
    slowest = max((r.timing.steady_ns for r in ran), default=0)
    full = min(2 * slowest, max((r.timing.high_ns for r in ran), default=0))
    chosen = min(ran, key=lambda r: r.timing.steady_ns).mode if ran else ""
    rows = [
        [
            element("span", r.mode, style="font-weight:600"),
            element("span", r.target, style=f"color:{theme.MUTED}"),
            spread_bar(r.timing.low_ns, r.timing.steady_ns, min(r.timing.high_ns, full), full, r.mode == chosen),
            element("span", duration(r.timing.steady_ns), style="font-weight:600"),
        ]
        for r in ran
    ]
    header = "median, shortest to longest" if any(r.timing.repeats for r in ran) else "one call"
    return table([Column("mode", "left"), Column("", "left"), Column(header, "left"), Column("")], rows)


def _table(data: Comparison) -> Markup:
    first = column_unit([r.timing.first_ns for r in data.modes], TIME)
    later = column_unit([r.timing.steady_ns for r in data.modes], TIME)
    memory = column_unit([r.peak_bytes for r in data.modes], BYTES)
    columns = [
        Column("mode", "left", "font-weight:600"),
        Column(f"first, {first.name}"),
        Column(f"later, {later.name}"),
        Column(f"spread, {later.name}"),
    ]
    columns += [
        Column(f"peak, {memory.name}"),
        Column("ops"),
        Column("kernels"),
        Column("syncs"),
        Column("fallbacks"),
        Column("breaks"),
        Column("recompiles"),
    ]
    columns.append(Column("max rel. difference"))
    rows = [_row(r, data, first, later, memory) for r in data.modes]
    return element("div", table(columns, rows), style="margin:10px 0 0")


def _row(r: ModeResult, data: Comparison, first: Unit, later: Unit, memory: Unit) -> list[str]:
    if r.failure:
        return [r.mode, element("span", "failed", style=f"color:{theme.WRONG}"), *[""] * 10]
    steady = digits(r.timing.steady_ns / later.scale) if r.timing.repeats else ""
    peak = element("span", at_least(digits(r.peak_bytes / memory.scale), r.peak_exact), title=exact_bytes(r.peak_bytes))
    counts = [_quiet(n) for n in (r.syncs, r.fallbacks, r.graph_breaks, r.recompiles)]
    kernels = at_least(count(r.kernels), r.kernels_exact)
    return [
        r.mode,
        digits(r.timing.first_ns / first.scale),
        steady,
        spread(r.timing, later),
        peak,
        count(r.ops),
        kernels,
        *counts,
        sentences.difference_text(r, data),
    ]


def _quiet(value: int) -> str:
    """A zero is muted."""
    return count(value) if value else element("span", "0", style=f"color:{theme.MUTED}")
