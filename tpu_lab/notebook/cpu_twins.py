"""The `cpu` leg of a comparison: the same code on CPU copies of the device's tensors.

Every reference to a device tensor in the namespace, its containers and objects is replaced by a CPU twin with the same values
and the same sharing of storage, and code that names the device is led to the CPU. Restoring the snapshot puts the originals back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..device import _torch_internals as internals
from .state import Reachable, is_hidden


class OnCpu(TorchFunctionMode):
    """A context in which a device of type `device` means the CPU, wherever PyTorch is told it."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._type = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        args = tuple(map(self._led, args))
        kwargs = {name: self._led(value) for name, value in (kwargs or {}).items()}
        return func(*args, **kwargs)

    def _led(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == self._type else value
        if isinstance(value, str) and (value == self._type or value.startswith(self._type + ":")):
            return "cpu"
        return value


def replace_by_twins(found: Reachable, namespace: dict[str, Any], device: str) -> None:
    """Replaces every reference to a tensor on `device` by its CPU twin."""
    replaced = _Replacement(_twins([t for t in found.tensors if t.device.type == device and t.layout == torch.strided]))
    for container in found.containers:
        replaced.inside(container)
    for owner in found.attributes:
        replaced.inside(owner.__dict__)
    for cell in found.cells:
        try:
            cell.cell_contents = replaced(cell.cell_contents)
        except ValueError:  # a variable that is not bound yet
            continue
    for name in [n for n in namespace if not is_hidden(n)]:
        namespace[name] = replaced(namespace[name])


def _twins(tensors: list[torch.Tensor]) -> dict[int, torch.Tensor]:
    """CPU copies by the id of the original; originals that share storage have twins that share storage."""
    storages: dict[int, torch.Tensor] = {}
    twins: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        key = internals.storage_key(storage)
        flat = storages.get(key)
        if flat is None:
            count = storage.nbytes() // tensor.element_size()
            whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            with torch.no_grad():
                whole.set_(storage, 0, (count,), (1,))
            flat = storages[key] = whole.to("cpu", copy=True)
        twins[id(tensor)] = _twin(tensor, flat)
    for tensor in tensors:
        if tensor.is_leaf and tensor.grad is not None:
            twins[id(tensor)].grad = twins.get(id(tensor.grad))
    return twins


def _twin(tensor: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        typed = flat if flat.dtype == tensor.dtype else flat.view(tensor.dtype)
        twin = typed.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if tensor.is_conj():
            twin = twin.conj()
        if tensor.is_neg():
            twin = twin._neg_view()
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(twin, requires_grad=tensor.requires_grad)
    twin = twin.detach()
    return twin.requires_grad_() if tensor.requires_grad and tensor.is_leaf else twin


class _Replacement:
    """Puts twins in the place of originals, also inside tuples."""

    def __init__(self, twins: dict[int, torch.Tensor]) -> None:
        self._twins = twins

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._twins.get(id(value), value)
        if isinstance(value, tuple) and type(value) is not torch.Size:
            parts = [self(part) for part in value]
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                make: Callable[..., Any] = type(value)
                return make(*parts) if hasattr(value, "_fields") else make(parts)
        return value

    def inside(self, container: Any) -> None:
        if isinstance(container, dict):
            items = [(self(key), self(value)) for key, value in container.items()]
            if any(k is not key or v is not value for (k, v), (key, value) in zip(items, container.items(), strict=True)):
                container.clear()
                for key, value in items:
                    container[key] = value
        elif isinstance(container, (list, set, deque)):
            parts = [self(part) for part in container]
            if any(new is not old for new, old in zip(parts, container, strict=True)):
                container.clear()
                (container.update if isinstance(container, set) else container.extend)(parts)
