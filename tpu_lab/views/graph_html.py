"""A fusion graph as one HTML fragment for readers without our renderer: figures, kernels, why two are two. No script, no style element."""

from __future__ import annotations

from collections.abc import Sequence

from ..record.program import Program
from . import theme
from .html_parts import CODE_SPAN, Column, details, figure, frame, paragraph, table, title
from .markup import Markup, code_text, element, join
from .numbers import ARROW, BYTES, FLOP, TIME, column_unit, count, counted, duration, in_unit, size

MOST_KERNELS = 40
MOST_REASONS = 20
_BOUND = {"compute": "MXU", "memory": "HBM", "on chip": "on chip"}


def label(program: Program) -> str:
    """`TPU v6e`, with the mode if it is not the default: `TPU v6e, eager`."""
    name = program.target.title.partition(",")[0].partition(" (")[0] or program.target.name
    return name if program.mode == "compile" else f"{name}, {program.mode}"


def kernel_title(program: Program, index: int) -> str:
    """The ops of a kernel: `addmm, gelu`; what it is, where it has none."""
    kernel = program.kernels[index]
    names = list(dict.fromkeys(op.partition(":")[2].removeprefix("aten.") or op for op in kernel.ops))
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else kernel.role or kernel.kind


def fragment(programs: Sequence[Program]) -> str:
    """The fragment for programs side by side; the first is told in full."""
    first = programs[0]
    parts = [_figures(program) for program in programs]
    return frame(*parts, *_kernels(first), *_reasons(first), label=f"tpu_lab fusion graph: {label(first)}")


def _figures(program: Program) -> Markup:
    head = element(
        "div",
        element("div", f"{program.name or 'program'} · {'op by op' if program.mode == 'eager' else 'compiled'} for", style=f"color:{theme.MUTED}"),
        element("div", label(program), style="font-size:20px;font-weight:600;line-height:1.2"),
        style="margin:0 32px 4px 0",
    )
    figures = [head]
    if program.outcome != "ok":
        figures.append(element("div", f"{program.outcome}: {program.message}", style=f"color:{theme.WRONG}"))
    if program.time_s:
        figures.append(figure("Lower bound", f"≥ {duration(program.time_s * 1e9)}", "", "predicted"))
    figures.append(figure(f"Ops {ARROW} kernels", f"{count(len(program.ops))} {ARROW} {count(len(program.kernels))}"))
    for space in program.memory.spaces:
        if space.space in ("HBM", "RAM"):
            figures.append(figure("Peak memory", size(space.peak), f"of {size(space.capacity)}" if space.capacity else "", "predicted"))
    return element("div", *figures, style="display:flex;flex-wrap:wrap;align-items:flex-end;margin:0 0 6px")


def _kernels(program: Program) -> list[Markup]:
    order = sorted(range(len(program.kernels)), key=lambda i: (-program.kernels[i].time_s, -program.kernels[i].bytes))[:MOST_KERNELS]
    if not order:
        return [paragraph("The program has no kernel.", muted=True)]
    time = column_unit([int(program.kernels[i].time_s * 1e9) for i in order], TIME)
    moved = column_unit([program.kernels[i].bytes for i in order], BYTES)
    flop = column_unit([program.kernels[i].flops for i in order], FLOP)
    rows = []
    for i in order:
        kernel = program.kernels[i]
        bound = _BOUND.get(kernel.bound_by, kernel.bound_by)
        lower = in_unit(kernel.time_s * 1e9, time) if kernel.time_s else ""
        name = element("span", kernel_title(program, i), style=theme.CODE)
        rows.append([f"K{i + 1}", name, ", ".join(kernel.lines[:3]), lower, bound, in_unit(kernel.bytes, moved), in_unit(kernel.flops, flop)])
    columns = [Column("kernel", "left"), Column("ops", "left"), Column("lines", "left"), Column(f"≥ {time.name}"), Column("bound by", "left")]
    columns += [Column(moved.name), Column(flop.name)]
    note = f"{len(order)} of {counted(len(program.kernels), 'kernel')}" if len(order) < len(program.kernels) else ""
    return [title("Kernels, the dearest first" if program.time_s else "Kernels", note), table(columns, rows)]


def _reasons(program: Program) -> list[Markup]:
    if not program.not_fused:
        return []
    pairs = sorted(program.not_fused, key=lambda pair: -pair.bytes)[:MOST_REASONS]
    told = []
    for pair in pairs:
        ends = f"K{pair.producer_kernel + 1} {ARROW} K{pair.consumer_kernel + 1}, {size(pair.bytes)}"
        words = [element("div", ends, style=f"font-size:11px;color:{theme.MUTED}"), element("div", code_text(pair.text, CODE_SPAN))]
        if pair.remedy:
            words.append(element("div", join([f"{ARROW} ", code_text(pair.remedy, CODE_SPAN)])))
        if pair.evidence:
            words.append(element("div", pair.evidence, style=f"{theme.QUOTE};font-size:11px;color:{theme.MUTED}"))
        told.append(element("div", *words, style="margin:0 0 8px"))
    return [details(f"Why these did not fuse: {counted(len(program.not_fused), 'pair')}", *told)]
