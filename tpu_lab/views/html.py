"""A run as one HTML fragment: summary, source with costs and marks, findings, most expensive ops, memory. No script, no style element."""

from __future__ import annotations

from ..analysis.findings import with_findings
from ..analysis.op_groups import op_groups
from ..record.findings import Finding
from ..record.reasons import FindingKind
from ..record.run import Run
from . import sentences, theme
from .graphs import HEADER, graph_table, region_sentence
from .html_compare import comparison_parts
from .html_parts import CODE_SPAN, Column, bar, chip, details, figure, frame, paragraph, sign, table, title
from .markup import Markup, code_text, element, join
from .numbers import ARROW, BYTES, FLOP, NBSP, TIME, TIMES, column_unit, count, counted, duration, exact_bytes, in_unit, percent, shape, size
from .source_table import SourceTable, failure_label, line_label, source_tables
from .text import cost

TOP_OPS = 10
TOP_TENSORS = 8
FINDINGS = 12


def run_html(run: Run) -> str:
    """The fragment for a run."""
    run = with_findings(run)
    parts = [_summary(run), *_failures(run)]
    if run.comparison is not None:
        parts.append(element("div", *comparison_parts(run.comparison), style="margin:12px 0"))
    outside = sentences.time_sentence(run)
    parts += [*_sources(run), *([paragraph(outside, muted=True)] if outside else []), *_findings(run), *_graphs(run), *_ops(run), *_memory(run)]
    return frame(*parts, label=f"tpu_lab run {run.id}: {sentences.headline(run)}")


def _summary(run: Run) -> Markup:
    name = " · ".join(part for part in (run.id, run.name) if part)
    target = element("div", run.target, style="font-size:20px;font-weight:600;line-height:1.2")
    head = element("div", element("div", f"{run.mode} on", style=f"font-size:12px;color:{theme.MUTED}"), target, style="margin:0 32px 4px 0")
    time, detail = sentences.wall(run)
    ops = f"{count(run.totals.ops)} {ARROW} {sentences.kernels(run)}"
    figures = [
        head,
        figure(f"Wall time, {run.comparison.baseline}" if run.comparison else "Wall time", time, detail, "measured"),
        figure(f"Ops {ARROW} kernels", ops, f"{count(run.ops_dropped)} ops not kept" if run.ops_dropped else ""),
        figure("Peak memory", sentences.peak(run), exact=exact_bytes(run.memory.peak_bytes)),
        figure("Run", name) if run.name else Markup(""),
    ]
    rows = sentences.happenings(run)
    chips = [chip(mark, words) for mark, number, words in rows if number]
    none = [words.replace(f"0{NBSP}", "") for _, number, words in rows if not number]
    quiet = element("span", "no " + ", ".join(none), style=f"font-size:12px;color:{theme.MUTED}") if none else Markup("")
    line = element("div", *figures, style="display:flex;flex-wrap:wrap;align-items:flex-end")
    return join([line, element("div", *chips, quiet, style="margin:6px 0 0")])


def _failures(run: Run) -> list[Markup]:
    quote = f"{theme.QUOTE};font-size:12px;margin:2px 0 0;background:transparent;color:inherit"
    found = []
    for failure in run.failures:
        words = element("div", failure_label(run, failure), style=f"font-weight:600;color:{theme.WRONG}")
        message = element("pre", failure.message, style=quote) if failure.message else ""
        found.append(element("div", words, message, style="margin:10px 0 0"))
    return found


def _sources(run: Run) -> list[Markup]:
    """The cell, then the code it called."""
    parts = []
    tables = source_tables(run)
    note = "" if run.blocking else "times of the host: ops were queued, not waited for"
    for n, one in enumerate(tables):
        if one.source.kind == "cell":
            parts.append(title("", note) if note else element("div", style="height:10px"))
        elif n == 0 or tables[n - 1].source.kind == "cell":
            parts.append(title("Inside the code it calls" if n else "Source", "the same time again, by the line that called the op" if n else note))
        parts.append(_source(one))
    return parts


