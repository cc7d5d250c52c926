"""Making and resizing tensors. Memory that nobody wrote yet has no array: it costs nothing and reads as zeros."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import torch

from ..lowering.dtypes import to_jax
from ..xla import _jax_internals as jax_internals
from . import _torch_internals as internals
from . import deferral, memory, state, tensors
from .host import alias_on_host, host_to_numpy
from .memory import Buffer
from .tensors import buffer_of, contiguous_stride, extent, layout_of, offset_of, require_device, wrap


def _checked(dtype: torch.dtype | None, layout: Any, device: Any) -> torch.dtype:
    require_device(device)
    if layout is not None and layout != torch.strided:
        raise NotImplementedError(f"layout {layout} does not exist on the device tpu; only torch.strided does. Convert with .to_dense() first.")
    dtype = dtype or torch.get_default_dtype()
    to_jax(dtype)
    return dtype


def _reserve(count: int, dtype: torch.dtype, op: str) -> None:
    memory.make_room(count * dtype.itemsize, op)


def empty(size: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, memory_format: Any = None) -> torch.Tensor:
    """`torch.empty` on the device. Raises RuntimeError for a negative size, OutOfMemoryError beyond the limit."""
    dtype = _checked(dtype, layout, device)
    size = tuple(size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, dtype=dtype, device="meta", memory_format=memory_format).stride()
        return empty_strided(size, stride, dtype)
    _reserve(math.prod(size), dtype, "aten.empty")
    return wrap(None, size, dtype)


def empty_strided(size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> torch.Tensor:
    """`torch.empty_strided` on the device."""
    dtype = _checked(dtype, layout, device)
    size, stride = tuple(size), tuple(stride)
    if any(n < 0 for n in (*size, *stride)):
        raise RuntimeError(f"Trying to create tensor with negative dimension or stride: size {list(size)}, stride {list(stride)}")
    _reserve(extent(size, stride), dtype, "aten.empty_strided")
    return wrap(None, size, dtype, stride)


def resize_(self: torch.Tensor, size: Any, memory_format: Any = None) -> torch.Tensor:
    """`tensor.resize_`: keeps the storage's contents; what is new reads as zeros. A tensor of that size stays as it is."""
    size = tuple(size)
    if memory_format is None and size == tuple(self.shape):
        return self
    stride = contiguous_stride(size)
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
    buffer = buffer_of(self)
    tensors.give_size(self)
    offset = offset_of(self)
    needed = (offset + extent(size, stride)) * self.element_size() if 0 not in size else 0
    if needed > buffer.nbytes:
        grow(self.untyped_storage(), buffer, self.dtype, needed)
    internals.point_at(self, self.untyped_storage(), offset, size, stride)
    buffer.sized = True
    return self


def grow(storage: Any, buffer: Buffer, dtype: torch.dtype, nbytes: int) -> None:
    """Makes a storage hold `nbytes` (more or fewer than now); the common part of its contents stays."""
    own = buffer.layout.torch_dtype if buffer.layout.count else dtype
    if nbytes % own.itemsize:
        own = torch.uint8
    layout = layout_of(nbytes // own.itemsize, own)
    if layout.nbytes > buffer.nbytes:
        _reserve((layout.nbytes - buffer.nbytes) // own.itemsize, own, "aten.resize_")
    if state.journals:
        state.about_to_write(buffer)
    buffer.resize(_resized(buffer, layout), layout, layout.nbytes)


def _resized(buffer: Buffer, layout: Any) -> jax.Array | None:
    if buffer.array is None:
        deferral.materialize(buffer)
    if buffer.array is None or not buffer.nbytes:
        return None
    old = host_to_numpy(alias_on_host(buffer.array, buffer.layout.torch_dtype)).view(np.uint8)
    raw = np.zeros(layout.nbytes, np.uint8)
    common = min(raw.size, old.size)
    raw[:common] = old[:common]
    return jax_internals.put(raw.view(layout.dtype), copy=False)
