"""Reading by index: gather, index, index_select, take, and the masked reads of fixed size.

An index is taken to be in range: `bounds` tells the device when it is not. An index outside reads some element, it never
leaves the array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .axes import axis_of, index_dtype, positions, with_axis
from .promotion import Number, cast
from .registry import lowering
from .scan import running_sum

Indices = Sequence[Array | None]


def value_as(value: Array | Number, dtype: np.dtype) -> Array:
    """An argument that supplies values (a tensor, or a number on the host) in the dtype of the tensor it goes into."""
    return value.to(dtype) if isinstance(value, Number) else cast(value, dtype)


def wrapped(index: Array, length: int) -> Array:
    """The index with negative positions counted from the end."""
    return lax.select(lax.lt(index, lax.full_like(index, 0)), index + index.dtype.type(length), index)


def along(index: Array, axis: int, length: int) -> tuple[Array, ...]:
    """The full index, one broadcastable array per axis, of the elements that `index` names along `axis` (of `length`) and itself elsewhere."""
    dtype = index_dtype(max(length, *index.shape))
    grid = []
    for d, n in enumerate(index.shape):
        shape = [n if e == d else 1 for e in range(index.ndim)]
        grid.append((index if d == axis else positions(shape, d)).astype(dtype))
    return tuple(grid)


@lowering("gather")
def gather(self: Array, dim: int, index: Array, *, sparse_grad: bool) -> Array:
    """`self` may be larger than `index` in the other dims; what lies beyond is not read."""
    if index.size == 0:
        return lax.full(index.shape, 0, self.dtype)
    array, places, axis = with_axis(self), with_axis(index), axis_of(dim, self.ndim)
    array = lax.slice(array, [0] * array.ndim, [n if d == axis else m for d, (n, m) in enumerate(zip(array.shape, places.shape, strict=True))])
    return jnp.take_along_axis(array, places, axis=axis, mode="promise_in_bounds").reshape(index.shape)


@lowering("index_select")
def index_select(self: Array, dim: int, index: Array) -> Array:
    array, axis = with_axis(self), axis_of(dim, self.ndim)
    taken = take_rows(array, index.reshape(-1), axis)
    return taken if self.ndim else taken.reshape(())


def take_rows(array: Array, index: Array, axis: int) -> Array:
    """The slices that a 1-d index names along `axis`."""
    if index.size == 0 or array.size == 0:
        return lax.full((*array.shape[:axis], index.size, *array.shape[axis + 1 :]), 0, array.dtype)
    return jnp.take(array, index, axis=axis, mode="clip")


def split_index(self: Array, indices: Indices) -> tuple[Array | slice, ...]:
    """ATen's list of indices as numpy's: None reads a whole dim. A list shorter than the dims leaves the rest whole."""
    return tuple(slice(None) if i is None else wrapped(i, self.shape[d]) for d, i in enumerate(indices))


def indexed_shape(self: Array, indices: Indices) -> tuple[int, ...]:
    """The shape of `self[indices]`: the broadcast index in the place of the first index, or in front if whole dims lie between."""
    named = [d for d, i in enumerate(indices) if i is not None]
    common = jnp.broadcast_shapes(*(i.shape for i in indices if i is not None))
    adjacent = named == list(range(named[0], named[0] + len(named))) if named else True
    at = named[0] if named and adjacent else 0
    rest = [n for d, n in enumerate(self.shape) if d not in named]
    return (*rest[:at], *common, *rest[at:])


@lowering("index.Tensor", "_unsafe_index.Tensor")
def index(self: Array, indices: Indices) -> Array:
    """Integer indices only (the device turns masks into positions), negative ones count from the end."""
    shape = indexed_shape(self, indices)
    if math.prod(shape) == 0:
        return lax.full(shape, 0, self.dtype)
    return self.at[split_index(self, indices)].get(mode="promise_in_bounds", wrap_negative_indices=False)


@lowering("_unsafe_masked_index")
def masked_index(self: Array, mask: Array, indices: Indices, fill: Number) -> Array:
    """`self[indices]` where the mask holds, `fill` elsewhere; an index is valid only under the mask."""
    within = [None if i is None else lax.clamp(i.dtype.type(0), i, i.dtype.type(max(self.shape[d] - 1, 0))) for d, i in enumerate(indices)]
    return jnp.where(mask, index(self, within), fill.to(self.dtype))


@lowering("take")
def take(self: Array, index: Array) -> Array:
    if index.size == 0:
        return lax.full(index.shape, 0, self.dtype)
    return self.reshape(-1).at[wrapped(index, self.size)].get(mode="promise_in_bounds", wrap_negative_indices=False)


def ranks(mask: Array) -> Array:
    """Of a flat bool mask: how many True lie before each element, int32 (int64 for more elements than that counts)."""
    counts = mask.astype(np.int32 if mask.size < 2**31 else np.int64)
    return running_sum(counts) - counts


@lowering("masked_scatter")
def masked_scatter(self: Array, mask: Array, source: Array) -> Array:
    """The elements under the mask are replaced by those of `source`, in order."""
    shape = jnp.broadcast_shapes(self.shape, mask.shape)
    target = jnp.broadcast_to(self, shape)
    if source.size == 0 or target.size == 0:
        return target
    chosen = jnp.broadcast_to(mask, shape).reshape(-1)
    values = jnp.take(source.reshape(-1), ranks(chosen), mode="clip").reshape(shape)
    return lax.select(chosen.reshape(shape), cast(values, self.dtype), target)


@lowering("masked_scatter_backward")
def masked_scatter_backward(grad_output: Array, mask: Array, sizes: Sequence[int]) -> Array:
    """The elements under the mask, in order, then zeros up to `sizes`."""
    length = math.prod(sizes)
    chosen = jnp.broadcast_to(mask, grad_output.shape).reshape(-1)
    if length == 0 or chosen.size == 0:
        return lax.full(sizes, 0, grad_output.dtype)
    rank = ranks(chosen)
    place = lax.select(chosen, rank, lax.full_like(rank, length))
    packed = lax.full((length,), 0, grad_output.dtype).at[place].set(grad_output.reshape(-1), mode="drop")
    return packed.reshape(tuple(sizes))


@lowering("nonzero_static")
def nonzero_static(self: Array, *, size: int, fill_value: int) -> Array:
    """The index of the first `size` nonzero elements, one per row; rows left over hold `fill_value`."""
    chosen = cast(self, np.dtype(np.bool_)).reshape(-1)
    result = lax.full((size, self.ndim), fill_value, np.int64)
    if size == 0 or chosen.size == 0 or self.ndim == 0:
        return result
    place = lax.select(chosen, ranks(chosen), lax.full(chosen.shape, size, np.int32))
    columns = [lax.broadcasted_iota(np.int64, self.shape, d).reshape(-1) for d in range(self.ndim)]
    return result.at[place].set(jnp.stack(columns, 1), mode="drop")
