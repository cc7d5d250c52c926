"""Programs of one function for several targets and modes, side by side, and what fills the memory of one that does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.program_memory import advice, fullest, peak_rows
from ..record.program import PREDICTED, Program
from ..record.targets import TARGETS
from .graph_html import label
from .html_parts import CODE_SPAN, Column, frame, paragraph, title
from .html_parts import table as html_table
from .markup import Markup, code_text, element
from .numbers import BYTES, FLOP, TIME, column_unit, count, digits, duration, in_unit, size
from .text_table import table

MOST_ROWS = 15
_BOUND = {"compute": "compute", "memory": "HBM", "on chip": "on-chip memory"}
_OUTCOMES = {"ok": "", "out_of_memory": "does not fit", "refused": "refused"}


@dataclass(frozen=True)
class TargetTable:
    """What the compilers predict for one function: a row for each program. Displays itself; `print(table.summary())` is its text."""

    programs: tuple[Program, ...]

    def summary(self) -> str:
        """The table as text, then what fills the memory of each program that does not fit. Nothing in it is measured."""
        header, rows = comparison_rows(self.programs)
        name = self.programs[0].name if self.programs else "no program"
        blocks = ["\n".join([f"{name}: {PREDICTED}", *table(header, rows, "l" + "r" * (len(header) - 3) + "ll")])]
        blocks += [memory_text(p) for p in self.programs if p.outcome == "out_of_memory"]
        blocks += [f"{label(p)}: {line}" for p in self.programs for line in remarks(p)]
        return "\n".join(blocks)

    def to_html(self) -> str:
        """The table as one HTML fragment without script."""
        header, rows = comparison_rows(self.programs)
        columns = [Column(text, "left" if i in (0, len(header) - 1, len(header) - 2) else "right") for i, text in enumerate(header)]
        parts: list[str] = [title(self.programs[0].name if self.programs else "no program", PREDICTED), html_table(columns, rows)]
        for program in self.programs:
            if program.outcome == "out_of_memory":
                parts += _memory_html(program)
            parts += [paragraph(f"{label(program)}: {line}") for line in remarks(program)]
        return frame(*parts, label="tpu_lab: predictions for TPU targets")

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> dict[str, Any]:
        return {"text/plain": self.summary(), "text/html": self.to_html()}


def target_lines() -> str:
    """The generations there are, with the published figures of one jax device of each."""
    rows = [
        [t.name, t.title, f"{digits(t.flops / 1e12)} TFLOP/s", f"{digits(t.hbm_bandwidth / 1e9)} GB/s", size(t.hbm_bytes), size(t.vmem_bytes)]
        for t in TARGETS.values()
    ]
    return "\n".join(table(["target", "", "bfloat16 peak", "HBM", "HBM for programs", "VMEM"], rows, "llrrrr"))


def comparison_rows(programs: Sequence[Program]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: predicted time (ours and the compiler's), FLOP, HBM traffic and peak against capacity, VMEM, padding, kernels, limits."""
    time = column_unit([1e9 * max(p.time_s, p.compiler_time_s) for p in programs], TIME)
    flop, moved = column_unit([p.flops for p in programs], FLOP), column_unit([p.bytes for p in programs], BYTES)
    peaks = [space.peak if (space := fullest(p)) else 0 for p in programs]
    memory, capacity = column_unit(peaks, BYTES), column_unit([p.target.hbm_bytes for p in programs], BYTES)
    padding = column_unit([p.memory.padding for p in programs], BYTES)
    header = [
        "target",
        f"bound, {time.name}",
        f"compiler, {time.name}",
        flop.name,
        f"traffic, {moved.name}",
        f"peak, {memory.name}",
        f"of, {capacity.name}",
    ]
    header += ["VMEM, MB", f"padding, {padding.name}", "kernels", "bound by", ""]
    rows = []
    for program, peak in zip(programs, peaks, strict=True):
        vmem, figures = program.memory.space("VMEM"), program.outcome != "refused"
        rows.append(
            [
                label(program) + ("" if program.effort == "full" else " (quick)"),
                in_unit(1e9 * program.time_s, time) if program.time_s else "",
                in_unit(1e9 * program.compiler_time_s, time) if program.compiler_time_s else "",
                in_unit(program.flops, flop) if figures else "",
                in_unit(program.bytes, moved) if figures else "",
                in_unit(peak, memory) if peak else "",
                in_unit(program.target.hbm_bytes, capacity) if program.target.hbm_bytes and figures else "",
                digits(vmem.peak / 1e6, narrow=True) if vmem is not None else "",
                in_unit(program.memory.padding, padding) if figures else "",
                count(len(program.kernels)) if figures else "",
                _BOUND.get(program.bound_by, ""),
                _OUTCOMES.get(program.outcome, program.outcome),
            ]
        )
    return header, rows


