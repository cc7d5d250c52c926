"""What compiling tells a listener: graphs captured and run, breaks, recompiles, regions of a cell. One slot, empty most of the time.

The compiler knows nothing of recording. `observe(listener)` fills the slot for the graphs of the backend `tpu`; what Dynamo itself
tells (breaks, recompiles) comes from `structured_trace.py`, for every backend.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in Python code, as a compiler names it."""

    filename: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class BreakTold:
    """A graph ended. `reason` is an id of `BreakReason`, empty: to be read from `message`."""

    message: str
    frame: Frame | None = None
    reason: str = ""
    id: str = ""
    link: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    stack: tuple[Frame, ...] = ()
    """The user's frames, outermost first, `frame` last."""
    count: int = 1
    graphs: int = 0
    graph_ns: int = 0
    uncompiled: bool = False


@dataclass(frozen=True, slots=True)
class RecompileTold:
    """A function was compiled again. `reason` is an id of `RecompileReason`, empty: to be read from `message`."""

    message: str
    frame: Frame | None = None
    duration_ns: int = 0
    reason: str = ""
    guard: str = ""
    old: str = ""
    new: str = ""
    version: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class GraphTold:
    """A graph that ran or was made ready. `ended_by`: the break at its end, as it was told; None: the function ended."""

    name: str
    frame: Frame | None
    nodes: int
    compile_ns: int
    runs: int
    programs: int
    sizes: str
    ended_by: BreakTold | None = None
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionTold:
    """Lines of a cell that run together. `reason` is an id of `RegionReason`, empty for a compiled one."""

    filename: str
    first_line: int
    last_line: int
    reason: str = ""


class CompileListener(Protocol):
    """Who is told at the end of a block. A `tpu_lab.recording` recorder is one."""

    def graph_break(self, told: BreakTold) -> None: ...

    def recompile(self, told: RecompileTold) -> None: ...

    def graph(self, told: GraphTold) -> None: ...

    def region(self, told: RegionTold) -> None: ...


@dataclass(eq=False)
class Captured:
    """A graph that Dynamo gave to the backend `tpu`; it lives as long as the compiled function."""

    name: str
    frame: Frame
    """The function it was captured from, and its first line."""
    nodes: int
    resumed_at: int = 0
    """The line after whose break it begins; 0: it begins with its function."""
    broken: BreakTold | None = None
    """The break at its end; None: the function ended."""
    compile_ns: int = 0
    sizes: str = "static"
    is_step: bool = False
    """Whether `backward()` is in it."""
    programs: list[Counted] = field(default_factory=list)


class Progress(threading.local):
    """How far compiled graphs of this thread came: who runs one that fails can tell whether anything happened before."""

    begun = 0
    """Graphs that began to run."""
    changed = 0
    """Graphs that ran to their end, or began to run op by op: from here on something may have been written."""


progress = Progress()


class Counted(Protocol):
    """Something that holds compiled programs."""

    @property
    def program_count(self) -> int:
        """How many."""
        ...


class Observer(Protocol):
    """What listens to the backend while a block runs."""

    def captured(self, graph: Captured) -> None:
        """A graph was made ready."""

    def ran(self, graph: Captured) -> None:
        """A graph is about to run."""


observer: Observer | None = None
"""The slot. The backend reads it as `events.observer`."""


@contextmanager
def observe(listener: Observer) -> Iterator[None]:
    """Puts a listener into the slot for the duration of a block; the one before it comes back afterwards."""
    global observer
    before, observer = observer, listener
    try:
        yield
    finally:
        observer = before
