"""Batch normalisation in the forms PyTorch calls it, with running statistics, gradients, and the parts of SyncBatchNorm."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .normalization import mean_and_rstd, standardized_gradient
from .precision import widened
from .promotion import Number, cast, opmath
from .registry import lowering

Statistics = tuple[Array | None, Array | None]
Gradients = tuple[Array | None, Array | None, Array | None]


def _axes(x: Array) -> tuple[int, ...]:
    """Every dimension but the channels (dimension 1)."""
    return (0, *range(2, x.ndim))


def _per_channel(values: Array, x: Array) -> Array:
    """A vector of channels, in x's dtype, shaped to broadcast against x [N, C, *]."""
    return cast(values, x.dtype).reshape(1, -1, *(1,) * (x.ndim - 2))


def _affine(x: Array, mean: Array, rstd: Array, weight: Array | None, bias: Array | None) -> Array:
    out = (x - _per_channel(mean, x)) * _per_channel(rstd, x)
    if weight is not None:
        out = out * _per_channel(weight, x)
    return out if bias is None else out + _per_channel(bias, x)


def _moved(running: Array | None, new: Array, momentum: Number) -> Array | None:
    if running is None:
        return None
    work = widened(running)
    share = momentum.to(work.dtype)
    return cast((1 - share) * work + share * cast(new, work.dtype), running.dtype)


def _inverse_deviation(variance: Array, eps: Number) -> Array:
    work = widened(variance)
    return lax.rsqrt(work + eps.to(work.dtype))


def _training(
    input: Array, weight: Array | None, bias: Array | None, running: Statistics, momentum: Number, eps: Number
) -> tuple[Array, Array, Array, Statistics]:
    """Output, mean and rstd [C] of the batch, and the running mean and (unbiased) variance moved towards it."""
    x = widened(input)
    mean, rstd = mean_and_rstd(x, _axes(x), eps.to(x.dtype))
    mean, rstd = mean.reshape(-1), rstd.reshape(-1)
    out = cast(_affine(x, mean, rstd, weight, bias), input.dtype)
    moved_variance = None
    if running[1] is not None:
        centered = x - _per_channel(mean, x)
        count = x.size // max(x.shape[1], 1)
        unbiased = jnp.sum(centered * centered, axis=_axes(x)) / jnp.array(count - 1, x.dtype)
        moved_variance = _moved(running[1], unbiased, momentum)
    return out, mean, rstd, (_moved(running[0], mean, momentum), moved_variance)


def _inference(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: Number
) -> tuple[Array, Array, Array]:
    """Output, and the statistics it was made with (what PyTorch's meta kernel promises; its CPU kernel returns them empty)."""
    x = widened(input)
    rstd = _inverse_deviation(running_var, eps)
    return cast(_affine(x, running_mean, rstd, weight, bias), input.dtype), widened(running_mean), rstd


@lowering("native_batch_norm", "_native_batch_norm_legit", mutates=("running_mean", "running_var"))
def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: Number,
    eps: Number,
) -> tuple[Array | None, ...]:
    """input [N, C, *]: output, the mean and rstd [C] used, then the new running statistics (None where there are none)."""
    if training:
        out, mean, rstd, moved = _training(input, weight, bias, (running_mean, running_var), momentum, eps)
        return out, mean, rstd, *moved
    if running_mean is None or running_var is None:
        raise RuntimeError("batch norm without running statistics can only run in training mode; pass running_mean and running_var")
    return *_inference(input, weight, bias, running_mean, running_var, eps), running_mean, running_var


@lowering("batch_norm_update_stats", mutates=("running_mean", "running_var"))
def batch_norm_update_stats(input: Array, running_mean: Array | None, running_var: Array | None, momentum: Number) -> tuple[Array | None, ...]:
    """Mean and variance [C] of input [N, C, *], then the moved running statistics."""
    x = widened(input)
    mean = jnp.mean(x, axis=_axes(x))
    centered = x - _per_channel(mean, x)
    total = jnp.sum(centered * centered, axis=_axes(x))
    count = x.size // max(x.shape[1], 1)
    unbiased = total / jnp.array(count - 1, x.dtype)
    return mean, total / jnp.array(count, x.dtype), _moved(running_mean, mean, momentum), _moved(running_var, unbiased, momentum)


@lowering("_native_batch_norm_legit.no_stats")
def native_batch_norm_no_stats(
    input: Array, weight: Array | None, bias: Array | None, training: bool, momentum: Number, eps: Number
) -> tuple[Array, Array, Array]:
    return _training(input, weight, bias, (None, None), momentum, eps)[:3]


@lowering("_native_batch_norm_legit_no_training")
def native_batch_norm_no_training(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, momentum: Number, eps: Number
) -> tuple[Array, Array, Array]:
    return _inference(input, weight, bias, running_mean, running_var, eps)


@lowering("_native_batch_norm_legit_functional")
def native_batch_norm_functional(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: Number,
    eps: Number,
) -> tuple[Array | None, ...]:
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _no_reserve() -> Array:
    """The workspace cuDNN would want between forward and backward: empty here."""
    return jnp.zeros(0, np.uint8)


@lowering("_batch_norm_with_update", mutates=("running_mean", "running_var"))
def batch_norm_with_update(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, momentum: Number, eps: Number
) -> tuple[Array | None, ...]:
    out, mean, rstd, moved = _training(input, weight, bias, (running_mean, running_var), momentum, eps)
    return out, mean, rstd, _no_reserve(), *moved


@lowering("_batch_norm_with_update_functional")
def batch_norm_with_update_functional(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, momentum: Number, eps: Number
) -> tuple[Array | None, ...]:
    return batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps)


