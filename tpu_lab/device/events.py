"""What the device tells a listener: one observer slot, a handful of events, no cost but an `is None` while it is empty.

The device knows nothing of recording. Whoever wants to know what ran puts an object with these methods into the slot
(`observe(recorder)`); the calls come on the thread that runs the operator (backward: autograd's thread), in order per
thread. An observer must be quick and must not touch tensors of the device; it reads the frames above it for source lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype of one tensor operand or result. `dtype` is torch's name without `torch.`, e.g. `bfloat16`."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(eq=False)
class OpProgram:
    """What is fixed about an operator call: everything that is the same each time this program runs.

    `op` is the ATen overload (`aten.add_.Tensor`). `kind` says how it runs: `xla` (one compiled program), `host` (a host
    kernel, not yet worth a compile), `view` (no program), `fallback` (CPU fallback), `copy` (transfer), `compiled` (a graph of
    torch.compile). `flops` and `temp_bytes` are the compiler's (None: not known). `kernels` counts the XLA kernels in it.
    """

    op: str
    kind: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    flops: float | None = None
    temp_bytes: int | None = None
    kernels: int | None = None
    bytes_accessed: int | None = None
    id: int = field(default=0)


@dataclass(frozen=True)
class FlushTold:
    """The deferred executor ended a cluster of `ops` calls, of which `live` results are kept.

    `reason` is an id of `record.reasons.FlushReason`, `state` of `ClusterState`. `difference` (an id of `RecompileReason`) and
    `message` say in what it differs from the nearest cluster that has a program; both empty if it has one, or none is near.
    """

    reason: str
    state: str
    ops: int
    live: int
    start_ns: int
    end_ns: int
    difference: str = ""
    message: str = ""


class BufferView(Protocol):
    """The memory behind a storage, as an observer may see it: a number unique in the process and a size in bytes."""

    @property
    def id(self) -> int:
        """The number."""
        ...

    @property
    def nbytes(self) -> int:
        """The size."""
        ...


class Observer(Protocol):
    """What a recorder implements."""

    blocking: bool
    """True: the device waits for each operator, so that its time and its errors belong to it."""

    def op(self, program: OpProgram, start_ns: int, end_ns: int, inputs: Sequence[BufferView], outputs: Sequence[BufferView]) -> None:
        """An operator ran. Times are `time.perf_counter_ns()`. An output that is also an input was written in place."""

    def compiled(self, program: OpProgram, seconds: float, cache: str) -> None:
        """A program was built. `cache` is `miss` or `disk`."""

    def allocated(self, buffer: BufferView) -> None:
        """Memory came to life on the device. A fresh result of an operator may be told by `op` only: its buffer is then new there."""

    def freed(self, buffer: BufferView) -> None:
        """Memory died. May come on any thread."""

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None:
        """The host waited for the device. `reason`: `item`, `cpu`, `synchronize`, `data_dependent_size`, `print`, `index_check`."""

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int) -> None:
        """An operator ran on the host for want of a lowering: bytes moved from and to the device."""

    def failed(self, op: str, error: BaseException) -> None:
        """An operator raised."""

    def flushed(self, told: FlushTold) -> None:
        """The deferred executor ended a cluster. Comes only in the mode DEFER_AND_FUSE."""


on_error: Callable[[BaseException], None] | None = None
"""Gets each exception that an operator raises, on its way to the caller: a notebook shows it without the device's own frames."""
observer: Observer | None = None
"""The slot. Device code reads it as `events.observer`."""


@contextmanager
def observe(listener: Observer) -> Iterator[None]:
    """Puts a listener into the slot for the duration of a block; the one before it comes back afterwards."""
    global observer
    before, observer = observer, listener
    try:
        yield
    finally:
        observer = before