def _source(one: SourceTable) -> Markup:
    unit = column_unit([row.time_ns or 0 for row in one.rows], TIME)
    memory = column_unit([row.new_bytes for row in one.rows], BYTES)
    most = max((row.time_ns or 0 for row in one.rows), default=0)
    rows = []
    for row in one.rows:
        marks = [sign(FindingKind.of(f.id).mark, _tip(f)) for f in _one_of_each(row.findings)]
        marks += [sign("failure", "An exception came from this line.")] if row.failed else []
        backward = in_unit(row.backward_ns, unit) if row.backward_ns else ""
        new = in_unit(row.new_bytes, memory) if row.new_bytes else ""
        number = element("span", str(row.number), style=f"color:{theme.MUTED}")
        code = element("code", row.text or " ", style=f"{theme.CODE};font-size:12px;white-space:pre;background:transparent;padding:0;color:inherit")
        rows.append([in_unit(row.time_ns, unit), bar((row.time_ns or 0) / most if most else 0), backward, new, join(marks, "  "), number, code])
    columns = [
        Column(unit.name),
        Column("", "left"),
        Column("backward"),
        Column(f"{memory.name} new"),
        Column("", "left"),
        Column("line"),
        Column(one.title, "left"),
    ]
    hidden = [paragraph(f"{counted(one.hidden, 'more line')} not shown.", muted=True)] if one.hidden else []
    return element("div", table(columns, rows), *hidden, style="margin:0 0 8px")


def _tip(finding: Finding) -> str:
    """A mark's reason and remedy, for the pointer; the findings below say the same."""
    words = cost(finding)
    remedy = f"Goes away with {finding.goes_away_with}." if finding.goes_away_with else finding.remedy
    return "\n".join(part for part in (finding.title, finding.reason, f"Cost: {words}" if words else "", remedy) if part)


def _one_of_each(findings: tuple[Finding, ...]) -> list[Finding]:
    return list({finding.id: finding for finding in reversed(findings)}.values())[::-1]


def _findings(run: Run) -> list[Markup]:
    if not run.findings:
        return []
    shown = run.findings[:FINDINGS]
    wide = "white-space:normal;min-width:260px;padding-top:4px;padding-bottom:6px"
    top = "padding-top:4px"
    columns = [
        Column("", "left", top),
        Column("", "left", top),
        Column("", "left", wide),
        Column("", style=f"{top};color:{theme.MUTED}"),
        Column("", style=top),
    ]
    more = [paragraph(f"{counted(len(run.findings) - len(shown), 'more finding')} not shown.", muted=True)] if len(shown) < len(run.findings) else []
    lines = [f"border-bottom:1px solid {theme.LINE}"] * len(shown)
    return [
        title(counted(len(run.findings), "finding"), "most expensive first" if len(run.findings) > 1 else ""),
        table(columns, [_finding(run, f) for f in shown], lines),
        *more,
    ]


def _finding(run: Run, f: Finding) -> list[str]:
    glyph, name, colour, _ = theme.MARKS[FindingKind.of(f.id).mark]
    remedy = f"goes away with {f.goes_away_with}" if f.goes_away_with else f.remedy
    words = [
        element("div", f.title, style="font-weight:600"),
        element("div", f.reason + (f" Moved {size(f.bytes)}." if f.bytes else ""), style=f"color:{theme.MUTED}"),
        element("div", join([f"{ARROW} ", code_text(remedy, CODE_SPAN)])),
    ]
    if f.message:
        words.append(element("div", f.message, style=f"{theme.QUOTE};font-size:11px;color:{theme.MUTED}"))
    if f.link.startswith("https://"):
        words.append(element("a", f.link, href=f.link, style="font-size:11px"))
    total = element("div", duration(f.cost_ns) if f.cost_ns is not None else "", style="font-weight:600")
    each = f"{count(f.count)} {TIMES} {duration(f.cost_ns / f.count)}" if f.cost_ns is not None else f"{count(f.count)}{TIMES}"
    times = element("div", each if f.count > 1 else "", style=f"font-size:11px;color:{theme.MUTED}")
    mark = element("b", glyph, style=f"color:{colour}", title=name)
    return [mark, element("span", f.id, style=theme.CODE), join(words), line_label(run, f.location, f.cell_location), join([total, times])]


