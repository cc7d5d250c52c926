"""Dimension arguments: how PyTorch's `dim`, `dim[]` and `keepdim` name the axes of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def axis_of(dim: int, ndim: int) -> int:
    """The axis that `dim` names, counted from the front. A 0-dim tensor counts as one dimension, as in PyTorch."""
    return dim + max(ndim, 1) if dim < 0 else dim


def axes_of(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes a reduction runs over, in order. None and an empty list mean all of them; of a 0-dim tensor there are none."""
    if isinstance(dims, int):
        dims = (dims,)
    if not dims or ndim == 0:
        return tuple(range(ndim))
    return tuple(sorted(axis_of(d, ndim) for d in dims))


def with_axis(array: Array) -> Array:
    """The array, a 0-dim one as its single row, so that `axis_of` names an axis that exists."""
    return array.reshape(1) if array.ndim == 0 else array


def index_dtype(length: int) -> np.dtype:
    """The narrowest index dtype for positions below `length`: int32 where it holds them, as it halves the memory traffic."""
    return np.dtype(np.int32) if length < 2**31 else np.dtype(np.int64)


def positions(shape: Sequence[int], axis: int) -> Array:
    """An array of `shape` that holds each element's position along `axis`."""
    return lax.broadcasted_iota(index_dtype(shape[axis]), tuple(shape), axis)


def count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements a reduction over `axes` folds into one."""
    return math.prod(shape[a] for a in axes)


def is_nan(array: Array) -> Array | None:
    """Where the array is NaN; None for dtypes that have no NaN, so that no comparison is emitted for them."""
    return array != array if jnp.issubdtype(array.dtype, jnp.inexact) else None
