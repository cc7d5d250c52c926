"""Views and their copies as functions of the values alone: reshape, permute, slice, select, diagonal, unfold, split.

The device shares storages between views; these lowerings serve graphs and `_copy` operators, where a view is just a value.
`as_strided` reads its argument as if it were contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from . import strided
from .axes import axis_of, positions
from .dtypes import to_jax
from .registry import lowering


@lowering("view", "view_copy", "_unsafe_view", "reshape", "_reshape_copy")
def view(self: Array, size: Sequence[int]) -> Array:
    """At most one size is -1, what is left over."""
    known = math.prod(n for n in size if n != -1)
    return self.reshape([self.size // known if n == -1 else n for n in size])


@lowering("_reshape_alias", "_reshape_alias_copy")
def reshape_alias(self: Array, size: Sequence[int], stride: Sequence[int]) -> Array:
    return self.reshape(tuple(size))


@lowering("view.dtype", "view_copy.dtype")
def view_dtype(self: Array, dtype: torch.dtype) -> Array:
    """The same bytes as another dtype; the last dim grows or shrinks by the ratio of the item sizes."""
    target = to_jax(dtype)
    have, want = self.dtype.itemsize, target.itemsize
    shape = self.shape if have == want else (*self.shape[:-1], self.shape[-1] * have // want)
    return strided.reinterpret(self.reshape(-1), target).reshape(shape)


@lowering("view_as_real")
def view_as_real(self: Array) -> Array:
    return lax.concatenate([lax.expand_dims(part, (self.ndim,)) for part in (lax.real(self), lax.imag(self))], self.ndim)


@lowering("view_as_complex")
def view_as_complex(self: Array) -> Array:
    return lax.complex(self[..., 0], self[..., 1])


@lowering("permute", "permute_copy")
def permute(self: Array, dims: Sequence[int]) -> Array:
    return lax.transpose(self, [axis_of(d, self.ndim) for d in dims])


@lowering("transpose.int", "transpose_copy.int")
def transpose(self: Array, dim0: int, dim1: int) -> Array:
    if self.ndim == 0:
        return self
    order = list(range(self.ndim))
    first, second = axis_of(dim0, self.ndim), axis_of(dim1, self.ndim)
    order[first], order[second] = order[second], order[first]
    return lax.transpose(self, order)


@lowering("t", "t_copy")
def t(self: Array) -> Array:
    return lax.transpose(self, range(self.ndim - 1, -1, -1))


@lowering("expand", "expand_copy")
def expand(self: Array, size: Sequence[int], *, implicit: bool) -> Array:
    """A size of -1 keeps the dim."""
    new = len(size) - self.ndim
    shape = [self.shape[d - new] if n == -1 else n for d, n in enumerate(size)]
    return jnp.broadcast_to(self, shape)


@lowering("squeeze", "squeeze_copy")
def squeeze(self: Array) -> Array:
    return self.reshape([n for n in self.shape if n != 1])


@lowering("squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze_dims(self: Array, dim: int | Sequence[int]) -> Array:
    """Removes those of the dims that have length 1."""
    dims = {axis_of(d, self.ndim) for d in ([dim] if isinstance(dim, int) else dim)}
    return self.reshape([n for d, n in enumerate(self.shape) if n != 1 or d not in dims])


@lowering("unsqueeze", "unsqueeze_copy")
def unsqueeze(self: Array, dim: int) -> Array:
    return lax.expand_dims(self, (dim + self.ndim + 1 if dim < 0 else dim,))


def slice_range(length: int, start: int | None, end: int | None, step: int) -> tuple[int, int, int]:
    """Start, end and number of elements of a slice as in Python, for a positive step."""
    first, last, _ = slice(start, end, step).indices(length)
    return first, max(first, last), len(range(first, last, step))


@lowering("slice.Tensor", "slice_copy.Tensor")
def slice_tensor(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    axis = axis_of(dim, self.ndim)
    first, last, _ = slice_range(self.shape[axis], start, end, step)
    return lax.slice_in_dim(self, first, last, step, axis)


@lowering("narrow_copy")
def narrow(self: Array, dim: int, start: int, length: int) -> Array:
    axis = axis_of(dim, self.ndim)
    first = start + self.shape[axis] if start < 0 else start
    return lax.slice_in_dim(self, first, first + length, 1, axis)


@lowering("select.int", "select_copy.int")
def select(self: Array, dim: int, index: int) -> Array:
    return lax.index_in_dim(self, index, axis_of(dim, self.ndim), keepdims=False)


@lowering("diagonal", "diagonal_copy")
def diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal becomes the last dim. It is every (columns + 1)-th element of the matrix read flat."""
    first, second = axis_of(dim1, self.ndim), axis_of(dim2, self.ndim)
    rows, columns = self.shape[first], self.shape[second]
    rest = [d for d in range(self.ndim) if d not in (first, second)]
    length = diagonal_length(rows, columns, offset)
    lead = [self.shape[d] for d in rest]
    if length == 0 or 0 in lead:
        return lax.full((*lead, length), 0, self.dtype)
    start = -offset * columns if offset < 0 else offset
    flat = lax.transpose(self, [*rest, first, second]).reshape(*lead, rows * columns)
    return lax.slice_in_dim(flat, start, start + (length - 1) * (columns + 1) + 1, columns + 1, len(lead))


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows + offset, columns) if offset < 0 else min(rows, columns - offset))


@lowering("unfold", "unfold_copy")
def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of `size` elements, `step` apart; their elements become the last dim."""
    if self.ndim == 0:
        return lax.broadcast(self, (size,))
    axis = axis_of(dimension, self.ndim)
    windows = (self.shape[axis] - size) // step + 1
    shape = (*self.shape[:axis], windows, *self.shape[axis + 1 :], size)
    if math.prod(shape) == 0:
        return lax.full(shape, 0, self.dtype)
    place = positions((windows, size), 0) * np.int32(step) + positions((windows, size), 1)
    taken = jnp.take(self, place, axis=axis, mode="clip", indices_are_sorted=step >= size)
    return jnp.moveaxis(taken, axis + 1, -1)


@lowering("split_with_sizes", "split_with_sizes_copy", "unsafe_split_with_sizes")
def split_with_sizes(self: Array, split_sizes: Sequence[int], dim: int) -> list[Array]:
    parts, at, axis = [], 0, axis_of(dim, self.ndim)
    for size in split_sizes:
        parts.append(lax.slice_in_dim(self, at, at + size, 1, axis))
        at += size
    return parts


@lowering("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor")
def split(self: Array, split_size: int, dim: int) -> list[Array]:
    """Parts of `split_size`, the last one shorter; an empty dim gives one part."""
    length = self.shape[axis_of(dim, self.ndim)]
    starts = range(0, length, split_size) if length else range(1)
    return split_with_sizes(self, [min(split_size, length - at) for at in starts], dim)


@lowering("unbind.int", "unbind_copy.int")
def unbind(self: Array, dim: int) -> list[Array]:
    axis = axis_of(dim, self.ndim)
    return [lax.index_in_dim(self, i, axis, keepdims=False) for i in range(self.shape[axis])]


@lowering("as_strided", "as_strided_copy")
def as_strided(self: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Array:
    return strided.read(self.reshape(-1), size, stride, storage_offset or 0)


@lowering("alias", "alias_copy", "detach", "detach_copy", "clone", "lift", "lift_fresh", "lift_fresh_copy", "_lazy_clone")
def same(self: Any) -> Any:
    return self