def remarks(program: Program) -> list[str]:
    """What else there is to know, a line each: a refusal in the compiler's words, emulated dtypes, collectives."""
    found = [program.message] if program.outcome == "refused" else [note.text for note in program.notes]
    if program.collectives:
        moved = sum(kernel.bytes + kernel.vmem_bytes for kernel in program.collectives)
        found.append(f"{count(len(program.collectives))} collectives move {size(moved)}: {', '.join(k.name for k in program.collectives[:4])}")
    return found


def over_sentence(program: Program) -> str:
    """`Needs 70.9 GB of HBM, 54.0 GB more than a TPU v5e has.` Empty for a program that fits."""
    use = fullest(program)
    if use is None or not use.over:
        return ""
    return f"Needs {size(max(use.peak, use.reserved))} of {use.space}, {size(use.over)} more than {label(program)} has ({size(use.capacity)})."


def memory_text(program: Program) -> str:
    """What fills the fullest memory at its peak, how far over it is, and what would help."""
    header, rows, more = memory_rows(program)
    lines = [f"{label(program)}: {over_sentence(program) or 'what is alive at the peak of memory'}", *table(header, rows, "rrllll", "  ")]
    if more:
        lines.append(f"  ... {count(more)} more")
    lines += [f"  {one.id} {one.title} ({size(nbytes)} of the peak). {one.remedy}" for one, nbytes in advice(program)]
    return "\n".join(lines)


def memory_rows(program: Program) -> tuple[list[str], list[list[str]], int]:
    """Header and rows of the largest tensors at the peak, and how many more there are."""
    use = fullest(program)
    found = peak_rows(program, use.space) if use is not None else []
    shown = found[:MOST_ROWS]
    unit, waste = column_unit([row.bytes for row in shown], BYTES), column_unit([row.padding for row in shown], BYTES)
    rows = [
        [
            in_unit(row.bytes, unit),
            in_unit(row.padding, waste) if row.padding else "",
            f"{row.dtype}[{','.join(map(str, row.shape))}]",
            row.label,
            row.place,
            row.module if row.kind != "argument" else row.kind,
        ]
        for row in shown
    ]
    return [unit.name, f"padding, {waste.name}", "tensor", "made by", "line", "module"], rows, len(found) - len(shown)


def _memory_html(program: Program) -> list[Markup]:
    header, rows, more = memory_rows(program)
    columns = [Column(text, "right" if i < 2 else "left") for i, text in enumerate(header)]
    parts = [title(over_sentence(program) or "What is alive at the peak of memory", label(program)), html_table(columns, rows)]
    parts += [paragraph(f"... {count(more)} more")] if more else []
    for one, nbytes in advice(program):
        parts.append(paragraph(element("b", one.id), f" {one.title} ({size(nbytes)} of the peak). ", code_text(one.remedy, CODE_SPAN)))
    return parts


def program_summary(program: Program, kernels: int = 10) -> str:
    """A program as text: the figures, the kernels that take longest, and memory if it does not fit."""
    lines = [TargetTable((program,)).summary()]
    slowest = sorted(program.kernels, key=lambda k: -k.time_s * k.repeats)[:kernels]
    if slowest and program.target.is_tpu:
        rows = [
            [duration(k.time_s * k.repeats * 1e9), _BOUND.get(k.bound_by, ""), k.name, ", ".join(k.ops[:3]) or k.role, ", ".join(k.lines[:2])]
            for k in slowest
        ]
        lines += ["", f"Kernels that take longest, {len(slowest)} of {count(len(program.kernels))}"]
        lines += table(["bound", "by", "kernel", "ops", "lines"], rows, "rllll")
    if program.not_fused:
        lines.append(f"{count(len(program.not_fused))} pairs of ops stayed in different kernels: Program.not_fused says why")
    return "\n".join(lines)
