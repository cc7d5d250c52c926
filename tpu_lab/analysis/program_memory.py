"""What fills a memory space at the peak of a program, by tensor, line and module, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.memory_advice import MemoryAdvice
from ..record.program import Program, SourceOp
from ..record.program_memory import Buffer, SpaceUse

_LARGE = 0.25
"""The share of the peak from which a cause is worth an advice."""


@dataclass(frozen=True)
class PeakRow:
    """A tensor that is alive at the peak."""

    label: str
    """The name of the input or parameter, or the id of the op that made it."""
    kind: str
    """`argument`, `output`, `constant` or `temporary`."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    padding: int
    place: str
    """`file:line` of the op that made it; empty for an input."""
    module: str


def peak_rows(program: Program, space: str = "HBM") -> list[PeakRow]:
    """The tensors alive at a space's peak, largest first; empty if the program does not use the space."""
    use = program.memory.space(space)
    known = {op.id: op for op in program.ops}
    return [_row(program.memory.buffers[i], known) for i in use.at_peak] if use is not None else []


def _row(buffer: Buffer, known: dict[str, SourceOp]) -> PeakRow:
    op = known.get(buffer.op)
    place, module = (op.place, op.module) if op is not None else ("", "")
    if buffer.kind == "argument":
        place, module = "", buffer.label.rpartition(".")[0]
    return PeakRow(buffer.label, buffer.kind, buffer.dtype, buffer.shape, buffer.bytes, buffer.padding, place, module)


def fullest(program: Program) -> SpaceUse | None:
    """The space that is over its capacity, else the program's main memory; None if its memory is not known."""
    over = [space for space in program.memory.spaces if space.over]
    return over[0] if over else program.memory.space("HBM") or program.memory.space("RAM")


def advice(program: Program) -> tuple[tuple[MemoryAdvice, int], ...]:
    """What would help, each with the bytes of the peak that it concerns, most first; empty for a program that uses no main memory."""
    use = fullest(program)
    if use is None or not use.at_peak:
        return ()
    buffers = [program.memory.buffers[i] for i in use.at_peak]
    phases = {op.id: op.phase for op in program.ops}
    trained = "backward" in phases.values()
    concerned = {
        MemoryAdvice.BFLOAT16: sum(b.bytes for b in buffers if b.dtype in ("f32", "f64")) // 2,
        MemoryAdvice.CHECKPOINT: sum(b.bytes for b in buffers if trained and b.kind == "temporary" and phases.get(b.op) == "forward"),
        MemoryAdvice.BATCH: sum(b.bytes for b in buffers if b.kind in ("temporary", "output")),
        MemoryAdvice.SHARD: sum(b.bytes for b in buffers if b.kind == "argument"),
        MemoryAdvice.PADDING: sum(b.padding for b in buffers),
    }
    large = [(one, nbytes) for one, nbytes in concerned.items() if nbytes >= _LARGE * use.peak and nbytes > 0]
    return tuple(sorted(large, key=lambda pair: -pair[1]))
