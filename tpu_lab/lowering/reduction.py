"""Sums, products, extremes, truth and variance over dimensions.

16- and 8-bit floats are accumulated in float32. Integers and bool sum to int64, as in PyTorch. XLA's maximum and minimum
let NaN through, which is PyTorch's rule for `amax`, `amin` and their kin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jax import Array, lax

from .axes import axes_of, count, is_nan
from .division import divided
from .dtypes import to_jax
from .promotion import Number, cast, default_float, is_complex, is_floating, opmath
from .registry import lowering

Dims = int | Sequence[int] | None


def keep(reduced: Array, shape: Sequence[int], axes: Sequence[int], keepdim: bool) -> Array:
    """Puts the reduced axes back as axes of length 1 if `keepdim`."""
    return reduced.reshape([1 if d in axes else n for d, n in enumerate(shape)]) if keepdim else reduced


def _reduced(reducer: Callable[[Array, Sequence[int]], Array], self: Array, dim: Dims, keepdim: bool) -> Array:
    axes = axes_of(dim, self.ndim)
    return keep(reducer(self, axes), self.shape, axes, keepdim)


def _sum_dtype(self: Array, dtype: torch.dtype | None) -> np.dtype:
    if dtype is not None:
        return to_jax(dtype)
    return np.dtype(self.dtype) if is_floating(self.dtype) or is_complex(self.dtype) else np.dtype(np.int64)


def _sum(self: Array, dim: Dims, keepdim: bool, dtype: np.dtype) -> Array:
    if dtype == np.bool_:
        return _reduced(lax.reduce_or, cast(self, dtype), dim, keepdim)
    return cast(_reduced(lax.reduce_sum, cast(cast(self, dtype), opmath(dtype)), dim, keepdim), dtype)


@lowering("sum")
def sum_all(self: Array, *, dtype: torch.dtype | None) -> Array:
    return _sum(self, None, False, _sum_dtype(self, dtype))


@lowering("sum.dim_IntList")
def sum_dim(self: Array, dim: Dims, keepdim: bool, *, dtype: torch.dtype | None) -> Array:
    return _sum(self, dim, keepdim, _sum_dtype(self, dtype))


@lowering("nansum")
def nansum(self: Array, dim: Dims, keepdim: bool, *, dtype: torch.dtype | None) -> Array:
    nan = is_nan(self)
    if nan is not None:
        self = lax.select(nan, lax.full_like(self, 0), self)
    return _sum(self, dim, keepdim, _sum_dtype(self, dtype))


@lowering("mean")
def mean_all(self: Array, *, dtype: torch.dtype | None) -> Array:
    return mean_dim(self, None, False, dtype=dtype)


@lowering("mean.dim")
def mean_dim(self: Array, dim: Dims, keepdim: bool, *, dtype: torch.dtype | None) -> Array:
    target = np.dtype(self.dtype) if dtype is None else to_jax(dtype)
    work = opmath(target)
    total = _sum(cast(cast(self, target), work), dim, keepdim, work)
    return cast(divided(total, count(self.shape, axes_of(dim, self.ndim))), target)


@lowering("prod")
def prod_all(self: Array, *, dtype: torch.dtype | None) -> Array:
    return _prod(self, None, False, dtype)


@lowering("prod.dim_int")
def prod_dim(self: Array, dim: int, keepdim: bool, *, dtype: torch.dtype | None) -> Array:
    return _prod(self, dim, keepdim, dtype)


def _prod(self: Array, dim: Dims, keepdim: bool, dtype: torch.dtype | None) -> Array:
    target = _sum_dtype(self, dtype)
    if target == np.bool_:
        return _reduced(lax.reduce_and, cast(self, target), dim, keepdim)
    return cast(_reduced(lax.reduce_prod, cast(cast(self, target), opmath(target)), dim, keepdim), target)


def maximum_over(self: Array, axes: Sequence[int]) -> Array:
    """The greatest element over `axes`, NaN if there is one; for bool: is any True."""
    return lax.reduce_or(self, axes) if self.dtype == np.bool_ else lax.reduce_max(self, axes)


def minimum_over(self: Array, axes: Sequence[int]) -> Array:
    """The least element over `axes`, NaN if there is one; for bool: are all True."""
    return lax.reduce_and(self, axes) if self.dtype == np.bool_ else lax.reduce_min(self, axes)


@lowering("amax")
def amax(self: Array, dim: Dims, keepdim: bool) -> Array:
    return _reduced(maximum_over, self, dim, keepdim)


@lowering("amin")
def amin(self: Array, dim: Dims, keepdim: bool) -> Array:
    return _reduced(minimum_over, self, dim, keepdim)


@lowering("max")
def max_all(self: Array) -> Array:
    return amax(self, None, False)


@lowering("min")
def min_all(self: Array) -> Array:
    return amin(self, None, False)


@lowering("aminmax")
def aminmax(self: Array, *, dim: int | None, keepdim: bool) -> tuple[Array, Array]:
    return amin(self, dim, keepdim), amax(self, dim, keepdim)


@lowering("_aminmax")
def aminmax_all(self: Array) -> tuple[Array, Array]:
    return amin(self, None, False), amax(self, None, False)


@lowering("_aminmax.dim")
def aminmax_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return amin(self, dim, keepdim), amax(self, dim, keepdim)


def _truth(self: Array) -> Array:
    return cast(self, np.dtype(np.bool_))


@lowering("any")
def any_all(self: Array) -> Array:
    return any_dim(self, None, False)


@lowering("any.dim")
def any_dim(self: Array, dim: Dims, keepdim: bool) -> Array:
    return _reduced(lax.reduce_or, _truth(self), dim, keepdim)


@lowering("any.dims")
def any_dims(self: Array, dim: Sequence[int] | None, keepdim: bool) -> Array:
    """Unlike other reductions an empty list of dims reduces nothing here."""
    return _truth(self) if dim is not None and not dim else any_dim(self, dim, keepdim)


@lowering("all")
def all_all(self: Array) -> Array:
    return all_dim(self, None, False)


@lowering("all.dim")
def all_dim(self: Array, dim: Dims, keepdim: bool) -> Array:
    return _reduced(lax.reduce_and, _truth(self), dim, keepdim)


@lowering("all.dims")
def all_dims(self: Array, dim: Sequence[int] | None, keepdim: bool) -> Array:
    """Unlike other reductions an empty list of dims reduces nothing here."""
    return _truth(self) if dim is not None and not dim else all_dim(self, dim, keepdim)


@lowering("_is_all_true")
def is_all_true(self: Array) -> Array:
    return all_all(self)


@lowering("_is_any_true")
def is_any_true(self: Array) -> Array:
    return any_all(self)


@lowering("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(self: Array, dim: Dims) -> Array:
    return _sum(_truth(self), dim, False, np.dtype(np.int64))


def _moments(self: Array, dim: Dims, correction: Number | None, keepdim: bool) -> tuple[Array, Array]:
    """Variance and mean in the accumulation dtype: two passes, the second over the distances from the mean."""
    axes = axes_of(dim, self.ndim)
    values = cast(self, opmath(self.dtype))
    n = count(self.shape, axes)
    mean = divided(keep(lax.reduce_sum(values, axes), self.shape, axes, True), n)
    apart = values - mean
    squares = lax.square(lax.real(apart)) + lax.square(lax.imag(apart)) if is_complex(apart.dtype) else lax.square(apart)
    real = np.dtype(squares.dtype)
    total = lax.reduce_sum(squares, axes)
    variance = divided(total, max(n - 1, 0)) if correction is None else total / lax.max(real.type(n) - correction.to(real), real.type(0))
    return keep(variance, self.shape, axes, keepdim), mean if keepdim else lax.squeeze(mean, axes)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    return np.finfo(dtype).dtype if is_complex(dtype) else np.dtype(dtype)


@lowering("var.correction")
def var(self: Array, dim: Dims, *, correction: Number | None, keepdim: bool) -> Array:
    return cast(_moments(self, dim, correction, keepdim)[0], _real_dtype(self.dtype))


@lowering("std.correction")
def std(self: Array, dim: Dims, *, correction: Number | None, keepdim: bool) -> Array:
    return cast(lax.sqrt(_moments(self, dim, correction, keepdim)[0]), _real_dtype(self.dtype))


@lowering("var_mean.correction")
def var_mean(self: Array, dim: Dims, *, correction: Number | None, keepdim: bool) -> tuple[Array, Array]:
    variance, mean = _moments(self, dim, correction, keepdim)
    return cast(variance, _real_dtype(self.dtype)), cast(mean, self.dtype)


@lowering("std_mean.correction")
def std_mean(self: Array, dim: Dims, *, correction: Number | None, keepdim: bool) -> tuple[Array, Array]:
    variance, mean = _moments(self, dim, correction, keepdim)
    return cast(lax.sqrt(variance), _real_dtype(self.dtype)), cast(mean, self.dtype)


@lowering("logsumexp")
def logsumexp(self: Array, dim: Dims, keepdim: bool) -> Array:
    target = np.dtype(self.dtype) if is_floating(self.dtype) or is_complex(self.dtype) else default_float()
    values = cast(self, opmath(target))
    axes = axes_of(dim, self.ndim)
    top = keep(lax.reduce_max(lax.real(values) if is_complex(target) else values, axes), self.shape, axes, True)
    top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0))
    total = lax.log(lax.reduce_sum(lax.exp(values - top.astype(values.dtype)), axes))
    return cast(keep(total, self.shape, axes, keepdim) + (top if keepdim else lax.squeeze(top, axes)).astype(values.dtype), target)


@lowering("hash_tensor")
def hash_tensor(self: Array, dim: Dims, *, keepdim: bool, mode: int) -> Array:
    """The exclusive or of the elements' 64 bits (floats as float64, integers as int64), uint64."""
    wide = cast(self, np.dtype(np.float64) if is_floating(self.dtype) else np.dtype(np.int64))
    return _reduced(lax.reduce_xor, lax.bitcast_convert_type(wide, np.dtype(np.uint64)), dim, keepdim)
