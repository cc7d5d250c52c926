"""Operators of a graph that are served without a lowering: casts and memory that is not yet written, prims' views, `as_strided`.

What a view operator of the prims does is asked of torch itself: it is applied to a meta tensor of the value's shape, and
the size, stride and offset that come out are read by `tpu_lab.lowering.strided`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from ...lowering import strided
from ...lowering.dtypes import to_jax
from ...lowering.promotion import cast
from ..plan import is_view

Structural = Callable[..., Any]
"""Called with the operator's arguments as its schema has them; the caller casts the result to the dtype torch states."""


@functools.cache
def structural(op: Any) -> Structural | None:
    """The function of a structural operator, None for any other. `as_strided` and its kin are not here: they need the strides of their argument."""
    if op is None or op.namespace not in ("aten", "prims"):
        return None
    known = _FUNCTIONS.get(op.name())
    if known is None and is_view(op) and not base_name(op).startswith("as_strided"):
        return functools.partial(_view, op)
    return known


def base_name(op: Any) -> str:
    """`select_scatter` of `aten::select_scatter.default`."""
    return str(op._schema.name).split("::")[1]


def read_strided(value: Array, stride: tuple[int, ...], first: int, size: Any, new_stride: Any, offset: int | None) -> Array:
    """`as_strided` of a tensor with these strides whose own first element lies at `first` in its storage.

    Raises ValueError for a view that leaves the memory of the tensor itself: a graph knows no more of the storage than that.
    """
    storage = strided.lay_out(value, stride)
    return strided.read(storage, size, new_stride, _inside(storage, first, size, new_stride, offset))


def write_strided(value: Array, stride: tuple[int, ...], first: int, source: Array, size: Any, new_stride: Any, offset: int | None) -> Array:
    """`as_strided_scatter`: the tensor after `source` was written through such a view of it. Raises as `read_strided`."""
    storage = strided.lay_out(value, stride)
    storage = strided.write(storage, size, new_stride, _inside(storage, first, size, new_stride, offset), cast(source, value.dtype))
    return strided.read(storage, value.shape, stride, 0)


def _inside(storage: Array, first: int, size: Any, stride: Any, offset: int | None) -> int:
    start = 0 if offset is None else offset - first
    extent = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if start < 0 or start + extent > storage.shape[0]:
        raise ValueError(
            f"as_strided(size={list(size)}, stride={list(stride)}, storage_offset={offset}) reaches outside its argument, which has "
            f"{storage.shape[0]} elements from offset {first}; inside a compiled graph apply it to the tensor that owns the memory"
        )
    return start


def _view(op: Any, value: Array, *arguments: Any, **named: Any) -> Any:
    flat = value.reshape(-1)

    def show(view: Any) -> Array:
        if view.numel() == value.size and view.is_contiguous():
            return value.reshape(view.shape)
        return strided.read(flat, tuple(view.shape), view.stride(), view.storage_offset())

    result = op(torch.empty(value.shape, dtype=torch.uint8, device="meta"), *arguments, **named)
    return [show(view) for view in result] if isinstance(result, (list, tuple)) else show(result)


def _as_dtype(value: Array, dtype: torch.dtype) -> Array:
    new = to_jax(dtype)
    flat = strided.reinterpret(value.reshape(-1), new)
    if new.itemsize == value.dtype.itemsize:
        return flat.reshape(value.shape)
    return flat.reshape(*value.shape[:-1], value.shape[-1] * value.dtype.itemsize // new.itemsize)


def _same(value: Array, *_: Any, **__: Any) -> Array:
    return value


def _zeros(size: Any, *_: Any, **__: Any) -> Array:
    """Memory that nobody has written yet: zeros, so that a program's results never depend on chance."""
    return jnp.zeros(tuple(size), np.bool_)


def _iota(length: int, *, start: int, step: int, **_: Any) -> Array:
    return lax.iota(np.int64, length) * step + start


def _reshape(value: Array, shape: Any) -> Array:
    return value.reshape(tuple(shape))


def _broadcast_in_dim(value: Array, shape: Any, broadcast_dimensions: Any) -> Array:
    return lax.broadcast_in_dim(value, tuple(shape), tuple(broadcast_dimensions))


_FUNCTIONS: dict[str, Structural] = {
    "aten::_to_copy": _same,
    "aten::contiguous": _same,
    "aten::resolve_conj": _same,
    "aten::resolve_neg": _same,
    "aten::_conj": lax.conj,
    "aten::_neg_view": lax.neg,
    "prims::convert_element_type": _same,
    "prims::device_put": _same,
    "prims::view_of": _same,
    "prims::view_of_dtype": _as_dtype,
    "prims::clone": _same,
    "prims::copy_strided": _same,
    "prims::broadcast_in_dim": _broadcast_in_dim,
    "prims::reshape": _reshape,
    "prims::iota": _iota,
    "prims::empty": _zeros,
    "prims::empty_strided": _zeros,
    "prims::empty_permuted": _zeros,
    "prims::conj": lax.conj,
    "prims::real": lax.real,
    "prims::imag": lax.imag,
}
