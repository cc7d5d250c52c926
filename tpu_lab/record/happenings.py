"""What a run wants a person to see: host syncs, CPU fallbacks, graph breaks, recompiles, flushes, exceptions.

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
    """torch.compile ended a graph: one kind of break on one line, however often it ran."""

    reason: str
    """Id in `reasons.BreakReason`."""
    message: str = ""
    """The compiler's own words, without values and paths."""
    location: int = -1
    cell_location: int = -1
    count: int = 1
    """How often the run passed it; where no graph lies before it, how often it was met while tracing."""
    id: str = ""
    """PyTorch's stable id of this kind of break: `GB0025`; empty: it has none."""
    link: str = ""
    """PyTorch's page about that id."""
    explanation: str = ""
    """Why the graph ended, in PyTorch's words."""
    hints: tuple[str, ...] = ()
    """What PyTorch advises, without its standing phrases about reporting an issue."""
    remedy: str = ""
    """What to do; the best of PyTorch's hint, ours for the id, and ours for the reason."""
    function: str = ""
    """The function whose graph ended."""
    stack: tuple[int, ...] = ()
    """The user's frames, outermost first: indices in `Run.locations`."""
    graphs: int = 0
    """Extra graphs that were compiled in this run because of it: those that go on after it."""
    graph_ns: int = 0
    """What compiling those took."""
    syncs: int = 0
    """Host syncs on its line."""
    sync_ns: int = 0
    uncompiled: bool = False
    """True: no graph of the function was kept, all of it runs op by op."""


@dataclass(frozen=True, slots=True)
class Recompile:
    """A function was compiled again, or is no longer compiled (reason `limit`)."""

    reason: str
    """Id in `reasons.RecompileReason`."""
    function: str = ""
    message: str = ""
    """The differing part of the key in the compiler's own words, without values of tensors and paths."""
    duration_ns: int = 0
    """What compiling it again took."""
    location: int = -1
    """The line whose use of the value made the guard."""
    cell_location: int = -1
    guard: str = ""
    """The condition that no longer held, as an expression: `n == 2`."""
    old: str = ""
    """The value the last program was made for; empty: not a number, size, type or the like."""
    new: str = ""
    """The value that came instead."""
    version: int = 0
    """Which program of the function this is, from 1; 0: not known. 2 is the first recompile."""
    limit: int = 0
    """With this many programs compilation is turned off (`torch._dynamo.config.recompile_limit`); 0: not known."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The deferred executor cut its trace: a cluster of calls ended and had run by then."""

    reason: str
    """Id in `reasons.FlushReason`."""
    state: str
    """How the cluster ran: id in `reasons.ClusterState`."""
    ops: int = 0
    """Calls in the cluster."""
    live: int = 0
    """Results that were still held, and so kept."""
    start_ns: int = 0
    duration_ns: int = 0
    """What running it took the host; 0 where its calls had run at once."""
    difference: str = ""
    """The part of the key in which it differs from the nearest cluster with a program: id in `reasons.RecompileReason`; empty: there is none."""
    message: str = ""
    """That part in words: which call, what it is and what it was."""
    location: int = -1
    cell_location: int = -1
    op: int = -1
    """Id of the op before it; -1: none."""


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
