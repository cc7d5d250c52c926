"""Times that can be trusted: minimum of short blocks, the allocator kept from giving pages back, a process that knows how long it waited.

Why: fresh pages of an allocation cost more than a small operator, so `mallopt` keeps them; a block that another process
interrupted is slow, never fast, so the minimum of many blocks is the figure; torch's and XLA's thread pools slow each other
down, so one framework finishes its blocks before the other begins.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
BUSY_SHARE = 0.1
"""A process that waited for a processor longer than this share of its time measured the neighbours too."""


def keep_pages() -> None:
    """Lets malloc keep what was freed. Once per process, before measuring; does nothing where there is no glibc."""
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return  # macOS, musl: times of large operators are noisier there
    libc.mallopt(_M_MMAP_THRESHOLD, 1 << 25)
    libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def fastest(call: Callable[[], object], calls: int, blocks: int) -> float:
    """Seconds per call: the fastest of `blocks` blocks of `calls` calls, after a tenth of them to warm up."""
    for _ in range(max(blocks // 10, 1) * calls):
        call()
    times = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(time.perf_counter() - start)
    return min(times) / calls


def waited_share() -> float:
    """How much of this process's time its threads stood in line for a processor, 0 to 1; 0 where Linux does not tell."""
    ran = waited = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        on, line, _ = task.read_text().split()
        ran, waited = ran + int(on), waited + int(line)
    return waited / (ran + waited) if ran else 0.0


def busy_machine() -> str:
    """A sentence if more processes want to run than there are processors, else empty."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return f"load average {load:.1f} on {cores} cores" if load > cores else ""
