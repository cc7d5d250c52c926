"""The memory of a run: storages with their lives, the curve of live bytes, and what was alive at the peak."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ops import TensorSpec


@dataclass(frozen=True)
class Storages:
    """Every storage the run met, in columns. Times are op positions: the memory changes between ops.

    Accounting is the same in each mode: bytes of live storages, plus an op's own scratch memory while it runs.
    """

    nbytes: tuple[int, ...] = ()
    made_by: tuple[int, ...] = ()
    """Id of the op that made it; -1: alive before the run, or made outside an op."""
    born: tuple[int, ...] = ()
    """Op position before which it came to life; -1: before the run."""
    died: tuple[int, ...] = ()
    """Op position before which it died; -1: alive at the end."""
    spec: tuple[int, ...] = ()
    """Index in `Memory.specs` of the tensor it was first met as; -1: not known."""


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """A storage that was alive at the peak."""

    storage: int
    """Index in `Run.storages`; -1 in a record made small for a notebook."""
    nbytes: int
    op: str
    """What made it; empty: alive before the run."""
    spec: TensorSpec | None = None
    location: int = -1
    """Where it was made: index in `Run.locations`; -1: before the run."""


@dataclass(frozen=True, slots=True)
class LineBytes:
    """Bytes alive at the peak that one line made."""

    location: int
    """Index in `Run.locations` of one op on that line; -1: made before the run or at an unknown line."""
    nbytes: int
    tensors: int


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Live bytes when the op at this position ran, scratch memory included."""

    op: int
    nbytes: int


@dataclass(frozen=True)
class Memory:
    """Live bytes over the run."""

    peak_bytes: int = 0
    exact: bool = True
    """False: a lower bound (an op's scratch memory is not known, or the recording was cut)."""
    peak_op: int = -1
    """Op position of the peak; -1: before the first op."""
    start_bytes: int = 0
    """Alive when the recording started, as far as the run touched or freed it."""
    end_bytes: int = 0
    largest: tuple[LiveTensor, ...] = ()
    """The largest storages alive at the peak, largest first."""
    lines: tuple[LineBytes, ...] = ()
    """All bytes alive at the peak by the line that made them, largest first."""
    curve: tuple[CurvePoint, ...] = ()
    """At most a few hundred points; each is the highest value of its stretch."""
    specs: tuple[TensorSpec, ...] = field(default=())
