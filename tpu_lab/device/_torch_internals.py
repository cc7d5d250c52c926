"""Every private name of torch that the device touches, in one file, so that a torch upgrade can break only this one.

`tests/device/test_torch_internals.py` exercises each name and fails by that name when a version changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

DispatchKey = torch._C.DispatchKey
DispatchKeySet = torch._C.DispatchKeySet
META = DispatchKeySet(DispatchKey.Meta)
CPU = DispatchKeySet(DispatchKey.CPU)

create_empty_tensor: Callable[[Any, torch.dtype], torch.Tensor] = torch._C._acc.create_empty_tensor
"""A dense tensor on tpu:0 whose storage says 0 bytes (see `tensors.give_size`)."""

_set_storage = torch.ops.aten.set_.source_Storage_storage_offset.redispatch


def point_at(tensor: torch.Tensor, storage: Any, offset: int, size: Any, stride: Any) -> None:
    """`tensor.set_(storage, offset, size, stride)` by the meta kernel, which also grows the storage to the bytes needed."""
    _set_storage(META, tensor, storage, offset, size, stride)


def cpu_view_kernel(overload: str) -> Callable[..., torch.Tensor]:
    """The C++ CPU kernel of a view operator; it only makes another tensor over the same storage, so it serves any device."""
    packet, _, name = overload.partition(".")
    return getattr(getattr(torch.ops.aten, packet), name or "default").redispatch  # type: ignore[no-any-return]


_SCALAR_BYTE = torch.zeros((), dtype=torch.uint8)


def is_python_number(scalar: torch.Tensor) -> bool:
    """True if a 0-dim CPU tensor stands for a Python number of the user's (`x * 2.5`), which promotes more weakly than a tensor."""
    dtype = scalar.dtype
    if dtype == torch.bool:
        return False
    return torch.result_type(_SCALAR_BYTE, scalar) != torch.promote_types(torch.uint8, dtype)


def autograd_node_sequence() -> int | None:
    """The sequence number of the autograd node that runs now on this thread, None outside backward."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


def next_sequence() -> int:
    """The sequence number the next autograd node made on this thread will get."""
    return int(torch._C._autograd._get_sequence_nr())


def all_schemas() -> list[Any]:
    """Schemas of all registered operators."""
    return torch._C._jit_get_all_schemas()


def has_backend_kernel(name: str, key: str) -> bool:
    """True if operator `ns::op.overload` has a kernel registered for a dispatch key."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def is_dispatched(name: str) -> bool:
    """True for an operator of the dispatcher (TorchScript's number overloads are not)."""
    return torch._C._dispatch_has_kernel(name)
