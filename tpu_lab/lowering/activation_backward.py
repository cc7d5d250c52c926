"""Gradients of the activation functions, as the ATen operators that autograd calls: `grad` is the gradient of the result.

Sources: derivatives of the formulas in `activation`, CPU PyTorch for the side a kink belongs to.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from .activation import gelu_tanh_argument, inside
from .promotion import Number, cast, is_complex, opmath, pointwise
from .registry import lowering


def _conjugate(x: Array) -> Array:
    return lax.conj(x) if is_complex(x.dtype) else x


@pointwise("sigmoid_backward")
def sigmoid_backward(grad: Array, output: Array) -> Array:
    output = _conjugate(output)
    return grad * (1 - output) * output


@pointwise("tanh_backward")
def tanh_backward(grad: Array, output: Array) -> Array:
    output = _conjugate(output)
    return grad * (1 - output * output)


@pointwise("gelu_backward")
def gelu_backward(grad: Array, x: Array, *, approximate: str) -> Array:
    """grad (Φ(x) + x φ(x)), or the derivative of the tanh approximation."""
    if approximate == "none":
        density = lax.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        return grad * (0.5 * (1 + lax.erf(x * math.sqrt(0.5))) + x * density)
    bend = lax.tanh(gelu_tanh_argument(x))
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return grad * (0.5 * (1 + bend) + 0.5 * x * (1 - bend * bend) * slope)


@pointwise("silu_backward")
def silu_backward(grad: Array, x: Array) -> Array:
    gate = lax.logistic(x)
    return grad * gate * (1 + x * (1 - gate))


@pointwise("mish_backward")
def mish_backward(grad: Array, x: Array) -> Array:
    bend = lax.tanh(lax.log1p(lax.exp(x)))
    return grad * (bend + x * lax.logistic(x) * (1 - bend * bend))


@pointwise("softplus_backward")
def softplus_backward(grad: Array, x: Array, beta: Array, threshold: Array) -> Array:
    scaled = x * beta
    return lax.select(scaled > threshold, grad, grad * lax.logistic(scaled))


@pointwise("log_sigmoid_backward")
def log_sigmoid_backward(grad: Array, x: Array, _buffer: Array) -> Array:
    """grad sigmoid(-x); the buffer, which other devices leave empty, is not needed."""
    return grad * lax.logistic(-x)


@pointwise("elu_backward")
def elu_backward(grad: Array, alpha: Array, scale: Array, input_scale: Array, is_result: bool, x: Array) -> Array:
    """Of `elu` at x, or at its result if `is_result`."""
    bend = alpha * scale
    below = x + bend if is_result else bend * lax.exp(x * input_scale)
    return lax.select(x <= 0, grad * input_scale * below, grad * scale)


@pointwise("leaky_relu_backward")
def leaky_relu_backward(grad: Array, x: Array, negative_slope: Array, _is_result: bool) -> Array:
    """Input and result have the same sign (PyTorch refuses negative slopes in place), so it does not matter which is given."""
    return lax.select(x > 0, grad, grad * negative_slope)


@lowering("_prelu_kernel_backward")
def prelu_backward(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Gradients of input and weight, both of the input's shape."""
    grad, x, weight = jnp.broadcast_arrays(grad, x, weight)
    return jnp.where(x > 0, grad, grad * weight), jnp.where(x > 0, 0, grad * x)


@lowering("rrelu_with_noise_backward")
def rrelu_with_noise_backward(grad: Array, x: Array, noise: Array, lower: Number, upper: Number, training: bool, is_result: bool) -> Array:
    """grad times the slopes kept in `noise`; of the mean slope outside training (or if the range is a point, as in PyTorch)."""
    mean = leaky_relu_backward(grad, x, Number((lower.value + upper.value) / 2), is_result)
    if not training:
        return mean
    return jnp.where(upper.value - lower.value > 1e-6, noise * grad, mean)


@pointwise("hardtanh_backward")
def hardtanh_backward(grad: Array, x: Array, low: Array, high: Array) -> Array:
    return jnp.where((x <= low) | (x >= high), 0, grad)


@pointwise("hardsigmoid_backward")
def hardsigmoid_backward(grad: Array, x: Array) -> Array:
    return jnp.where((x > -3) & (x < 3), grad / 6, 0)


@pointwise("hardswish_backward")
def hardswish_backward(grad: Array, x: Array) -> Array:
    return jnp.where(x <= -3, 0, jnp.where(x < 3, grad * (x / 3 + 0.5), grad))


@lowering("threshold_backward")
def threshold_backward(grad: Array, x: Array, limit: Number) -> Array:
    dtype = opmath(x.dtype)
    return jnp.where(cast(x, dtype) <= limit.to(dtype), 0, grad)


@lowering("hardshrink_backward", "softshrink_backward")
def shrink_backward(grad: Array, x: Array, lambd: Number) -> Array:
    return jnp.where(inside(x, lambd), 0, grad)


@pointwise("glu_backward")
def glu_backward(grad: Array, x: Array, dim: int) -> Array:
    value, gate = jnp.split(x, 2, axis=dim)
    opened = lax.logistic(gate)
    return jnp.concatenate([grad * opened, grad * value * opened * (1 - opened)], axis=dim)


@lowering("glu_backward_jvp")
def glu_backward_jvp(_grad_x: Array, grad: Array, x: Array, dgrad: Array, dx: Array, dim: int) -> Array:
    """The directional derivative of `glu_backward` at (grad, x) along (dgrad, dx)."""
    tangent: Array = jax.jvp(lambda g, v: glu_backward(g, v, dim), (grad, x), (dgrad, dx))[1]
    return tangent
