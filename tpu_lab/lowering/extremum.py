"""Where the greatest or least element is: argmax, argmin, and max and min with indices.

The first of equal elements wins and NaN beats everything, as in PyTorch on the CPU. Two plain reductions (the extreme value,
then the least position that holds it) are 5-10 times faster on XLA:CPU than one reduction over (value, position) pairs,
which it cannot vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jax import Array, lax

from .axes import axis_of, index_dtype, is_nan, positions, with_axis
from .reduction import keep, maximum_over, minimum_over
from .registry import lowering

Reducer = Callable[[Array, Sequence[int]], Array]


def _locate(self: Array, dim: int, keepdim: bool, reducer: Reducer) -> tuple[Array, Array]:
    """The extreme values along `dim` and the first position of each, int64."""
    array = with_axis(self)
    axis = axis_of(dim, self.ndim)
    extreme = reducer(array, (axis,))
    found = lax.eq(array, lax.broadcast_in_dim(extreme, array.shape, [d for d in range(array.ndim) if d != axis]))
    nan = is_nan(array)
    if nan is not None:
        found = lax.bitwise_or(found, nan)
    length = array.shape[axis]
    dtype = index_dtype(length)
    place = lax.select(found, positions(array.shape, axis), lax.full(array.shape, max(length - 1, 0), dtype))
    index = lax.reduce_min(place, (axis,)).astype(np.int64)
    if self.ndim == 0:
        return extreme.reshape(()), index.reshape(())
    return keep(extreme, array.shape, (axis,), keepdim), keep(index, array.shape, (axis,), keepdim)


@lowering("max.dim")
def max_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return _locate(self, dim, keepdim, maximum_over)


@lowering("min.dim")
def min_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return _locate(self, dim, keepdim, minimum_over)


def _flat_or_along(self: Array, dim: int | None, keepdim: bool, reducer: Reducer) -> Array:
    if dim is not None:
        return _locate(self, dim, keepdim, reducer)[1]
    index = _locate(self.reshape(-1), 0, False, reducer)[1]
    return index.reshape([1] * self.ndim) if keepdim else index


@lowering("argmax")
def argmax(self: Array, dim: int | None, keepdim: bool) -> Array:
    return _flat_or_along(self, dim, keepdim, maximum_over)


@lowering("argmin")
def argmin(self: Array, dim: int | None, keepdim: bool) -> Array:
    return _flat_or_along(self, dim, keepdim, minimum_over)
