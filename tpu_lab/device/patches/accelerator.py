"""`torch.accelerator.*` for the device: memory, synchronisation, streams. torch's own go to C++ hooks a Python device cannot fill."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import torch


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """CUDA-shaped counters (`allocated_bytes.all.current`, `.peak`, …) in bytes."""
    from .. import memory

    reading = memory.stats()
    stats: OrderedDict[str, Any] = OrderedDict()
    for name in ("active_bytes", "allocated_bytes", "reserved_bytes"):
        stats[f"{name}.all.current"] = reading.allocated
        stats[f"{name}.all.peak"] = reading.peak
    stats["allocation.all.allocated"] = reading.allocations
    stats["allocation.all.freed"] = reading.frees
    stats["allocation.all.current"] = reading.allocations - reading.frees
    stats["num_alloc_retries"] = 0
    stats["num_ooms"] = 0
    return stats


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes of live tensors."""
    from .. import memory

    return memory.stats().allocated


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that were live at once since the start or `reset_peak_memory_stats`."""
    from .. import memory

    return memory.stats().peak


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """The peak starts again from what is alive now."""
    from .. import memory

    memory.reset_peak()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of the device's capacity."""
    from .. import memory

    reading = memory.stats()
    return max(reading.limit - reading.allocated, 0), reading.limit


def empty_cache() -> None:
    """Gives freed memory back to the system. Live tensors and programs stay."""
    from .. import registration

    if registration._loaded:
        from ...xla.executable import give_memory_back

        give_memory_back()


def synchronize(device: Any = None, /) -> None:
    """Waits for everything given to the device; raises IndexError for a pending bad index."""
    from .. import registration

    if registration._loaded:
        from ..streams import wait_for_device

        wait_for_device()


def current_stream(device: Any = None, /) -> Any:
    """The device's stream."""
    return torch.get_device_module("tpu").current_stream(device)


def set_stream(stream: Any) -> None:
    """Chooses the stream; there is one."""


def current_device_index() -> int:
    """0."""
    return 0


def set_device_index(device: Any, /) -> None:
    """Chooses the device; only `tpu:0` can be. Raises ValueError for any other."""
    torch.get_device_module("tpu").set_device(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The dtypes the device has, under `supported_dtypes`."""
    from ...lowering.dtypes import SUPPORTED

    return {"supported_dtypes": set(SUPPORTED)}


def apply() -> None:
    """Patches `Tensor.record_stream` and the functions of `torch.accelerator`; the accelerator of a process with this device is always `tpu`."""
    accelerator: Any = torch.accelerator
    ours = {
        "memory_stats": memory_stats,
        "memory_allocated": memory_allocated,
        "max_memory_allocated": max_memory_allocated,
        "memory_reserved": memory_allocated,
        "max_memory_reserved": max_memory_allocated,
        "reset_peak_memory_stats": reset_peak_memory_stats,
        "reset_accumulated_memory_stats": reset_peak_memory_stats,
        "get_memory_info": get_memory_info,
        "empty_cache": empty_cache,
        "empty_host_cache": lambda: None,
        "synchronize": synchronize,
        "current_stream": current_stream,
        "set_stream": set_stream,
        "current_device_index": current_device_index,
        "current_device_idx": current_device_index,
        "set_device_index": set_device_index,
        "set_device_idx": set_device_index,
        "get_device_capability": get_device_capability,
    }
    tensor: Any = torch.Tensor
    record_stream = tensor.record_stream

    @functools.wraps(record_stream)
    def record(self: torch.Tensor, stream: Any) -> None:
        if self.device.type != "tpu":  # C++ knows no stream of the device; arrays live as long as somebody holds them
            record_stream(self, stream)

    tensor.record_stream = record
    for name, function in ours.items():
        setattr(accelerator, name, function)
        if hasattr(accelerator.memory, name):
            setattr(accelerator.memory, name, function)
