"""Ops of a run gathered by what they are and where they were called: what a table of the most expensive ops shows."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.ops import NOT_BACKWARD, TensorSpec
from ..record.run import Run


@dataclass(frozen=True, slots=True)
class OpGroup:
    """Calls of one op in one module on one line with one result type."""

    op: str
    """The overload; `.default` is left out."""
    kind: str
    module: str
    source: int
    """Index in `Run.sources`; -1: not known."""
    line: int
    result: TensorSpec | None
    backward: bool
    count: int
    time_ns: int
    flops: float | None
    """Of all calls; None if one is not known."""
    bytes: int | None


def op_groups(run: Run, limit: int | None = None) -> list[OpGroup]:
    """The groups, most time first; at most `limit`. Views are left out: they run no program."""
    sums: dict[tuple[int, int, int, bool], list[int]] = {}
    ops = run.ops
    for program, module, location, cell, forward, duration in zip(
        ops.program, ops.module, ops.location, ops.cell_location, ops.forward, ops.duration_ns, strict=True
    ):
        row = sums.setdefault((program, module, cell if cell >= 0 else location, forward != NOT_BACKWARD), [0, 0])
        row[0] += 1
        row[1] += duration
    merged: dict[tuple[object, ...], OpGroup] = {}
    for (index, module, location, backward), (count, time_ns) in sums.items():
        program = run.programs[index]
        if program.kind == "view":
            continue
        place = run.locations[location] if location >= 0 else None
        group = OpGroup(
            op=program.op.removesuffix(".default"),
            kind=program.kind,
            module=run.modules[module].path if module >= 0 else "",
            source=place.source if place else -1,
            line=place.line if place else 0,
            result=program.outputs[0] if program.outputs else None,
            backward=backward,
            count=count,
            time_ns=time_ns,
            flops=None if program.flops is None else program.flops * count,
            bytes=None if program.bytes is None else program.bytes * count,
        )
        key = (group.op, group.kind, group.module, group.source, group.line, group.result, backward)
        merged[key] = _add(merged[key], group) if key in merged else group
    return sorted(merged.values(), key=lambda g: -g.time_ns)[:limit]


def _add(a: OpGroup, b: OpGroup) -> OpGroup:
    flops = None if a.flops is None or b.flops is None else a.flops + b.flops
    moved = None if a.bytes is None or b.bytes is None else a.bytes + b.bytes
    return OpGroup(a.op, a.kind, a.module, a.source, a.line, a.result, a.backward, a.count + b.count, a.time_ns + b.time_ns, flops, moved)
