"""Memory of the device: what is alive, what the peak was, and the limit that keeps the process alive.

Every storage's bytes are counted when its contents come to life and when they die. XLA:CPU would happily allocate past the
machine's memory, and the kernel's OOM killer would end the Jupyter kernel; so the device refuses first.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from . import deferral, events, forks

LINE_BYTES = 1 << 20
"""Buffers of at least this size remember the line that made them."""
CAPTURED = 2
"""`Buffer.shared` of an array that a trace still has to read."""


class _Ledger:
    """The device's books. Single additions to a slot are atomic under the GIL (no call between load and store)."""

    __slots__ = ("allocations", "frees", "limit", "live", "peak", "promised")

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self.allocations = 0
        self.frees = 0
        self.limit = 0
        self.promised = 0


ledger = _Ledger()
_large: dict[int, weakref.ref[Buffer]] = {}


class _Death(weakref.ref["Buffer"]):
    """Tells of a buffer's end. Its callback is a C function: a Python one, or `__del__`, would swallow a Ctrl-C that arrives in it."""

    __slots__ = ("id", "nbytes")
    id: int
    nbytes: int


_deaths: set[_Death] = set()
_dead: deque[_Death] = deque()
_note_death = _dead.append


def settle() -> None:
    """Takes the buffers that died since the last time off the books."""
    while _dead:
        death = _dead.popleft()
        _deaths.discard(death)
        ledger.live -= death.nbytes
        ledger.frees += 1
        if death.id in _large:
            del _large[death.id]
        if events.observer is not None:
            events.observer.freed(death)


class Buffer:
    """The contents of one storage: a flat jax array, or None while nothing was written yet (`torch.empty`).

    `layout` is an interned description of the array (elements, dtype) that program keys use; `shared` marks an array that
    somebody else holds too (a snapshot: True; a trace of the deferred executor: `CAPTURED`), so that it must not be donated;
    `sized` tells whether torch knows the byte count; `label` is the buffer's place in a trace (see `fuse.trace`). `id`
    is the number of allocations up to this one. With `announced=False` observers hear of it as a result of an op only.
    """

    __slots__ = ("__weakref__", "array", "death", "id", "label", "layout", "line", "nbytes", "shared", "sized")

    def __init__(self, array: Any, layout: Any, nbytes: int, announced: bool = True) -> None:
        self.array = array
        self.layout = layout
        self.nbytes = nbytes
        self.shared: Any = False
        self.sized = False
        self.label: Any = None
        if _dead:
            settle()
        death = self.death = _Death(self, _note_death)
        death.nbytes = nbytes
        _deaths.add(death)
        ledger.live += nbytes
        if ledger.live > ledger.peak:
            ledger.peak = ledger.live
        self.id = death.id = ledger.allocations = ledger.allocations + 1
        if nbytes >= LINE_BYTES:
            self.line = user_line()
            _large[self.id] = weakref.ref(self)
        if announced and events.observer is not None:
            events.observer.allocated(self)

    def resize(self, array: Any, layout: Any, nbytes: int) -> None:
        """Replaces the contents by contents of another size."""
        ledger.live += nbytes - self.death.nbytes
        self.death.nbytes = nbytes
        if ledger.live > ledger.peak:
            ledger.peak = ledger.live
        self.array, self.layout, self.nbytes, self.label = array, layout, nbytes, None


class DeferredBuffer(Buffer):
    """The contents of a storage that a trace is going to make. It takes memory, and counts, from `arrived` on."""

    __slots__ = ()

    def __init__(self, layout: Any, label: Any) -> None:
        self.array = None
        self.layout = layout
        self.nbytes = layout.nbytes
        self.shared = self.sized = False
        self.label = label
        if _dead:
            settle()
        death = self.death = _Death(self, _note_death)
        death.nbytes = 0
        _deaths.add(death)
        self.id = death.id = ledger.allocations = ledger.allocations + 1
        if self.nbytes >= LINE_BYTES:
            self.line = user_line()
            _large[self.id] = weakref.ref(self)


