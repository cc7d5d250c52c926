"""What compile mode made of a cell: the graphs torch.compile captured, and which lines of the cell are compiled together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that torch.compile captured and that was compiled or run in this run."""

    name: str
    """`graph 3`; the programs made of it are called `graph 3 (forward)` and the like."""
    function: str = ""
    """The function it was captured from."""
    nodes: int = 0
    """Operators in it, as Dynamo captured them."""
    compile_ns: int = 0
    """What making it ready took in this run, tracing not included; 0: it was ready before."""
    runs: int = 0
    """How often it ran in this run."""
    programs: int = 0
    """XLA programs made of it so far: forward, backward, other sizes and memory layouts."""
    sizes: str = "static"
    """Id in `reasons.SizeReason`: how sizes that change are served."""
    ended_by: int = -1
    """The break at its end: index in `Run.graph_breaks`; -1: the function ended."""
    location: int = -1
    cell_location: int = -1
    guards: tuple[str, ...] = ()
    """What must hold for it to be used again. Filled by `tpu_lab.explain` only."""


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of a cell that ran together: compiled as one function, or as plain Python."""

    source: int
    """Index in `Run.sources`."""
    first_line: int
    last_line: int
    compiled: bool
    reason: str = ""
    """Why it is plain: id in `reasons.RegionReason`; empty for a compiled one."""
