"""Tensors of the device and the jax arrays behind them.

A tensor is a plain `torch.Tensor` on `tpu:0`. Its storage object (the same Python object as long as the C++ storage lives)
carries a `Buffer`, whose array is flat: one element after the other, as the storage's bytes lie. Views share the storage and
so the buffer. torch is told a storage's byte count only when somebody needs it (`give_size`), which saves 2 µs per tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import torch

from ..lowering.dtypes import to_jax, to_torch
from ..xla import _jax_internals as jax_internals
from . import _torch_internals as internals
from . import deferral, memory, state
from .memory import Buffer


@dataclass(frozen=True, eq=False)
class Layout:
    """What a program has to know of a flat array: how many elements of which dtype. One object per pair (compare with `is`)."""

    count: int
    dtype: np.dtype
    torch_dtype: torch.dtype
    nbytes: int

    def aval(self) -> jax.ShapeDtypeStruct:
        """Shape and dtype as jax writes them."""
        return aval((self.count,), self.dtype)


def aval(shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    """A shape and a dtype as jax writes them."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


_layouts: dict[tuple[int, torch.dtype], Layout] = {}


def layout_of(count: int, dtype: torch.dtype) -> Layout:
    """The interned layout of `count` elements of `dtype`. Raises TypeError for a dtype the device does not have."""
    found = _layouts.get((count, dtype))
    if found is None:
        jax_dtype = to_jax(dtype)
        found = _layouts.setdefault((count, dtype), Layout(count, jax_dtype, dtype, count * jax_dtype.itemsize))
    return found


def contiguous_stride(size: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements, as torch counts them (a dimension of 0 counts as 1)."""
    stride, step = [], 1
    for extent in reversed(size):
        stride.append(step)
        step *= max(extent, 1)
    return tuple(reversed(stride))


def extent(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last one that a geometry touches; 0 if it has none."""
    if 0 in size:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def require_device(device: Any) -> None:
    """Raises RuntimeError for a device that this process does not have."""
    if device is not None and device.index:
        raise RuntimeError(f"tpu error: invalid device ordinal {device.index}: a process sees one device, tpu:0")


def wrap(array: jax.Array | None, size: Any, dtype: torch.dtype, stride: Any = None) -> torch.Tensor:
    """A new tensor over a new storage that holds the flat `array` (None: not written yet). `stride` None means row-major."""
    tensor = internals.create_empty_tensor(size, dtype)
    count = math.prod(size) if stride is None else extent(size, stride)
    layout = _layouts.get((count, dtype)) or layout_of(count, dtype)
    storage = tensor.untyped_storage()
    storage.buffer = Buffer(array, layout, layout.nbytes)  # type: ignore[attr-defined]
    if not count or (stride is not None and stride != contiguous_stride(size)):  # what C++ makes of an empty size has strides of 0
        stride = stride or contiguous_stride(tuple(size))
        internals.point_at(tensor, storage, 0, size, stride)
        storage.buffer.sized = True  # type: ignore[attr-defined]
    return tensor


def buffer_of(tensor: torch.Tensor) -> Buffer:
    """The buffer behind a tensor of the device, made on the spot for one torch created by itself."""
    storage = tensor.untyped_storage()
    try:
        return storage.buffer  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return adopt(storage, tensor.dtype)


def adopt(storage: Any, dtype: torch.dtype) -> Buffer:
    """Gives a storage that came from C++ (a resized or re-set one) a buffer of its byte count."""
    nbytes = raw_nbytes(storage)
    layout = layout_of(nbytes // dtype.itemsize, dtype)
    storage.buffer = Buffer(None, layout, layout.nbytes)
    storage.buffer.sized = True
    return storage.buffer  # type: ignore[no-any-return]


offset_of: Callable[[torch.Tensor], int] = torch.Tensor.storage_offset  # type: ignore[assignment]
"""`tensor.storage_offset()`, a plain int for the tensors here."""
raw_nbytes = torch.UntypedStorage.nbytes
"""The byte count torch itself knows; 0 for a storage that was never `give_size`d."""


def give_size(tensor: torch.Tensor) -> None:
    """Tells torch the byte count of a tensor's storage; needed before C++ view kernels check their bounds against it."""
    storage = tensor.untyped_storage()
    buffer = getattr(storage, "buffer", None)
    if buffer is None or buffer.sized:
        return
    if buffer.nbytes:
        internals.point_at(tensor, storage, offset_of(tensor), tensor.shape, tensor.stride())
    buffer.sized = True


def array_of(buffer: Buffer) -> jax.Array:
    """The flat array of a buffer; contents that were never written are zeros from now on."""
    array = buffer.array
    if array is None and buffer.label is not None:
        deferral.materialize(buffer)
        array = buffer.array
    if array is None:
        array = buffer.array = zeros(buffer.layout)
    return array  # type: ignore[no-any-return]


def zeros(layout: Layout) -> jax.Array:
    """A flat array of zeros (fresh memory pages are zero already, so nothing is written)."""
    if layout.nbytes and memory.ledger.live > memory.ledger.limit:
        memory.refuse(layout.nbytes, "empty")
    return jax_internals.put(np.zeros(layout.count, layout.dtype), copy=False)


def replace(buffer: Buffer, array: jax.Array) -> None:
    """New contents of the same layout for a storage; every view of it sees them."""
    if state.journals:
        state.about_to_write(buffer)
    buffer.array = array
    buffer.shared = False
    buffer.label = None


def dtype_of(array: jax.Array) -> torch.dtype:
    """torch's name for an array's dtype."""
    return to_torch(array.dtype)


def copied(array: jax.Array) -> jax.Array:
    """A flat array of its own with the same contents."""
    return jax_internals.put(np.asarray(array), copy=True)


def retype(storage: Any, dtype: torch.dtype) -> None:
    """Lets a storage of raw bytes (loaded, or made by `torch.UntypedStorage`) be one of `dtype`, so that programs read it directly."""
    buffer = getattr(storage, "buffer", None)
    if buffer is None or buffer.layout.torch_dtype is not torch.uint8 or dtype.itemsize == 1 or buffer.nbytes % dtype.itemsize:
        return
    deferral.materialize(buffer)
    layout = layout_of(buffer.nbytes // dtype.itemsize, dtype)
    buffer.label = None
    if buffer.array is not None:
        buffer.array = jax_internals.put(np.asarray(buffer.array).view(layout.dtype), copy=True)
    buffer.layout = layout
