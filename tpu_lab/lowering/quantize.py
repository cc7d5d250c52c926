"""Fake quantization of quantization-aware training: round to a grid of integers and back, with the mask of what was in range.

Grid: `q = round_half_even(x / scale) + zero_point`, clipped to [quant_min, quant_max]. Computed in float32 for 16-bit floats. A NaN
has no place on the grid: it takes quant_min and counts as out of range, as in PyTorch's CPU kernels.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import Number, cast, is_floating, opmath
from .registry import lowering


def along(values: Array, axis: int, rank: int) -> Array:
    """A vector of parameters as a shape that broadcasts along dimension `axis` of a tensor of rank `rank`."""
    shape = [1] * rank
    shape[axis % rank] = values.shape[0]
    return values.reshape(shape)


def _rounded(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _places(x: Array, scale: Array, zero_point: Array, exact_origin: bool) -> Array:
    """Where each element lies on the integer grid, not clipped. With `exact_origin` the zero point is no integer and is added first."""
    steps = x * (1 / scale)
    rounded = _rounded(steps + zero_point) if exact_origin else _rounded(steps) + zero_point
    return jnp.where(jnp.isnan(rounded), -jnp.inf, rounded)


def _fake_quantize(self: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int, exact_origin: bool = False) -> tuple[Array, Array]:
    """The value on the grid and whether it needed no clipping. Parameters broadcast to `self`."""
    work = opmath(self.dtype)
    step, origin = cast(scale, work), cast(zero_point, work)
    place = _places(cast(self, work), step, origin, exact_origin)
    out = (jnp.clip(place, quant_min, quant_max) - origin) * step
    return cast(out, self.dtype), (place >= quant_min) & (place <= quant_max)


def _number(scale: Number, dtype: np.dtype) -> Array:
    return scale.to(opmath(dtype))


@lowering("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(self: Array, scale: Number, zero_point: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """One scale and zero point for all. Returns the value and the mask (bool)."""
    return _fake_quantize(self, _number(scale, self.dtype), jnp.asarray(zero_point, np.int64), quant_min, quant_max)


@lowering("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def per_tensor_of_tensors(
    self: Array, scale: Array, zero_point: Array, fake_quant_enabled: Array, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    """Scale and zero point as tensors of one element; unchanged with a full mask where `fake_quant_enabled` is 0."""
    value, mask = _fake_quantize(self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)
    enabled = fake_quant_enabled.reshape(()) != 0
    return jnp.where(enabled, value, self), mask | ~enabled


@lowering("fake_quantize_per_channel_affine_cachemask")
def per_channel(self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """A scale and zero point per index of `axis`. A floating zero point is added before rounding."""
    exact = is_floating(zero_point.dtype)
    return _fake_quantize(self, along(scale, axis, self.ndim), along(zero_point, axis, self.ndim), quant_min, quant_max, exact)


def _rounded_zero_point(zero_point: Array, quant_min: int, quant_max: int) -> Array:
    """A learned zero point as the forward pass uses it: rounded half to even, clipped."""
    return jnp.clip(_rounded(zero_point), quant_min, quant_max)


@lowering("_fake_quantize_learnable_per_tensor_affine")
def learnable_per_tensor(self: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int, grad_factor: Number) -> Array:
    origin = _rounded_zero_point(zero_point.reshape(-1)[0], quant_min, quant_max)
    return _fake_quantize(self, scale.reshape(-1)[0], origin, quant_min, quant_max)[0]


@lowering("_fake_quantize_learnable_per_channel_affine")
def learnable_per_channel(self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int, grad_factor: Number) -> Array:
    origin = _rounded_zero_point(zero_point, quant_min, quant_max)
    return _fake_quantize(self, along(scale, axis, self.ndim), along(origin, axis, self.ndim), quant_min, quant_max)[0]


def _learnable_gradients(
    grad: Array, self: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int, grad_factor: Number
) -> tuple[Array, Array, Array]:
    """Elementwise gradients for input, scale and zero point (LSQ+, https://arxiv.org/abs/2004.09576). Parameters broadcast to `self`."""
    work = opmath(self.dtype)
    x, upstream, step, origin = (cast(v, work) for v in (self, grad, scale, zero_point))
    place = _rounded(origin + x * (1 / step))
    low, high = place < quant_min, place > quant_max
    inside = ~(low | high)
    value = (jnp.clip(place, quant_min, quant_max) - origin) * step
    factor = grad_factor.to(work)
    by_scale = jnp.where(inside, (value - x) / step, jnp.where(low, quant_min - origin, quant_max - origin))
    by_zero_point = jnp.where(inside, 0, -step)
    return jnp.where(inside, upstream, upstream * 0), upstream * by_scale * factor, upstream * by_zero_point * factor


@lowering("_fake_quantize_learnable_per_tensor_affine_backward")
def learnable_per_tensor_backward(
    grad: Array, self: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int, grad_factor: Number
) -> tuple[Array, Array, Array]:
    """Gradients of input, scale [1] and zero point [1]. The zero point is rounded by adding 1/2 and truncating here, as in PyTorch."""
    origin = jnp.trunc(jnp.clip(zero_point.reshape(-1)[0] + 0.5, quant_min, quant_max))
    by_input, by_scale, by_zero_point = _learnable_gradients(grad, self, scale.reshape(-1)[0], origin, quant_min, quant_max, grad_factor)
    return by_input, jnp.sum(by_scale).reshape(scale.shape), jnp.sum(by_zero_point).reshape(zero_point.shape)


@lowering("_fake_quantize_learnable_per_channel_affine_backward")
def learnable_per_channel_backward(
    grad: Array, self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int, grad_factor: Number
) -> tuple[Array, Array, Array]:
    """Gradients of input, and of scale and zero point per index of `axis`."""
    origin = _rounded_zero_point(zero_point, quant_min, quant_max)
    steps, origins = along(scale, axis, self.ndim), along(origin, axis, self.ndim)
    by_input, by_scale, by_zero_point = _learnable_gradients(grad, self, steps, origins, quant_min, quant_max, grad_factor)
    others = tuple(d for d in range(self.ndim) if d != axis % self.ndim)
    return by_input, jnp.sum(by_scale, axis=others), jnp.sum(by_zero_point, axis=others)


_SMALLEST_SCALE = 6.1e-5
"""Below it PyTorch's CPU kernel (FBGEMM's choice of parameters) takes this scale and widens the range."""


def _grid_of(low: Array, high: Array, quant_min: int, quant_max: int, symmetric: bool) -> tuple[Array, Array]:
    """Scale (float32) and zero point (int32) for values from `low` to `high`, as FBGEMM chooses them; the range is widened to hold 0."""
    low, high = (cast(v, np.dtype(np.float64)) for v in (low, high))
    levels = quant_max - quant_min
    both_signs = (low < 0) & (high > 0) if symmetric else jnp.zeros(low.shape, np.bool_)
    unit = jnp.maximum(jnp.abs(low / -(levels // 2 + 1)), jnp.abs(high / (levels // 2)))
    low, high = jnp.where(both_signs, -unit * (levels // 2 + 1), low), jnp.where(both_signs, unit * (levels // 2), high)
    low, high = jnp.minimum(low, 0), jnp.maximum(high, 0)
    scale = cast((high - low) / levels, np.dtype(np.float32))
    scale = jnp.where((scale == 0) | jnp.isinf(1 / scale), np.float32(0.1), scale)
    small, wanted = scale < _SMALLEST_SCALE, _SMALLEST_SCALE * levels
    factor = _SMALLEST_SCALE / cast(scale, np.dtype(np.float64))
    wider = jnp.where(low == 0, 0, jnp.where(high == 0, -wanted, low * factor)), jnp.where(low == 0, wanted, high * factor)
    low, high = jnp.where(small, wider[0], low), jnp.where(small, wider[1], high)
    scale = jnp.where(small, np.float32(_SMALLEST_SCALE), scale)
    step = cast(scale, np.dtype(np.float64))
    from_low, from_high = quant_min - low / step, quant_max - high / step
    nearer = abs(quant_min) - jnp.abs(low / step) < abs(quant_max) - jnp.abs(high / step)
    origin = jnp.where(both_signs, (quant_min + quant_max) / 2, jnp.where(nearer, from_low, from_high))
    return scale, jnp.clip(_rounded(origin), quant_min, quant_max).astype(np.int32)


@lowering("_fused_moving_avg_obs_fq_helper", mutates=("running_min", "running_max", "scale", "zero_point"))
def moving_average_observer(
    self: Array,
    observer_on: Array,
    fake_quant_on: Array,
    running_min: Array,
    running_max: Array,
    scale: Array,
    zero_point: Array,
    averaging_const: Number,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool,
    symmetric_quant: bool,
) -> tuple[Array, ...]:
    """Moves the observed range towards that of `self` where `observer_on`; where `fake_quant_on` takes the grid from it and fake-quantizes.

    Returns value, mask, and the four moved statistics.
    """
    others = tuple(d for d in range(self.ndim) if d != ch_axis % self.ndim) if per_row_fake_quant else None
    observed, quantized = observer_on.reshape(()) != 0, fake_quant_on.reshape(()) != 0
    factor = averaging_const.to(running_min.dtype)

    def moved(old: Array, seen: Array) -> Array:
        new = jnp.where(jnp.isinf(old), seen, old + factor * (seen - old))
        return jnp.where(observed, new.reshape(old.shape), old)

    shape = (self.shape[ch_axis],) if per_row_fake_quant else running_min.shape
    old_min, old_max = (v if v.size else jnp.full(shape, fill, v.dtype) for v, fill in ((running_min, np.inf), (running_max, -np.inf)))
    low = moved(old_min, cast(jnp.min(self, axis=others).reshape(shape), running_min.dtype))
    high = moved(old_max, cast(jnp.max(self, axis=others).reshape(shape), running_max.dtype))
    step, origin = _grid_of(low, high, quant_min, quant_max, symmetric_quant)
    new_scale = jnp.where(quantized, step.reshape(scale.shape), scale).astype(scale.dtype)
    new_zero = jnp.where(quantized, origin.reshape(zero_point.shape), zero_point).astype(zero_point.dtype)
    rank = self.ndim
    grid = (along(new_scale, ch_axis, rank), along(new_zero, ch_axis, rank)) if per_row_fake_quant else (new_scale.reshape(()), new_zero.reshape(()))
    value, mask = _fake_quantize(self, *grid, quant_min, quant_max)
    return jnp.where(quantized, value, self), mask | ~quantized, low, high, new_scale, new_zero