def _graphs(run: Run) -> list[Markup]:
    sentence = region_sentence(run)
    parts = [paragraph(sentence, muted=True)] if sentence else []
    if run.graphs:
        found = graph_table(run)
        left = ("graph", "function", "ends at")
        columns = [Column(name, "left" if name in left else "right") for name in HEADER]
        more = [paragraph(f"{counted(found.more, 'more graph')} not shown.", muted=True)] if found.more else []
        rows = [[element("span", text) for text in row] for row in found.rows]
        parts += [table([*columns, Column(f"compiled, {found.unit}")], rows), *more]
    return [details(f"{counted(len(run.graphs), 'graph')} of torch.compile", *parts)] if parts else []


def _ops(run: Run) -> list[Markup]:
    groups = op_groups(run)
    top = groups[:TOP_OPS]
    if not top:
        return []
    unit, flop, moved = (
        column_unit([g.time_ns for g in top], TIME),
        column_unit([g.flops or 0 for g in top], FLOP),
        column_unit([g.bytes or 0 for g in top], BYTES),
    )
    rows = []
    for g in top:
        name = element("span", g.op, style=theme.CODE)
        back = element("span", " backward", style=f"color:{theme.MUTED}") if g.backward and "backward" not in g.op else ""
        where = (
            str(g.line)
            if g.source >= 0 and run.sources[g.source].kind == "cell"
            else (f"{run.sources[g.source].name}:{g.line}" if g.source >= 0 else "")
        )
        time = [in_unit(g.time_ns, unit), bar(g.time_ns / top[0].time_ns if top[0].time_ns else 0)]
        result = element("span", shape(g.result), style=theme.CODE)
        rows.append(
            [
                join([name, back]),
                g.module,
                where,
                result,
                count(g.count),
                *time,
                in_unit(g.flops, flop),
                in_unit(g.bytes, moved),
                "" if g.kind in ("xla", "aten") else g.kind,
            ]
        )
    columns = [
        Column("op", "left"),
        Column("module", "left"),
        Column("line"),
        Column("result", "left"),
        Column("calls"),
        Column(unit.name),
        Column("", "left"),
    ]
    columns += [Column(flop.name), Column(moved.name), Column("runs as", "left")]
    return [title("Most expensive ops", f"{len(top)} of {count(len(groups))} kinds"), table(columns, rows)]


def _memory(run: Run) -> list[Markup]:
    sentence = sentences.peak_sentence(run)
    if not sentence or not run.memory.largest:
        return []
    top = run.memory.largest[:TOP_TENSORS]
    unit = column_unit([t.nbytes for t in top], BYTES)
    rows = []
    for t in top:
        made = (
            element("span", t.op.removesuffix(".default"), style=theme.CODE)
            if t.op
            else element("span", "before the run", style=f"color:{theme.MUTED}")
        )
        rows.append(
            [
                element("span", shape(t.spec), style=theme.CODE),
                made,
                line_label(run, t.location),
                in_unit(t.nbytes, unit),
                percent(t.nbytes, run.memory.peak_bytes),
            ]
        )
    columns = [Column("tensor", "left"), Column("made by", "left"), Column("line"), Column(unit.name), Column("share of peak")]
    tensors = sum(line.tensors for line in run.memory.lines)
    return [details(sentence, paragraph(f"{len(top)} of {counted(tensors, 'tensor')} alive at the peak.", muted=True), table(columns, rows))]
