"""Writing by index: scatter, index_put, index_add and their kin, and filling under a mask.

An index is taken to be in range (see `indexing`); an update outside is dropped. Where several updates meet in one element
and are not combined, one of them wins, as in PyTorch it is not said which. 16-bit floats are added up in float32.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .axes import axis_of, with_axis
from .indexing import Indices, along, indexed_shape, ranks, split_index, value_as, wrapped
from .promotion import Number, cast, is_floating, opmath
from .registry import lowering

Place = tuple[Any, ...]


def _put(self: Array, place: Place, values: Array) -> Array:
    return self.at[place].set(values, mode="promise_in_bounds", wrap_negative_indices=False)


def _add(self: Array, place: Place, values: Array) -> Array:
    """Adds the updates, in float32 for narrower floats; of bool: or."""
    if self.dtype == np.bool_:
        return _extreme(self, place, values, "amax")
    work = opmath(self.dtype)
    return cast(cast(self, work).at[place].add(cast(values, work), mode="promise_in_bounds", wrap_negative_indices=False), self.dtype)


def _multiply(self: Array, place: Place, values: Array) -> Array:
    if self.dtype == np.bool_:
        return _extreme(self, place, values, "amin")
    work = opmath(self.dtype)
    return cast(cast(self, work).at[place].multiply(cast(values, work), mode="promise_in_bounds", wrap_negative_indices=False), self.dtype)


def _extreme(self: Array, place: Place, values: Array, kind: str) -> Array:
    work = np.dtype(np.uint8) if self.dtype == np.bool_ else np.dtype(self.dtype)
    at = cast(self, work).at[place]
    update = at.max if kind == "amax" else at.min
    return cast(update(cast(values, work), mode="promise_in_bounds", wrap_negative_indices=False), self.dtype)


def _neutral(kind: str, dtype: np.dtype) -> Any:
    """What an element counts as that a reduction is to leave out."""
    if kind in ("sum", "mean"):
        return 0
    if kind == "prod":
        return 1
    if dtype == np.bool_:
        return kind == "amin"
    if is_floating(dtype):
        return -np.inf if kind == "amax" else np.inf
    return np.iinfo(dtype).min if kind == "amax" else np.iinfo(dtype).max


def _reduce(self: Array, place: Place, values: Array, kind: str, include_self: bool) -> Array:
    """Reduces the updates of each element, with its old value or without; elements without update keep theirs."""
    start = self if include_self else _put(self, place, lax.full_like(values, _neutral(kind, np.dtype(self.dtype))))
    if kind in ("sum", "add"):
        return _add(start, place, values)
    if kind in ("prod", "multiply"):
        return _multiply(start, place, values)
    if kind in ("amax", "amin"):
        return _extreme(start, place, values, kind)
    work = opmath(self.dtype)
    total = _add(cast(start, work), place, cast(values, work))
    counts = _add(lax.full(self.shape, int(include_self), np.int32), place, lax.full(values.shape, 1, np.int32))
    counts = lax.max(counts, lax.full_like(counts, 1)).astype(work)
    return cast(jnp.floor_divide(total, counts) if jnp.issubdtype(work, jnp.integer) else total / counts, self.dtype)


def _prepared(self: Array, dim: int, index: Array, src: Array | Number) -> tuple[Array, Place, Array]:
    """Array, place and updates of a scatter. `src` may be larger than `index`; what lies beyond is not used."""
    array, places = with_axis(self), with_axis(index)
    values = value_as(src, np.dtype(self.dtype))
    if values.ndim == 0 and not (isinstance(src, Array) and self.ndim == 0):
        values = lax.full(places.shape, values, values.dtype)
    values = lax.slice(with_axis(values), [0] * places.ndim, places.shape)
    axis = axis_of(dim, self.ndim)
    return array, along(places, axis, array.shape[axis]), values


def _scattered(self: Array, dim: int, index: Array, src: Array | Number, kind: str | None, include_self: bool = True) -> Array:
    if index.size == 0:
        return self
    array, place, values = _prepared(self, dim, index, src)
    out = _put(array, place, values) if kind is None else _reduce(array, place, values, kind, include_self)
    return out.reshape(self.shape)


@lowering("scatter.src")
def scatter_src(self: Array, dim: int, index: Array, src: Array) -> Array:
    return _scattered(self, dim, index, src, None)


@lowering("scatter.value")
def scatter_value(self: Array, dim: int, index: Array, value: Number) -> Array:
    return _scattered(self, dim, index, value, None)


@lowering("scatter.reduce")
def scatter_reduce_src(self: Array, dim: int, index: Array, src: Array, *, reduce: str) -> Array:
    return _scattered(self, dim, index, src, reduce)


@lowering("scatter.value_reduce")
def scatter_reduce_value(self: Array, dim: int, index: Array, value: Number, *, reduce: str) -> Array:
    return _scattered(self, dim, index, value, reduce)


@lowering("scatter_add")
def scatter_add(self: Array, dim: int, index: Array, src: Array) -> Array:
    return _scattered(self, dim, index, src, "sum")


@lowering("scatter_reduce.two")
def scatter_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool) -> Array:
    return _scattered(self, dim, index, src, reduce, include_self)


def _rows(self: Array, dim: int, index: Array) -> tuple[Array, Place, tuple[int, ...]]:
    """Array, place and shape of updates that are whole slices along `dim`."""
    array, axis = with_axis(self), axis_of(dim, self.ndim)
    shape = (*array.shape[:axis], index.size, *array.shape[axis + 1 :])
    return array, (*[slice(None)] * axis, index.reshape(-1)), shape


@lowering("index_add")
def index_add(self: Array, dim: int, index: Array, source: Array, *, alpha: Number) -> Array:
    array, place, shape = _rows(self, dim, index)
    if math.prod(shape) == 0:
        return self
    values = cast(source, self.dtype)
    values = lax.bitwise_and(values, alpha.to(values.dtype)) if values.dtype == np.bool_ else values * alpha.to(values.dtype)
    return _add(array, place, values.reshape(shape)).reshape(self.shape)


@lowering("index_copy")
def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    array, place, shape = _rows(self, dim, index)
    return self if math.prod(shape) == 0 else _put(array, place, cast(source, self.dtype).reshape(shape)).reshape(self.shape)


@lowering("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(self: Array, dim: int, index: Array, value: Array | Number) -> Array:
    array, place, shape = _rows(self, dim, wrapped(index, with_axis(self).shape[axis_of(dim, self.ndim)]))
    return (
        self
        if math.prod(shape) == 0
        else _put(array, place, lax.full(shape, value_as(value, np.dtype(self.dtype)).reshape(()), self.dtype)).reshape(self.shape)
    )


@lowering("index_reduce")
def index_reduce(self: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool) -> Array:
    array, place, shape = _rows(self, dim, index)
    if math.prod(shape) == 0:
        return self
    return _reduce(array, place, cast(source, self.dtype).reshape(shape), reduce, include_self).reshape(self.shape)


def single_mask(indices: Indices) -> tuple[int, Array] | None:
    """The one index of a list, if it is a bool mask: the first dim it covers and the mask."""
    named = [(d, i) for d, i in enumerate(indices) if i is not None]
    return named[0] if len(named) == 1 and named[0][1].dtype == np.bool_ else None


def _put_masked(self: Array, first: int, mask: Array, values: Array, accumulate: bool) -> Array:
    """`self[mask] = values`, the mask on the dims from `first` on. How many it chooses is not needed: each takes the value of its rank."""
    before, after = self.shape[:first], self.shape[first + mask.ndim :]
    chosen = lax.broadcast_in_dim(mask, self.shape, range(first, first + mask.ndim))
    values = values.reshape((1,) * (len(before) + 1 + len(after) - values.ndim) + values.shape)
    if values.shape[first] == 1:
        values = values.reshape(*values.shape[:first], *[1] * mask.ndim, *values.shape[first + 1 :])
    elif values.size:
        taken = jnp.take(values, ranks(mask.reshape(-1)), axis=first, mode="clip")
        values = taken.reshape(*values.shape[:first], *mask.shape, *values.shape[first + 1 :])
    else:
        return self
    new = jnp.broadcast_to(values, self.shape)
    return lax.select(chosen, self + new if accumulate else new, self)


@lowering("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(self: Array, indices: Indices, values: Array | Number, accumulate: bool, unsafe: bool = False) -> Array:
    """Integer indices, negative ones count from the end; or one bool mask (several have to be turned into positions before)."""
    new = value_as(values, np.dtype(self.dtype))
    masked = single_mask(indices)
    if masked is not None:
        return _put_masked(self, *masked, new, accumulate)
    shape = indexed_shape(self, indices)
    if math.prod(shape) == 0:
        return self
    new = jnp.broadcast_to(new, shape)
    place = split_index(self, indices)
    return _add(self, place, new) if accumulate else _put(self, place, new)


@lowering("_unsafe_masked_index_put_accumulate")
def masked_index_put(self: Array, mask: Array, indices: Indices, values: Array) -> Array:
    """Adds the values under the mask; an index is valid only there."""
    within = [None if i is None else lax.clamp(i.dtype.type(0), i, i.dtype.type(max(self.shape[d] - 1, 0))) for d, i in enumerate(indices)]
    return index_put(self, within, jnp.where(mask, values, lax.full_like(values, 0)), True)


@lowering("put")
def put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    if index.size == 0:
        return self
    flat, values = self.reshape(-1), cast(source, self.dtype).reshape(-1)
    place = (wrapped(index.reshape(-1), flat.size),)
    return (_add(flat, place, values) if accumulate else _put(flat, place, values)).reshape(self.shape)


@lowering("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self: Array, mask: Array, value: Array | Number) -> Array:
    shape = jnp.broadcast_shapes(self.shape, mask.shape)
    filled = lax.full(shape, value_as(value, np.dtype(self.dtype)), self.dtype)
    return lax.select(jnp.broadcast_to(cast(mask, np.dtype(np.bool_)), shape), filled, jnp.broadcast_to(self, shape))
