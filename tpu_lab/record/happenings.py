"""What a run wants a person to see: host syncs, CPU fallbacks, graph breaks, recompiles, exceptions.

`location` and `cell_location` are indices in `Run.locations` (-1: not known), as for ops. Times are nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waited for the device."""

    reason: str
    """Id in `reasons.SyncReason`."""
    nbytes: int
    start_ns: int
    duration_ns: int
    location: int = -1
    cell_location: int = -1
    op: int = -1
    """Id of the op before it; -1: none."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """An operator ran on the host for want of a lowering."""

    op: str
    reason: str
    """Id in `reasons.FallbackReason`."""
    bytes_out: int
    """From the device to the host."""
    bytes_in: int
    """From the host to the device."""
    start_ns: int
    duration_ns: int
    location: int = -1
    cell_location: int = -1


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """torch.compile ended a graph."""

    reason: str
    """Id in `reasons.BreakReason`."""
    message: str = ""
    """The compiler's own words, without values and paths."""
    location: int = -1
    cell_location: int = -1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Recompile:
    """A program was compiled again."""

    reason: str
    """Id in `reasons.RecompileReason`."""
    function: str = ""
    message: str = ""
    """The differing part of the key in the compiler's own words, without values of tensors and paths."""
    duration_ns: int = 0
    location: int = -1
    cell_location: int = -1


@dataclass(frozen=True, slots=True)
class Failure:
    """An op, or the cell, raised an exception."""

    op: str
    """The ATen overload; empty: the exception came from the cell's own code."""
    kind: str
    """The exception's type."""
    message: str
    """Without values and paths."""
    location: int = -1
    cell_location: int = -1
    after_op: int = -1
    """Id of the op before it; -1: none."""
