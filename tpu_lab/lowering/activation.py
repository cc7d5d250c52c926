"""Activation functions. Their gradients are in `activation_backward`.

Sources: the formulas of the `torch.nn` documentation, CPU PyTorch for every edge value. All compute in float32 for 16-bit dtypes.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import Number, cast, opmath, pointwise
from .registry import lowering
from .rng import Rng


@pointwise("relu")
def relu(x: Array) -> Array:
    return lax.max(x, jnp.zeros_like(x))


def gelu_tanh_argument(x: Array) -> Array:
    """sqrt(2 / pi) (x + 0.044715 x³), what the approximate gelu puts into tanh."""
    return (x + 0.044715 * x * x * x) * math.sqrt(2 / math.pi)


@pointwise("gelu")
def gelu(x: Array, *, approximate: str) -> Array:
    """x Φ(x), with the normal distribution's Φ (`none`) or its approximation by `tanh`."""
    bend = lax.erf(x * math.sqrt(0.5)) if approximate == "none" else lax.tanh(gelu_tanh_argument(x))
    return x * 0.5 * (1 + bend)


@pointwise("silu")
def silu(x: Array) -> Array:
    """x sigmoid(x)."""
    return x * lax.logistic(x)


@pointwise("mish")
def mish(x: Array) -> Array:
    """x tanh(softplus(x))."""
    return x * lax.tanh(lax.log1p(lax.exp(x)))


@pointwise("softplus")
def softplus(x: Array, beta: Array, threshold: Array) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold."""
    scaled = x * beta
    return lax.select(scaled > threshold, x, lax.log1p(lax.exp(scaled)) / beta)


@pointwise("elu")
def elu(x: Array, alpha: Array, scale: Array, input_scale: Array) -> Array:
    """scale x above zero, scale alpha (exp(input_scale x) - 1) below. Its cases celu and selu come here."""
    return lax.select(x > 0, x * scale, lax.expm1(x * input_scale) * (alpha * scale))


@pointwise("celu")
def celu(x: Array, alpha: Array) -> Array:
    """x above zero, alpha (exp(x / alpha) - 1) below."""
    return lax.select(x > 0, x, lax.expm1(x / alpha) * alpha)


@pointwise("leaky_relu")
def leaky_relu(x: Array, negative_slope: Array) -> Array:
    return lax.select(x > 0, x, x * negative_slope)


@pointwise("_prelu_kernel")
def prelu(x: Array, weight: Array) -> Array:
    """x above zero, weight x below; `weight` is expanded to x's rank already."""
    return jnp.where(x > 0, x, x * weight)


@pointwise("hardtanh")
def hardtanh(x: Array, low: Array, high: Array) -> Array:
    """x between the limits."""
    return lax.clamp(low, x, high)


@pointwise("hardsigmoid")
def hardsigmoid(x: Array) -> Array:
    """(x + 3) / 6 between 0 and 1."""
    return lax.clamp(x.dtype.type(0), x + 3, x.dtype.type(6)) / 6


@pointwise("hardswish")
def hardswish(x: Array) -> Array:
    """x hardsigmoid(x)."""
    return x * lax.clamp(x.dtype.type(0), x + 3, x.dtype.type(6)) / 6


@lowering("threshold")
def threshold(x: Array, limit: Number, value: Number) -> Array:
    """x where it is above the limit, else `value`; both become integers for an integer x."""
    dtype = opmath(x.dtype)
    value_of_x = cast(x, dtype)
    return jnp.where(value_of_x <= limit.to(dtype), value.to(dtype), value_of_x)


def inside(x: Array, lambd: Number) -> Array:
    """Where -lambd <= x <= lambd, with the limit rounded to x's dtype."""
    limit = lambd.to(x.dtype)
    return (x >= -limit) & (x <= limit)


@lowering("hardshrink")
def hardshrink(x: Array, lambd: Number) -> Array:
    """0 between -lambd and lambd, else x."""
    return jnp.where(inside(x, lambd), 0, x)


@pointwise("softshrink")
def softshrink(x: Array, lambd: Array) -> Array:
    """x pulled by lambd towards zero; 0 in between."""
    return jnp.where(x > lambd, x - lambd, jnp.where(x < -lambd, x + lambd, x * 0))


@lowering("log_sigmoid_forward")
def log_sigmoid(x: Array) -> tuple[Array, Array]:
    """log sigmoid(x), and the buffer exp(-|x|) that PyTorch's CPU keeps for the gradient."""
    value = cast(x, opmath(x.dtype))
    buffer = lax.exp(-lax.abs(value))
    return lax.min(value, jnp.zeros_like(value)) - lax.log1p(buffer), buffer


@pointwise("glu")
def glu(x: Array, dim: int) -> Array:
    """First half of `dim` times the sigmoid of the second."""
    value, gate = jnp.split(x, 2, axis=dim)
    return value * lax.logistic(gate)


@lowering("glu_jvp")
def glu_jvp(_glu: Array, x: Array, dx: Array, dim: int) -> Array:
    """The directional derivative of glu at x along dx."""
    tangent: Array = jax.jvp(lambda v: glu(v, dim), (x,), (dx,))[1]
    return tangent


@lowering("rrelu_with_noise", mutates=("noise",))
def rrelu_with_noise(x: Array, noise: Array, lower: Number, upper: Number, training: bool, *, rng: Rng) -> tuple[Array, Array]:
    """x above zero; below, x times a slope: uniform in [lower, upper) in training, their mean otherwise.

    Returns the result and the new `noise` (the slopes that were used, 1 above zero; untouched outside training).
    """
    dtype = opmath(x.dtype)
    value, low, high = cast(x, dtype), lower.to(dtype), upper.to(dtype)
    if not training:
        return leaky_relu(value, (low + high) / 2), noise
    slope = jnp.where(value <= 0, low + (high - low) * rng.uniform(x.shape, dtype), np.ones((), dtype))
    return value * slope, slope


@lowering("rrelu_with_noise_functional")
def rrelu_with_noise_functional(x: Array, noise: Array, lower: Number, upper: Number, training: bool, *, rng: Rng) -> tuple[Array, Array]:
    """`rrelu_with_noise` with the new noise as its second result."""
    return rrelu_with_noise(x, noise, lower, upper, training, rng=rng)
