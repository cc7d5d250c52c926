"""Layer, group and root-mean-square normalisation with gradients. Statistics are taken in the accumulation dtype, in two passes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import widened
from .promotion import Number, cast
from .registry import lowering


def mean_and_rstd(x: Array, axes: tuple[int, ...], eps: Array) -> tuple[Array, Array]:
    """Mean and 1 / sqrt(variance + eps) over `axes`, which are kept with length 1."""
    mean = jnp.mean(x, axis=axes, keepdims=True)
    centered = x - mean
    variance = jnp.mean(centered * centered, axis=axes, keepdims=True)
    return mean, lax.rsqrt(variance + eps)


def standardized_gradient(grad: Array, x_hat: Array, rstd: Array, axes: tuple[int, ...]) -> Array:
    """The gradient of x, given that of x_hat = (x - mean) * rstd, whose statistics were taken over `axes`."""
    mean_grad = jnp.mean(grad, axis=axes, keepdims=True)
    mean_product = jnp.mean(grad * x_hat, axis=axes, keepdims=True)
    return (grad - mean_grad - x_hat * mean_product) * rstd


@lowering("native_layer_norm")
def native_layer_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: Number
) -> tuple[Array, Array, Array]:
    """The last dimensions standardised, times weight, plus bias; mean and rstd, both with those dimensions of length 1."""
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    x = widened(input)
    mean, rstd = mean_and_rstd(x, axes, eps.to(x.dtype))
    out = (x - mean) * rstd
    if weight is not None:
        out = out * cast(weight, x.dtype)
    if bias is not None:
        out = out + cast(bias, x.dtype)
    return cast(out, input.dtype), mean, rstd


@lowering("native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out: Array,
    input: Array,
    normalized_shape: Sequence[int],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    split = input.ndim - len(normalized_shape)
    outer, inner = tuple(range(split)), tuple(range(split, input.ndim))
    x, grad = widened(input), widened(grad_out)
    kept = (*input.shape[:split], *(1,) * len(normalized_shape))
    mean, rstd = cast(mean, x.dtype).reshape(kept), cast(rstd, x.dtype).reshape(kept)
    x_hat = (x - mean) * rstd
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * cast(weight, x.dtype)
        grad_input = cast(standardized_gradient(scaled, x_hat, rstd, inner), input.dtype)
    if output_mask[1] and weight is not None:
        grad_weight = cast(jnp.sum(grad * x_hat, axis=outer, dtype=x.dtype), weight.dtype)
    if output_mask[2] and bias is not None:
        grad_bias = cast(jnp.sum(grad, axis=outer, dtype=x.dtype), bias.dtype)
    return grad_input, grad_weight, grad_bias


def _by_group(values: Array, group: int) -> Array:
    """A vector of channels as [1, group, channels / group, 1]."""
    return values.reshape(1, group, -1, 1)


@lowering("native_group_norm")
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: Number
) -> tuple[Array, Array, Array]:
    """input [N, C, *]: each group of channels standardised, times weight [C], plus bias [C]; mean and rstd [N, group]."""
    x = widened(input).reshape(N, group, C // group, HxW)
    mean, rstd = mean_and_rstd(x, (2, 3), eps.to(x.dtype))
    out = (x - mean) * rstd
    if weight is not None:
        out = out * cast(_by_group(weight, group), x.dtype)
    if bias is not None:
        out = out + cast(_by_group(bias, group), x.dtype)
    return cast(out.reshape(input.shape), input.dtype), mean.reshape(N, group), rstd.reshape(N, group)


@lowering("native_group_norm_backward")
def native_group_norm_backward(
    grad_out: Array,
    input: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    shape = (N, group, C // group, HxW)
    x, grad = widened(input).reshape(shape), widened(grad_out).reshape(shape)
    mean, rstd = cast(mean, x.dtype).reshape(N, group, 1, 1), cast(rstd, x.dtype).reshape(N, group, 1, 1)
    x_hat = (x - mean) * rstd
    parameter = input.dtype if weight is None else weight.dtype
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * cast(_by_group(weight, group), x.dtype)
        grad_input = cast(standardized_gradient(scaled, x_hat, rstd, (2, 3)).reshape(input.shape), input.dtype)
    if output_mask[1]:
        grad_weight = cast(jnp.sum(grad * x_hat, axis=(0, 3), dtype=x.dtype).reshape(C), parameter)
    if output_mask[2]:
        grad_bias = cast(jnp.sum(grad, axis=(0, 3), dtype=x.dtype).reshape(C), parameter)
    return grad_input, grad_weight, grad_bias


@lowering("_fused_rms_norm")
def fused_rms_norm(input: Array, normalized_shape: Sequence[int], weight: Array | None, eps: Number | None) -> tuple[Array, Array]:
    """The last dimensions divided by their root mean square, times weight; its inverse, with those dimensions of length 1."""
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    x = widened(input)
    floor = jnp.array(np.finfo(x.dtype).eps, x.dtype) if eps is None else eps.to(x.dtype)
    rstd = lax.rsqrt(jnp.mean(x * x, axis=axes, keepdims=True) + floor)
    out = x * rstd
    if weight is not None:
        out = out * cast(weight, x.dtype)
    return cast(out, input.dtype), rstd


@lowering("_fused_rms_norm_backward")
def fused_rms_norm_backward(
    grad_out: Array, input: Array, normalized_shape: Sequence[int], rstd: Array, weight: Array | None, output_mask: Sequence[bool]
) -> tuple[Array | None, Array | None]:
    split = input.ndim - len(normalized_shape)
    x, grad = widened(input), widened(grad_out)
    rstd = cast(rstd, x.dtype).reshape(*input.shape[:split], *(1,) * len(normalized_shape))
    x_hat = x * rstd
    grad_input = grad_weight = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * cast(weight, x.dtype)
        count = math.prod(normalized_shape)
        projection = jnp.sum(scaled * x_hat, axis=tuple(range(split, input.ndim)), keepdims=True) / count
        grad_input = cast((scaled - x_hat * projection) * rstd, input.dtype)
    if output_mask[1] and weight is not None:
        grad_weight = cast(jnp.sum(grad * x_hat, axis=tuple(range(split)), dtype=x.dtype), weight.dtype)
    return grad_input, grad_weight


def _others(v: Array, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(v.ndim) if d != dim % v.ndim)


@lowering("_weight_norm_interface")
def weight_norm(v: Array, g: Array, dim: int) -> tuple[Array, Array]:
    """`v` scaled so that its slices along `dim` have the norms `g` [.., n, ..], and the norms it had."""
    wide = widened(v)
    norms = jnp.sqrt(jnp.sum(wide * wide, axis=_others(v, dim), keepdims=True))
    return cast(wide * (widened(g) / norms), v.dtype), norms


@lowering("_weight_norm_interface_backward")
def weight_norm_backward(grad_w: Array, saved_v: Array, saved_g: Array, saved_norms: Array, dim: int) -> tuple[Array, Array]:
    """The gradients of `v` and `g`."""
    grad, v, g, norms = (widened(x) for x in (grad_w, saved_v, saved_g, saved_norms))
    along = jnp.sum(grad * v, axis=_others(v, dim), keepdims=True)
    by_v = g / norms * (grad - v * (along / (norms * norms)))
    return cast(by_v, saved_v.dtype), cast(along / norms, saved_g.dtype)
