"""Softmax and log-softmax, with their gradients. Computed in float32 for 16-bit floats.

`half_to_float` and `input_dtype` only say which dtype comes out, which the caller takes from the meta kernel.
"""

from __future__ import annotations

import numpy as np
import torch
from jax import Array, lax

from .axes import axis_of, with_axis
from .dtypes import to_jax
from .promotion import cast, opmath
from .registry import lowering


def _spread(reduced: Array, array: Array, axis: int) -> Array:
    """The result of a reduction over `axis`, repeated along it again."""
    return lax.broadcast_in_dim(reduced, array.shape, [d for d in range(array.ndim) if d != axis])


def _shifted(self: Array, axis: int) -> Array:
    return self - _spread(lax.reduce_max(self, (axis,)), self, axis)


def _softmax_over(self: Array, axis: int) -> Array:
    powers = lax.exp(_shifted(self, axis))
    return powers / _spread(lax.reduce_sum(powers, (axis,)), powers, axis)


def _prepared(self: Array, dim: int) -> tuple[Array, int]:
    return with_axis(cast(self, opmath(self.dtype))), axis_of(dim, self.ndim)


@lowering("_softmax")
def softmax(self: Array, dim: int, half_to_float: bool) -> Array:
    values, axis = _prepared(self, dim)
    out = _softmax_over(values, axis).reshape(self.shape)
    return out if half_to_float else cast(out, self.dtype)


@lowering("_log_softmax")
def log_softmax(self: Array, dim: int, half_to_float: bool) -> Array:
    values, axis = _prepared(self, dim)
    shifted = _shifted(values, axis)
    out = (shifted - _spread(lax.log(lax.reduce_sum(lax.exp(shifted), (axis,))), shifted, axis)).reshape(self.shape)
    return out if half_to_float else cast(out, self.dtype)


@lowering("_softmax_backward_data")
def softmax_backward(grad_output: Array, output: Array, dim: int, input_dtype: torch.dtype) -> Array:
    grad, axis = _prepared(grad_output, dim)
    out, _ = _prepared(output, dim)
    weighted = grad * out
    result = weighted - out * _spread(lax.reduce_sum(weighted, (axis,)), out, axis)
    return cast(result.reshape(output.shape), to_jax(input_dtype))


@lowering("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Array, output: Array, dim: int, input_dtype: torch.dtype) -> Array:
    grad, axis = _prepared(grad_output, dim)
    out, _ = _prepared(output, dim)
    result = grad - lax.exp(out) * _spread(lax.reduce_sum(grad, (axis,)), out, axis)
    return cast(result.reshape(output.shape), to_jax(input_dtype))


@lowering("_safe_softmax")
def safe_softmax(self: Array, dim: int, dtype: torch.dtype | None) -> Array:
    """Softmax that gives 0 instead of NaN to a row of nothing but -inf."""
    target = np.dtype(self.dtype) if dtype is None else to_jax(dtype)
    values, axis = _prepared(cast(self, target), dim)
    nothing = lax.reduce_and(lax.eq(values, lax.full_like(values, -np.inf)), (axis,))
    out = lax.select(_spread(nothing, values, axis), lax.full_like(values, 0), _softmax_over(values, axis))
    return cast(out.reshape(self.shape), target)


def _mask_for(mask: Array, like: Array, mask_type: int | None) -> Array:
    """The mask as bools that broadcast to `like`: 0 means mask [L, L], 1 means [batch, L], both for `like` [batch, heads, L, L]."""
    if mask_type == 1 and mask.ndim == 2 and like.ndim == 4:
        mask = mask.reshape(mask.shape[0], 1, 1, mask.shape[1])
    return lax.broadcast_in_dim(cast(mask, np.dtype(np.bool_)), like.shape, range(like.ndim - mask.ndim, like.ndim))


@lowering("_masked_softmax")
def masked_softmax(self: Array, mask: Array, dim: int | None, mask_type: int | None) -> Array:
    """Softmax over the elements whose mask is False; the others get 0, and a row without any NaN."""
    values, axis = _prepared(self, self.ndim - 1 if dim is None else dim)
    hidden = _mask_for(mask, self, mask_type).reshape(values.shape)
    out = _softmax_over(lax.select(hidden, lax.full_like(values, -np.inf), values), axis)
    return cast(out.reshape(self.shape), self.dtype)


@lowering("_masked_softmax_backward")
def masked_softmax_backward(grad_output: Array, output: Array, mask: Array, dim: int | None) -> Array:
    grad, axis = _prepared(grad_output, output.ndim - 1 if dim is None else dim)
    out, _ = _prepared(output, axis)
    weighted = grad * out
    result = weighted - out * _spread(lax.reduce_sum(weighted, (axis,)), out, axis)
    hidden = _mask_for(mask, output, None).reshape(result.shape)
    return cast(lax.select(hidden, lax.full_like(result, 0), result).reshape(output.shape), output.dtype)
