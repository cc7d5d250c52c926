"""Which devices there are: one, `tpu:0`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class DeviceProperties:
    """What the device is. `total_memory` is its capacity in bytes (the memory limit), `backend` what runs its programs."""

    name: str
    total_memory: int
    multi_processor_count: int
    backend: str


def is_available() -> bool:
    """True: the device always exists, on XLA:CPU where there is no TPU."""
    return True


def device_count() -> int:
    """1: a process sees one device, `tpu:0`."""
    return 1


def current_device() -> int:
    """0."""
    return 0


def index_of(device: Any) -> int:
    """The index of a device given as None, int, str or torch.device. Raises ValueError for another device or index."""
    if device is None:
        return 0
    if isinstance(device, int):
        index = device
    else:
        named = torch.device(device)
        if named.type != "tpu":
            raise ValueError(f"expected a tpu device, got {named}; accepted are None, 0, 'tpu' and 'tpu:0'")
        index = named.index or 0
    if index != 0:
        raise ValueError(f"invalid device index {index}: a process sees one device, tpu:0")
    return 0


def set_device(device: Any) -> None:
    """Chooses the device; only `tpu:0` can be. Raises ValueError for any other."""
    index_of(device)


def is_initialized() -> bool:
    """True once the first tensor of the device was made."""
    from .. import registration

    return registration._loaded


def synchronize(device: Any = None) -> None:
    """Waits for everything given to the device; raises IndexError for a pending bad index."""
    index_of(device)
    from ..patches.accelerator import synchronize as wait

    wait()


class device:
    """`with torch.tpu.device(0):`, for code written for several devices. Raises ValueError for a device other than `tpu:0`."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class device_of(device):
    """`with torch.tpu.device_of(tensor):`, as on CUDA."""

    def __init__(self, obj: Any) -> None:
        super().__init__(0)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, capacity in bytes and backend of the device."""
    index_of(device)
    from .. import memory

    return DeviceProperties("TPU Lab (XLA:CPU)", memory.get_memory_limit(), 1, "XLA:CPU")


def get_device_name(device: Any = None) -> str:
    """The device's name. It says XLA:CPU, so that nobody takes its speed for a TPU's."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(0, 0): XLA:CPU has no generation."""
    index_of(device)
    return 0, 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True."""
    return True
