"""A run as plain text: what it took, the lines with their costs, findings, the most expensive ops; and a comparison."""

from __future__ import annotations

from ..analysis.findings import with_findings
from ..analysis.op_groups import op_groups
from ..record.comparison import Comparison
from ..record.findings import Finding
from ..record.reasons import FindingKind
from ..record.run import Run
from . import sentences
from .flushes import flush_table
from .graphs import HEADER, graph_table, region_sentence
from .numbers import ARROW, BYTES, FLOP, TIME, TIMES, at_least, column_unit, count, counted, digits, duration, in_unit, shape, size, spread
from .source_table import SourceTable, failure_label, line_label, source_tables
from .text_table import table

TOP_OPS = 10


def summary(run: Run) -> str:
    """The whole run as text. Ends without a line break."""
    run = with_findings(run)
    blocks = [overview(run)]
    if run.comparison is not None:
        blocks.append(comparison(run.comparison))
    blocks += [_source(one) for one in source_tables(run)]
    blocks += [
        block
        for block in (
            sentences.time_sentence(run),
            region_sentence(run),
            _failures(run),
            _findings(run),
            _graphs(run),
            flush_table(run),
            _ops(run),
            sentences.peak_sentence(run),
        )
        if block
    ]
    return "\n\n".join(blocks)


def overview(run: Run) -> str:
    """Two lines: what ran where; the figures and counts."""
    title = " · ".join(part for part in (sentences.headline(run), run.id, run.name) if part)
    time, detail = sentences.wall(run)
    ops = f"{counted(run.totals.ops, 'op')} {ARROW} {sentences.kernels_counted(run)}"
    figures = [f"{time} ({detail})" if detail else time, ops, f"peak {sentences.peak(run)}"]
    figures += [words for _, number, words in sentences.happenings(run) if number]
    if run.ops_dropped:
        figures.append(f"{count(run.ops_dropped)} ops not kept")
    return f"{title}\n{' · '.join(figures)}"


def comparison(data: Comparison) -> str:
    """The modes side by side, after the sentences that state the result."""
    unit = column_unit([r.timing.steady_ns for r in data.modes], TIME)
    first = column_unit([r.timing.first_ns for r in data.modes], TIME)
    memory = column_unit([r.peak_bytes for r in data.modes], BYTES)
    header = [
        "mode",
        f"first, {first.name}",
        f"later, {unit.name}",
        f"spread, {unit.name}",
        f"peak, {memory.name}",
        "ops",
        "kernels",
        "syncs",
        "fallbacks",
        "breaks",
        "recompiles",
        "max rel. diff.",
    ]
    rows = []
    for r in data.modes:
        if r.failure:
            rows.append([r.mode, "failed", *[""] * 10])
            continue
        later = digits(r.timing.steady_ns / unit.scale) if r.timing.repeats else ""
        counts = [
            count(r.ops),
            at_least(count(r.kernels), r.kernels_exact),
            *(count(n) for n in (r.syncs, r.fallbacks, r.graph_breaks, r.recompiles)),
        ]
        peak = at_least(digits(r.peak_bytes / memory.scale), r.peak_exact)
        rows.append(
            [r.mode, digits(r.timing.first_ns / first.scale), later, spread(r.timing, unit), peak, *counts, sentences.difference_text(r, data)]
        )
    lines = [" ".join(sentences.compare_sentences(data)), sentences.conditions(data) if data.recorded else ""]
    lines += [*sentences.overlap_notes(data), *sentences.unsteady_notes(data), *sentences.break_even_sentences(data)]
    lines += [" ".join(sentences.memory_sentences(data)), sentences.numerics_sentence(data), sentences.largest_sentence(data)]
    failures = [f"{r.mode} failed: {r.failure}" for r in data.modes if r.failure]
    return "\n".join([*(line for line in lines if line), "", *table(header, rows, "l" + "r" * 11), *failures])


def _source(one: SourceTable) -> str:
    unit = column_unit([row.time_ns or 0 for row in one.rows], TIME)
    memory = column_unit([row.new_bytes for row in one.rows], BYTES)
    rows = []
    for row in one.rows:
        marks = " ".join(dict.fromkeys(FindingKind.of(f.id).mark for f in row.findings)) + (" raised" if row.failed else "")
        backward = in_unit(row.backward_ns, unit) if row.backward_ns else ""
        new = in_unit(row.new_bytes, memory) if row.new_bytes else ""
        rows.append([in_unit(row.time_ns, unit), backward, new, marks.strip(), str(row.number), row.text])
    lines = table([unit.name, "backward", f"{memory.name} new", "", "line", one.title], rows, "rrrlrl")
    return "\n".join([*lines, f"... {counted(one.hidden, 'more line')}"] if one.hidden else lines)


def _failures(run: Run) -> str:
    return "\n".join(": ".join(filter(None, [failure_label(run, f), f.message])) for f in run.failures)


def _findings(run: Run) -> str:
    if not run.findings:
        return ""
    lines = [counted(len(run.findings), "finding")]
    for f in run.findings:
        where = line_label(run, f.location, f.cell_location)
        lines.append("  ".join(part for part in (f.id, f.title, where, cost(f)) if part))
        lines.append(f"       {f.reason}" + (f" Moved {size(f.bytes)}." if f.bytes else ""))
        lines.append(f"       {ARROW} " + (f"goes away with {f.goes_away_with}" if f.goes_away_with else f.remedy))
        lines += [f"       | {words}" for words in f.message.splitlines()[:3]]
        lines += [f"       | {f.link}"] if f.link else []
    return "\n".join(lines)


def cost(finding: Finding) -> str:
    """`67.2 ms (3 × 22.4 ms)`, or how often if the cost is not known."""
    if finding.cost_ns is None:
        return f"{count(finding.count)}{TIMES}" if finding.count > 1 else ""
    total = duration(finding.cost_ns)
    return f"{total} ({count(finding.count)} {TIMES} {duration(finding.cost_ns / finding.count)})" if finding.count > 1 else total


def _graphs(run: Run) -> str:
    if not run.graphs:
        return ""
    found = graph_table(run)
    lines = table([*HEADER, f"compiled, {found.unit}"], found.rows, "lllrrrlr")
    return "\n".join(["Graphs of torch.compile", *lines, *([f"... {counted(found.more, 'more graph')}"] if found.more else [])])


def _ops(run: Run) -> str:
    groups = op_groups(run)
    top = groups[:TOP_OPS]
    if not top:
        return ""
    unit, flop, moved = (
        column_unit([g.time_ns for g in top], TIME),
        column_unit([g.flops or 0 for g in top], FLOP),
        column_unit([g.bytes or 0 for g in top], BYTES),
    )
    rows = [
        [
            g.op + (" (backward)" if g.backward and "backward" not in g.op else ""),
            g.module,
            f"{run.sources[g.source].name}:{g.line}" if g.source >= 0 and run.sources[g.source].kind != "cell" else str(g.line or ""),
            shape(g.result),
            count(g.count),
            in_unit(g.time_ns, unit),
            in_unit(g.flops, flop),
            in_unit(g.bytes, moved),
        ]
        for g in top
    ]
    title = f"Most expensive ops, {len(top)} of {count(len(groups))} kinds"
    note = "" if run.blocking else " (times of the host: ops were queued, not waited for)"
    return "\n".join([title + note, *table(["op", "module", "line", "result", "n", unit.name, flop.name, moved.name], rows, "llllrrrr")])