def arrived(buffer: Buffer) -> None:
    """Counts a buffer that a trace promised and has made; does nothing for one that counts already."""
    more = buffer.nbytes - buffer.death.nbytes
    if more:
        buffer.death.nbytes = buffer.nbytes
        ledger.live += more
        if ledger.live > ledger.peak:
            ledger.peak = ledger.live


_OWN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(torch.__file__), "<quick kernel")


def user_line() -> str:
    """`file:line` of the nearest frame that is neither ours nor torch's, empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _read_int(path: str) -> int | None:
    try:
        with open(path) as f:
            text = f.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def available_bytes() -> int:
    """Memory this process may still use: the machine's available RAM or what the cgroup leaves, whichever is less."""
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    available = int(line.split()[1]) * 1024
    except OSError:
        pass  # no /proc (macOS): physical memory stands in
    for limit_path, used_path in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        limit = _read_int(limit_path)
        if limit is not None:
            available = min(available, max(limit - (_read_int(used_path) or 0), 0))
    return available


ledger.limit = int(available_bytes() * 0.8)


def set_memory_limit(nbytes: int) -> None:
    """Sets how many bytes the device may hold at once; an operator that would pass it raises `torch.OutOfMemoryError` and allocates nothing.

    `nbytes` must be positive, else ValueError. At start it is 80 % of the memory that was available.
    """
    if not isinstance(nbytes, int) or nbytes <= 0:
        raise ValueError(f"memory limit: got {nbytes!r}, accepted is a positive number of bytes, e.g. torch.tpu.set_memory_limit(8 * 2**30)")
    ledger.limit = nbytes


def get_memory_limit() -> int:
    """The device's capacity in bytes."""
    return ledger.limit


@contextmanager
def without_limit() -> Iterator[None]:
    """Inside, tensors that are never written to may be of any size: a program is traced with them and nothing runs."""
    before, ledger.limit = ledger.limit, 1 << 62
    try:
        yield
    finally:
        ledger.limit = before


def refuse(nbytes: int, op: str) -> None:
    """Raises `torch.OutOfMemoryError` for an operator that asks for `nbytes` more, naming the largest live tensors.

    Returns if what died meanwhile makes room.
    """
    forks.raise_in_child()
    settle()
    if ledger.live + nbytes <= ledger.limit:
        return
    rows = "".join(f"\n  {size_text(b.nbytes):>9}  made at {b.line or 'an unknown line'}" for b in largest(5))
    table = f" The largest live tensors:{rows}" if rows else ""
    raise torch.OutOfMemoryError(
        f"{op}: tpu out of memory. It needs {size_text(nbytes)} more; {size_text(ledger.live)} of {size_text(ledger.limit)} are in use. "
        f"Nothing was allocated and the device works on. Delete tensors, use a smaller batch or dtype, or raise the limit with "
        f"torch.tpu.set_memory_limit(bytes).{table}"
    )


def largest(count: int) -> list[Buffer]:
    """The largest live buffers of at least 1 MiB, largest first."""
    alive = [b for b in (r() for r in list(_large.values())) if b is not None]
    return sorted(alive, key=lambda b: -b.nbytes)[:count]


def make_room(nbytes: int, op: str) -> None:
    """Sees to it that the device has room for `nbytes` besides what is deferred. Raises `torch.OutOfMemoryError` if it has not."""
    if ledger.live + ledger.promised + nbytes > ledger.limit:
        forks.raise_in_child()
        deferral.cut("memory_pressure")
        if ledger.live + nbytes > ledger.limit:
            refuse(nbytes, op)


def size_text(nbytes: float) -> str:
    """Bytes in three digits with their unit: `1.23 MB`."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} GB"


@dataclass(frozen=True)
class MemoryStats:
    """A reading of the books, in bytes (counts: storages)."""

    allocated: int
    peak: int
    limit: int
    allocations: int
    frees: int


def stats() -> MemoryStats:
    """The current reading."""
    settle()
    return MemoryStats(ledger.live, ledger.peak, ledger.limit, ledger.allocations, ledger.frees)


def reset_peak() -> None:
    """The peak starts again from what is alive now."""
    settle()
    ledger.peak = ledger.live
