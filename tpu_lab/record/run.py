"""`Run`: the one record behind every view. Whatever a view shows comes from here, also in another process, without torch or jax."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .comparison import Comparison
from .environment import Environment
from .findings import Finding
from .graphs import Graph, Region
from .happenings import Failure, Fallback, Flush, GraphBreak, Recompile, Sync
from .memory import Memory, Storages
from .ops import Ops, RunProgram
from .source import Location, ModulePath, Source
from .timing import Timing
from .totals import LineCost, Totals

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

FORMAT = "tpu-lab-run"
SCHEMA_VERSION = "1.3"
"""Major: a reader of another major cannot read it. Minor: fields were added, older readers ignore them."""


@dataclass(frozen=True)
class Run:
    """What one execution of a cell (or a recorded block) did. Immutable; saved and loaded whole; holds no values of tensors.

    Times are nanoseconds, sizes bytes. Fields that end in `location` are indices in `locations`.
    """

    format: str = FORMAT
    schema: str = SCHEMA_VERSION
    """`major.minor` of the schema it was written with."""
    id: str = ""
    """Short id, unique in the process that made it: `r12`."""
    name: str = ""
    """Given by the user; may be empty."""
    mode: str = "eager"
    """`eager`, `fuse`, `compile` or `compare`."""
    device: str = "tpu"
    """PyTorch's device type the cell ran on."""
    target: str = "XLA:CPU"
    """Who compiled and ran it. XLA:CPU is never shown under a TPU's name."""
    started: str = ""
    """Start in UTC, ISO 8601, whole seconds."""
    blocking: bool = True
    """True: each op's time is its own run time. False: ops were only queued, their times are those of the host."""
    environment: Environment = field(default_factory=Environment)
    timing: Timing = field(default_factory=Timing)
    totals: Totals = field(default_factory=Totals)
    lines: tuple[LineCost, ...] = ()
    findings: tuple[Finding, ...] = ()
    comparison: Comparison | None = None
    sources: tuple[Source, ...] = ()
    locations: tuple[Location, ...] = ()
    modules: tuple[ModulePath, ...] = ()
    programs: tuple[RunProgram, ...] = ()
    ops: Ops = field(default_factory=Ops)
    storages: Storages = field(default_factory=Storages)
    memory: Memory = field(default_factory=Memory)
    syncs: tuple[Sync, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    failures: tuple[Failure, ...] = ()
    graphs: tuple[Graph, ...] = ()
    """In the order they were first met. Only those of the backend `tpu`."""
    regions: tuple[Region, ...] = ()
    """Of a cell in compile mode, in the order of its lines; blocks that a cell repeats (loop bodies) once."""
    flushes: tuple[Flush, ...] = ()
    """Of the deferred executor, in order; the first 10,000."""
    ops_dropped: int = 0
    """Ops that ran but are not in `ops`: over the recorder's limit, or cut to keep a notebook small. `totals` counts them."""

    def __repr__(self) -> str:
        """One line; `summary()` says more."""
        name = f" {self.name!r}" if self.name else ""
        seconds = (self.timing.steady_ns or self.totals.wall_ns) / 1e9
        return f"<Run {self.id or 'without id'}{name}: {self.mode} on {self.target}, {seconds:.3g} s, {self.totals.ops} ops>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the run as compressed JSON (schema `record/schema.json`). An existing file is replaced in one step.

        Raises OSError if the file cannot be written.
        """
        from . import codec

        codec.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Run:
        """Reads a saved run; needs neither torch nor jax.

        Raises OSError, `RecordError` for a file that is no run or damaged, `RecordTooLargeError`, and `RecordTooNewError` for
        a newer major schema. A newer minor is read; fields this version does not know are left out.
        """
        from . import codec

        return codec.load(path)

    def summary(self) -> str:
        """The run as plain text: totals, lines with costs, findings, most expensive ops."""
        from ..views.text import summary

        return summary(self)

    def to_html(self) -> str:
        """The run as one HTML fragment without scripts."""
        from ..views.html import run_html

        return run_html(self)

    def to_json(self) -> str:
        """The run as compact JSON text (schema `record/schema.json`)."""
        from . import codec

        return codec.dumps(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The ops as a DataFrame, one row each; units are in the column names. Raises `MissingPackageError` without pandas."""
        from ..views.frame import ops_frame

        return ops_frame(self)

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> dict[str, Any]:
        from ..views.mime import mime_bundle

        return mime_bundle(self)
