"""Vector norms over dimensions: `linalg.vector_norm` and the `norm` overloads.

The order is part of the program, because it chooses the formula
(https://pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jax import Array, lax

from .axes import axes_of
from .dtypes import to_jax
from .promotion import cast, is_complex, opmath
from .reduction import keep
from .registry import lowering

Dims = int | Sequence[int] | None


def _norm(self: Array, order: float | None, dim: Dims, keepdim: bool, dtype: torch.dtype | None) -> Array:
    order = 2.0 if order is None else float(order)
    target = np.dtype(self.dtype) if dtype is None else to_jax(dtype)
    axes = axes_of(dim, self.ndim)
    values = cast(cast(self, target), opmath(target))
    result = _over(values, order, axes)
    real = np.dtype(np.finfo(target).dtype) if is_complex(target) else target
    return cast(keep(result, self.shape, axes, keepdim), real)


def _over(values: Array, order: float, axes: tuple[int, ...]) -> Array:
    if order == 2.0:
        if is_complex(values.dtype):
            return lax.sqrt(lax.reduce_sum(lax.square(lax.real(values)) + lax.square(lax.imag(values)), axes))
        return lax.sqrt(lax.reduce_sum(lax.square(values), axes))
    size = lax.abs(values)
    if order == math.inf:
        return lax.reduce_max(size, axes) if size.size else lax.reduce_sum(size, axes)
    if order == -math.inf:
        return lax.reduce_min(size, axes)
    if order == 0.0:
        return lax.reduce_sum(lax.ne(size, lax.full_like(size, 0)).astype(size.dtype), axes)
    if order == 1.0:
        return lax.reduce_sum(size, axes)
    exponent = size.dtype.type(order)
    return lax.pow(lax.reduce_sum(lax.pow(size, exponent), axes), size.dtype.type(1.0 / order))


@lowering("linalg_vector_norm", static=("ord",))
def linalg_vector_norm(self: Array, ord: float, dim: Dims, keepdim: bool, *, dtype: torch.dtype | None) -> Array:
    return _norm(self, ord, dim, keepdim, dtype)


@lowering("norm.Scalar", static=("p",))
def norm_all(self: Array, p: float) -> Array:
    return _norm(self, p, None, False, None)


@lowering("norm.ScalarOpt_dtype", static=("p",))
def norm_all_dtype(self: Array, p: float | None, *, dtype: torch.dtype) -> Array:
    return _norm(self, p, None, False, dtype)


@lowering("norm.ScalarOpt_dim", static=("p",))
def norm_dim(self: Array, p: float | None, dim: Dims, keepdim: bool) -> Array:
    return _norm(self, p, dim, keepdim, None)


@lowering("norm.ScalarOpt_dim_dtype", static=("p",))
def norm_dim_dtype(self: Array, p: float | None, dim: Dims, keepdim: bool, *, dtype: torch.dtype) -> Array:
    return _norm(self, p, dim, keepdim, dtype)
