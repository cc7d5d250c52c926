"""Losses that compare element by element, their reductions and gradients."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import widened
from .promotion import Number, cast, opmath, result_dtype
from .registry import lowering

MEAN, SUM = 1, 2
"""The values of the argument `reduction`; 0 keeps the elements."""


def reduced(loss: Array, reduction: int, dtype: np.dtype) -> Array:
    """The losses, their mean or their sum, in `dtype`."""
    if reduction == MEAN:
        loss = jnp.mean(loss)
    elif reduction == SUM:
        loss = jnp.sum(loss)
    return cast(loss, dtype)


def share(grad_output: Array, reduction: int, count: int) -> Array:
    """What the gradient of the reduced loss gives to each of its `count` elements, in the accumulation dtype."""
    grad = widened(grad_output)
    return grad / max(count, 1) if reduction == MEAN else grad


def _pair(self: Array, target: Array) -> tuple[Array, Array, np.dtype]:
    """Both promoted to the dtype to compute in, and the dtype of the result."""
    result = result_dtype(self, target)
    work = opmath(result)
    return cast(self, work), cast(target, work), result


def _count(self: Array, target: Array) -> int:
    return math.prod(jnp.broadcast_shapes(self.shape, target.shape))


@lowering("mse_loss")
def mse_loss(self: Array, target: Array, reduction: int) -> Array:
    x, y, dtype = _pair(self, target)
    return reduced((x - y) * (x - y), reduction, dtype)


@lowering("mse_loss_backward")
def mse_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    x, y, dtype = _pair(self, target)
    return cast(2 * (x - y) * share(grad_output, reduction, _count(self, target)), dtype)


@lowering("smooth_l1_loss")
def smooth_l1_loss(self: Array, target: Array, reduction: int, beta: Number) -> Array:
    """0.5 * d^2 / beta where d = |self - target| < beta, else d - beta / 2."""
    x, y, dtype = _pair(self, target)
    b, d = beta.to(x.dtype), jnp.abs(x - y)
    return reduced(jnp.where(d < b, 0.5 * d * d / b, d - 0.5 * b), reduction, dtype)


@lowering("smooth_l1_loss_backward")
def smooth_l1_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, beta: Number) -> Array:
    x, y, dtype = _pair(self, target)
    b, d = beta.to(x.dtype), x - y
    slope = jnp.where(d <= -b, -1.0, jnp.where(d >= b, 1.0, d / b))
    return cast(slope * share(grad_output, reduction, _count(self, target)), dtype)


@lowering("huber_loss")
def huber_loss(self: Array, target: Array, reduction: int, delta: Number) -> Array:
    """0.5 * d^2 where d = |self - target| <= delta, else delta * (d - delta / 2)."""
    x, y, dtype = _pair(self, target)
    bound, d = delta.to(x.dtype), jnp.abs(x - y)
    return reduced(jnp.where(d <= bound, 0.5 * d * d, bound * (d - 0.5 * bound)), reduction, dtype)


@lowering("huber_loss_backward")
def huber_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, delta: Number) -> Array:
    x, y, dtype = _pair(self, target)
    bound, d = delta.to(x.dtype), x - y
    slope = jnp.where(d <= -bound, -bound, jnp.where(d >= bound, bound, d))
    return cast(slope * share(grad_output, reduction, _count(self, target)), dtype)


@lowering("binary_cross_entropy")
def binary_cross_entropy(self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    """Of probabilities; logarithms are bounded below by -100, so that a certain error stays finite."""
    x, y, dtype = _pair(self, target)
    loss = (y - 1) * jnp.maximum(jnp.log1p(-x), -100) - y * jnp.maximum(jnp.log(x), -100)
    if weight is not None:
        loss = loss * cast(weight, x.dtype)
    return reduced(loss, reduction, dtype)


@lowering("binary_cross_entropy_backward")
def binary_cross_entropy_backward(grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    x, y, dtype = _pair(self, target)
    grad = share(grad_output, reduction, self.size) * (x - y) / jnp.maximum((1 - x) * x, 1e-12)
    if weight is not None:
        grad = grad * cast(weight, x.dtype)
    return cast(grad, dtype)


@lowering("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int) -> Array:
    """`binary_cross_entropy` of sigmoid(self); `pos_weight` multiplies the terms of positive targets."""
    x, y, dtype = _pair(self, target)
    softplus = jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(-x, 0)
    positive = softplus if pos_weight is None else ((cast(pos_weight, x.dtype) - 1) * y + 1) * softplus
    loss = (1 - y) * x + positive
    if weight is not None:
        loss = loss * cast(weight, x.dtype)
    return reduced(loss, reduction, dtype)


@lowering("soft_margin_loss")
def soft_margin_loss(self: Array, target: Array, reduction: int) -> Array:
    """log(1 + exp(-target * self)), for targets 1 and -1."""
    x, y, dtype = _pair(self, target)
    return reduced(jnp.log1p(jnp.exp(-y * x)), reduction, dtype)


@lowering("soft_margin_loss_backward")
def soft_margin_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    x, y, dtype = _pair(self, target)
    return cast(-y * lax.logistic(-y * x) * share(grad_output, reduction, self.size), dtype)
