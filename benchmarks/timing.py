"""Times that can be trusted: minimum of short blocks, the allocator kept from giving pages back, an eye on other processes.

Why: fresh pages of an allocation cost more than a small operator, so `mallopt` keeps them; a block that another process
interrupted is slow, never fast, so the minimum of many blocks is the figure; torch's and XLA's thread pools slow each other
down, so one framework finishes its blocks before the other begins.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
BUSY_SHARE = 0.05
"""Where other processes use more than this share of the processors, times are theirs too."""


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


class Neighbours:
    """What other processes use of the machine's processors from now on."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._used = _used_seconds() - _own_seconds()

    def share(self) -> float:
        """Their share of all processor time so far, 0 to 1; 0 where there is no /proc."""
        time_there_was = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        return max(_used_seconds() - _own_seconds() - self._used, 0.0) / time_there_was


def _used_seconds() -> float:
    """Processor seconds used on the machine since it started, what a hypervisor took away too."""
    try:
        with open("/proc/stat") as f:
            user, nice, system, _idle, _waiting, irq, softirq, steal = (int(n) for n in f.readline().split()[1:9])
    except OSError:
        return 0.0  # macOS: only the load average tells there
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def busy_machine() -> str:
    """A sentence if more processes want to run than there are processors, else empty."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return f"load average {load:.1f} on {cores} cores" if load > cores else ""
