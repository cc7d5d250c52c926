"""Handing tensors to others: DLPack and pinned memory. Always by a copy, since the device's arrays are immutable."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.utils.dlpack

_DLPACK_CPU = (1, 0)


def apply() -> None:
    """Patches `Tensor.__dlpack__`, `__dlpack_device__`, `torch.to_dlpack`, `pin_memory` and `is_pinned`."""
    tensor: Any = torch.Tensor
    dlpack, dlpack_device, pin_memory, is_pinned = tensor.__dlpack__, tensor.__dlpack_device__, tensor.pin_memory, tensor.is_pinned

    @functools.wraps(dlpack)
    def to_dlpack(self: torch.Tensor, **kwargs: Any) -> Any:
        if self.device.type != "tpu":
            return dlpack(self, **kwargs)
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        kwargs.pop("dl_device", None)
        return dlpack(self.cpu(), **kwargs)

    @functools.wraps(dlpack_device)
    def device_of_dlpack(self: torch.Tensor) -> Any:
        return _DLPACK_CPU if self.device.type == "tpu" else dlpack_device(self)

    @functools.wraps(pin_memory)
    def pinned_copy(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if self.device.type == "tpu":
            raise RuntimeError("cannot pin 'torch.tpu.FloatTensor' only dense CPU tensors can be pinned")
        if _cuda_like(device):
            return pin_memory(self, device)  # type: ignore[no-any-return]
        return self.clone()

    @functools.wraps(is_pinned)
    def never_pinned(self: torch.Tensor, device: Any = None) -> bool:
        if self.device.type == "tpu" or not _cuda_like(device):
            return False
        return is_pinned(self, device)  # type: ignore[no-any-return]

    homes: tuple[Any, ...] = (torch, torch.utils.dlpack)
    capsule_of = homes[0].to_dlpack

    @functools.wraps(capsule_of)
    def capsule(self: torch.Tensor) -> Any:
        return capsule_of(self.cpu() if self.device.type == "tpu" else self)

    for home in homes:
        home.to_dlpack = capsule
    tensor.__dlpack__, tensor.__dlpack_device__ = to_dlpack, device_of_dlpack
    tensor.pin_memory, tensor.is_pinned = pinned_copy, never_pinned


def _cuda_like(device: Any) -> bool:
    return device is not None and torch.device(device).type != "tpu"