@lowering("_batch_norm_no_update")
def batch_norm_no_update(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: Number,
    eps: Number,
) -> tuple[Array, ...]:
    if running_mean is None or running_var is None:
        return *_training(input, weight, bias, (None, None), momentum, eps)[:3], _no_reserve()
    return *_inference(input, weight, bias, running_mean, running_var, eps), _no_reserve()


@lowering("native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out: Array,
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    save_mean: Array | None,
    save_invstd: Array | None,
    train: bool,
    eps: Number,
    output_mask: Sequence[bool],
) -> Gradients:
    """Gradients of input, weight and bias; in training from the saved statistics, else from the running ones, taken as constants."""
    x, grad = widened(input), widened(grad_out)
    mean, rstd = save_mean, save_invstd
    if not train and running_mean is not None and running_var is not None:
        mean, rstd = running_mean, _inverse_deviation(running_var, eps)
    if mean is None or rstd is None:
        raise RuntimeError("batch norm backward needs saved statistics in training mode and running statistics otherwise")
    x_hat = (x - _per_channel(mean, x)) * _per_channel(rstd, x)
    parameter = input.dtype if weight is None else weight.dtype
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * _per_channel(weight, x)
        wide = _per_channel(rstd, x)
        grad_input = cast(standardized_gradient(scaled, x_hat, wide, _axes(x)) if train else scaled * wide, input.dtype)
    if output_mask[1]:
        grad_weight = cast(jnp.sum(grad * x_hat, axis=_axes(x), dtype=x.dtype), parameter)
    if output_mask[2]:
        grad_bias = cast(jnp.sum(grad, axis=_axes(x), dtype=x.dtype), parameter)
    return grad_input, grad_weight, grad_bias


@lowering("batch_norm_backward")
def batch_norm_backward(
    grad_out: Array,
    input: Array,
    weight: Array,
    running_mean: Array | None,
    running_var: Array | None,
    save_mean: Array | None,
    save_var: Array | None,
    update: bool,
    eps: Number,
    output_mask: Sequence[bool],
    reserve: Array,
) -> Gradients:
    """As `native_batch_norm_backward`; what the schema calls `save_var` is 1 / sqrt(variance + eps) here too."""
    return native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask)


@lowering("batch_norm_stats")
def batch_norm_stats(input: Array, eps: Number) -> tuple[Array, Array]:
    """Mean and rstd [C] of this process's share of the batch."""
    x = widened(input)
    mean, rstd = mean_and_rstd(x, _axes(x), eps.to(x.dtype))
    return mean.reshape(-1), rstd.reshape(-1)


@lowering("batch_norm_elemt")
def batch_norm_elemt(input: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array, eps: Number) -> Array:
    return cast(_affine(widened(input), mean, invstd, weight, bias), input.dtype)


@lowering("batch_norm_gather_stats_with_counts", mutates=("running_mean", "running_var"))
def batch_norm_gather_stats_with_counts(
    input: Array,
    mean: Array,
    invstd: Array,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: Number,
    eps: Number,
    counts: Array,
) -> tuple[Array | None, ...]:
    """Joins the statistics [processes, C] of shares with `counts` [processes] elements per channel; then the new running statistics."""
    work = opmath(mean.dtype)
    means, rstds, weights = cast(mean, work), cast(invstd, work), cast(counts, work).reshape(-1, 1)
    total = jnp.sum(weights)
    joint = jnp.sum(means * weights, axis=0) / total
    deviations = means - joint
    squares = jnp.sum(weights * (1 / (rstds * rstds) - eps.to(work) + deviations * deviations), axis=0)
    rstd = lax.rsqrt(squares / total + eps.to(work))
    moved = _moved(running_mean, joint, momentum), _moved(running_var, squares / (total - 1), momentum)
    return joint, rstd, *moved


@lowering("batch_norm_gather_stats", mutates=("running_mean", "running_var"))
def batch_norm_gather_stats(
    input: Array,
    mean: Array,
    invstd: Array,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: Number,
    eps: Number,
    count: int,
) -> tuple[Array | None, ...]:
    counts = jnp.full(mean.shape[0], count, opmath(mean.dtype))
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


@lowering("batch_norm_backward_reduce")
def batch_norm_backward_reduce(
    grad_out: Array, input: Array, mean: Array, invstd: Array, weight: Array | None, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple[Array | None, ...]:
    """Per channel: the sum of the gradient, the sum of gradient * (input - mean), and the gradients of weight and bias."""
    x, grad = widened(input), widened(grad_out)
    sum_dy = jnp.sum(grad, axis=_axes(x))
    sum_dy_xmu = jnp.sum(grad * (x - _per_channel(mean, x)), axis=_axes(x))
    parameter = input.dtype if weight is None else weight.dtype
    grad_weight = cast(sum_dy_xmu * cast(invstd, x.dtype), parameter) if weight_g else None
    return sum_dy if input_g else None, sum_dy_xmu if input_g else None, grad_weight, cast(sum_dy, parameter) if bias_g else None


@lowering("batch_norm_backward_elemt")
def batch_norm_backward_elemt(
    grad_out: Array, input: Array, mean: Array, invstd: Array, weight: Array | None, sum_dy: Array, sum_dy_xmu: Array, count: Array
) -> Array:
    """The gradient of the input, from sums over all processes; `count` [processes] holds their elements per channel."""
    x, grad = widened(input), widened(grad_out)
    total = jnp.sum(cast(count, x.dtype))
    rstd = _per_channel(invstd, x)
    mean_dy, mean_dy_xmu = _per_channel(sum_dy, x) / total, _per_channel(sum_dy_xmu, x) / total
    out = (grad - mean_dy - (x - _per_channel(mean, x)) * rstd * rstd * mean_dy_xmu) * rstd
    return cast(out if weight is None else out * _per_channel(weight, x), input.dtype)
