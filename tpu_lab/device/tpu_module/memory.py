"""`torch.tpu.memory`: bytes that are alive, their peak, and the capacity."""

from __future__ import annotations

from typing import Any

from ..patches import accelerator
from .devices import index_of


def memory_stats(device: Any = None) -> dict[str, Any]:
    """CUDA-shaped counters in bytes (`allocated_bytes.all.current`, `.peak`, …)."""
    index_of(device)
    return dict(accelerator.memory_stats())


def memory_allocated(device: Any = None) -> int:
    """Bytes of live tensors."""
    index_of(device)
    return accelerator.memory_allocated()


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were live at once since the start or `reset_peak_memory_stats`."""
    index_of(device)
    return accelerator.max_memory_allocated()


memory_reserved = memory_allocated
max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """The peak starts again from what is alive now."""
    index_of(device)
    accelerator.reset_peak_memory_stats()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the device's capacity."""
    index_of(device)
    return accelerator.get_memory_info()


def empty_cache() -> None:
    """Gives freed memory back to the system. Live tensors and compiled programs stay."""
    accelerator.empty_cache()


def set_memory_limit(nbytes: int) -> None:
    """Sets the capacity; an operator that would pass it raises `torch.OutOfMemoryError` before it allocates. Raises ValueError unless positive."""
    from .. import memory

    memory.set_memory_limit(nbytes)


def get_memory_limit() -> int:
    """The capacity in bytes; at start 80 % of the memory that was available."""
    from .. import memory

    return memory.get_memory_limit()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as text, with the largest live tensors and the lines that made them (left away if `abbreviated`)."""
    index_of(device)
    from .. import memory

    reading = memory.stats()
    lines = [
        f"tpu memory: {memory.size_text(reading.allocated)} live, peak {memory.size_text(reading.peak)}, capacity {memory.size_text(reading.limit)}",
        f"storages: {reading.allocations - reading.frees:,} live, {reading.allocations:,} made",
    ]
    if not abbreviated:
        lines += [f"  {memory.size_text(b.nbytes):>9}  made at {b.line or 'an unknown line'}" for b in memory.largest(10)]
    return "\n".join(lines)
