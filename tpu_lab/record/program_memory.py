"""Memory of a compiled program: its buffers and what is alive when, by memory space."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Buffer:
    """A value that the compiler gave memory to."""

    instruction: int
    """Index in `Program.instructions` of what defines it; -1: not known."""
    path: tuple[int, ...]
    """Position in the defining instruction's result if that is a tuple; empty otherwise."""
    kind: str
    """`argument`, `output`, `constant` or `temporary`."""
    space: str
    """Memory space: `HBM`, `VMEM`, `SMEM`, `sync flag`, `CMEM`, `host`; `RAM` on XLA:CPU."""
    dtype: str
    """XLA's short name: `bf16`."""
    shape: tuple[int, ...]
    bytes: int
    """Bytes it takes, padding included."""
    useful_bytes: int
    """Bytes of its elements alone."""
    offset: int
    """Byte offset in its allocation; -1: not told."""
    born: int
    """Position in `Program.schedule` of the instruction that starts its life; -1: before the first."""
    died: int
    """Position in `Program.schedule` after which it is free; the schedule's length if it outlives the program."""
    op: str = ""
    """Id of the ATen op that made it (`SourceOp.id`); empty for an argument or a value of the compiler's own."""
    label: str = ""
    """What it is to the user: the name of the parameter, input or op."""
    parameter: int = -1
    """An argument: its position among the program's inputs; -1: none."""

    @property
    def padding(self) -> int:
        """Bytes lost to padding."""
        return max(self.bytes - self.useful_bytes, 0)


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """What one memory space holds over the run of a program."""

    space: str
    capacity: int
    """Bytes a program may use; 0: not known."""
    peak: int
    """Most bytes alive at once."""
    peak_at: int
    """Position in `Program.schedule` of that moment; -1: before the first instruction."""
    position: tuple[int, ...] = ()
    """Positions in `Program.schedule`, ascending; the curve is constant between them."""
    live: tuple[int, ...] = ()
    """Bytes alive from that position on."""
    at_peak: tuple[int, ...] = ()
    """The buffers alive at the peak: indices in `ProgramMemory.buffers`, largest first."""
    reserved: int = 0
    """Bytes the compiler sets aside: the peak and what is lost between buffers."""

    @property
    def over(self) -> int:
        """Bytes by which what is set aside exceeds the capacity; 0 if it fits or the capacity is not known."""
        return max(self.reserved, self.peak) - self.capacity if 0 < self.capacity < max(self.reserved, self.peak) else 0


@dataclass(frozen=True)
class ProgramMemory:
    """Memory of a program, as the compiler assigned it."""

    spaces: tuple[SpaceUse, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    argument_bytes: int = 0
    """Bytes of inputs and parameters, padding included."""
    output_bytes: int = 0
    temp_bytes: int = 0
    alias_bytes: int = 0
    """Bytes of outputs that take the memory of an argument."""

    @property
    def padding(self) -> int:
        """Bytes lost to padding in all buffers of HBM together; they are not all alive at once."""
        return sum(b.padding for b in self.buffers if b.space == "HBM")

    def space(self, name: str) -> SpaceUse | None:
        """The use of one memory space; None if the program does not use it."""
        return next((s for s in self.spaces if s.space == name), None)
