"""Samples on their way to the device: the same values in the same geometry, views of one storage staying views of one storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

CPU_DEVICES = ("cpu", torch.device("cpu"))


class NotForDevice(Exception):
    """A sample the device does not take: a sparse, quantized or nested tensor."""


class Mover:
    """Copies arguments to a device. One mover per call keeps tensors that share a storage sharing it; `moved` says if any came along."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.storages: dict[int, torch.Tensor] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        self.moved = False

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (str, torch.device)) and value in CPU_DEVICES:
            self.moved = True
            return torch.device(self.device)
        if isinstance(value, torch.Generator):
            generator = torch.Generator(self.device)
            return generator.manual_seed(value.initial_seed())
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self(v) for v in value))
        if isinstance(value, (list, tuple)):
            return type(value)(self(v) for v in value)
        if isinstance(value, dict):
            return {key: self(v) for key, v in value.items()}
        return value

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            raise NotForDevice(f"a tensor of layout {value.layout}")
        known = self.tensors.get(id(value))
        if known is None:
            known = self.tensors[id(value)] = self._copy(value.detach()).requires_grad_(value.requires_grad)
            self.moved = True
        return known

    def _copy(self, value: torch.Tensor) -> torch.Tensor:
        if value.is_conj():
            return self._copy(value.conj()).conj()
        if value.is_neg():
            return torch._neg_view(self._copy(torch._neg_view(value)))
        storage = value.untyped_storage()
        key = storage.data_ptr() or -len(self.storages) - 1
        flat = self.storages.get(key)
        if flat is None or flat.dtype != value.dtype:
            count = storage.nbytes() // value.element_size()
            plain = torch.empty(0, dtype=value.dtype).set_(storage, 0, (count,), (1,))
            flat = self.storages[key] = plain.clone().to(self.device)
        return flat.as_strided(value.shape, value.stride(), value.storage_offset())


def each_tensor(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Arguments with `function` applied to each tensor among them."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each_tensor(function, v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(each_tensor(function, v) for v in value)
    if isinstance(value, dict):
        return {key: each_tensor(function, v) for key, v in value.items()}
    return value


_WIDER = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex64: torch.complex128,
}


def widened(value: Any) -> Any:
    """Arguments with every floating or complex tensor, and every such dtype, in double precision."""
    if isinstance(value, torch.dtype):
        return _WIDER.get(value, value)
    if isinstance(value, torch.Tensor):
        wide = _WIDER.get(value.dtype)
        return value if wide is None else value.detach().to(wide).requires_grad_(value.requires_grad)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(widened(v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(widened(v) for v in value)
    return {key: widened(v) for key, v in value.items()} if isinstance(value, dict) else value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors among (nested) values, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_of(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


def as_conjugate(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a view with the conjugate bit (complex tensors; others as they are)."""
    if tensor.layout != torch.strided or not tensor.is_complex():
        return tensor
    return torch.conj(tensor.detach().conj_physical()).requires_grad_(tensor.requires_grad)


def as_negative(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a view with the negative bit (floating and complex tensors; others as they are)."""
    if tensor.layout != torch.strided or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    return torch._neg_view(-tensor.detach()).requires_grad_(tensor.requires_grad)
