"""A scan as HTML without scripts."""

from __future__ import annotations

from ..record.targets import TARGETS
from ..views import html_parts as parts
from ..views import theme
from ..views.markup import Markup, code_text, element
from ..views.numbers import count, exact_bytes, percent, size
from .explorer import SIGNS, WORDS
from .rows import THERE
from .scan import Scan
from .scan_text import lists, ops_shown, verdict


def fragment(scan: Scan) -> Markup:
    """Verdict, figures, operators, syncs, sizes, breaks, memory."""
    memory = scan.memory
    figures = [
        parts.figure("operators", count(len(scan.ops)), f"{count(sum(op.count for op in scan.ops))} calls"),
        parts.figure("not on the device here", count(sum(op.here in ("fallback", "missing") for op in scan.ops))),
        parts.figure("missing on TorchTPU 0.2.0", count(sum(op.torch_tpu == "missing" for op in scan.ops))),
        parts.figure("host syncs", count(sum(sync.count for sync in scan.syncs))),
        parts.figure("graph breaks", count(len(scan.breaks))),
        parts.figure("peak memory", size(memory.peak), "each operation alone", exact=exact_bytes(memory.peak)),
    ]
    return parts.frame(
        element("div", f"Scan of {scan.name}", style="font-size:15px;font-weight:600;margin:0 0 4px"),
        parts.paragraph(verdict(scan)),
        element("div", *figures, style="display:flex;flex-wrap:wrap;margin-top:8px"),
        *_stops(scan),
        *_operators(scan),
        *_memory(scan),
        label=f"Scan of {scan.name}",
    )


def _operators(scan: Scan) -> list[Markup]:
    shown = ops_shown(scan)
    columns = [
        parts.Column("operator", "left", theme.CODE),
        parts.Column("calls"),
        parts.Column("here", "left"),
        parts.Column("TorchTPU 0.2.0", "left"),
    ]
    columns += [parts.Column("dtypes", "left"), parts.Column("lines", "left", theme.CODE), parts.Column("", "left")]
    rows = []
    for op in shown:
        here = f"{SIGNS.get(op.here, '?')} {WORDS.get(op.here, op.here)}"
        there = f"{SIGNS['missing']} missing" if op.torch_tpu == "missing" else THERE.get(op.torch_tpu, op.torch_tpu)
        note = " · ".join(filter(None, ["either" if op.either else "", op.note]))
        rows.append([op.name, count(op.count), here, there, ", ".join(op.dtypes), ", ".join(op.lines[:3]), note])
    more = f"{count(len(scan.ops) - len(shown))} more in .ops" if len(scan.ops) > len(shown) else ""
    return [parts.title("Operators, those with a fault first", more), parts.table(columns, rows)]


def _stops(scan: Scan) -> list[Markup]:
    found: list[Markup] = []
    for title, entries in lists(scan):
        columns = [parts.Column("line", "left", theme.CODE), parts.Column("what", "left"), parts.Column("remedy", "left", "white-space:normal")]
        rows = [[where, what, code_text(remedy, parts.CODE_SPAN) if remedy else ""] for where, what, remedy in entries]
        found += [parts.title(title.capitalize()), parts.table(columns, rows)]
    return found


def _memory(scan: Scan) -> list[Markup]:
    columns = [parts.Column("generation", "left"), parts.Column("share of the HBM of one device"), parts.Column("", "left"), parts.Column("HBM")]
    rows = []
    for name, share in scan.memory.targets.items():
        word = "fits" if scan.memory.fits(name) else "does not fit"
        bar = element("span", parts.bar(min(share, 1.0)), f" {word}")
        rows.append([TARGETS[name].title, percent(scan.memory.peak, TARGETS[name].hbm_bytes), bar, size(TARGETS[name].hbm_bytes)])
    note = f"{size(scan.memory.parameters)} held by the model, {size(scan.memory.inputs)} of inputs; from shapes, each operation alone"
    return [parts.title("Memory on each TPU generation", note), parts.table(columns, rows)]


def scan_page(scan: Scan) -> str:
    """One page that opens from disk; nothing in it is fetched and nothing runs."""
    policy = Markup("""<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">""")
    head = element("head", policy, element("title", f"Scan of {scan.name}"))
    return f'<!doctype html>\n<html lang="en">{head}{element("body", fragment(scan), style="margin:16px auto;max-width:1180px")}</html>\n'
