"""Losses of class scores against class numbers: negative log likelihood and the margin losses, with gradients."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from .loss import MEAN, SUM, reduced, share
from .precision import widened
from .promotion import Number, cast
from .registry import lowering


def _class_weights(weight: Array | None, target: Array, ignore_index: int, like: Array) -> Array:
    """The weight of each target's class, 0 for targets to ignore."""
    weights = jnp.ones(target.shape, like.dtype) if weight is None else cast(jnp.take(weight, target, mode="clip"), like.dtype)
    return jnp.where(target == ignore_index, jnp.zeros((), like.dtype), weights)


def _nll_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, axis: int) -> tuple[Array, Array]:
    x = widened(self)
    target = target.astype(jnp.int32)
    weights = _class_weights(weight, target, ignore_index, x)
    chosen = jnp.take_along_axis(x, jnp.expand_dims(target, axis), axis=axis, mode="clip").reshape(target.shape)
    # Times weight 0 would turn an infinite loss of a target to ignore into NaN.
    loss = jnp.where(target == ignore_index, jnp.zeros((), x.dtype), -chosen * weights)
    if reduction not in (MEAN, SUM) and target.ndim:
        return cast(loss, self.dtype), jnp.zeros((), self.dtype)
    total, total_weight = jnp.sum(loss), jnp.sum(weights)
    return cast(total / total_weight if reduction == MEAN else total, self.dtype), cast(total_weight, self.dtype)


def _nll_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total_weight: Array, axis: int
) -> Array:
    grad = widened(grad_output)
    target = target.astype(jnp.int32)
    scale = -_class_weights(weight, target, ignore_index, grad) * grad
    if reduction == MEAN:
        scale = scale / cast(total_weight, grad.dtype)
    scale = jnp.where(target == ignore_index, jnp.zeros((), grad.dtype), scale)
    classes = jnp.arange(self.shape[axis], dtype=jnp.int32).reshape((-1,) + (1,) * (self.ndim - axis - 1))
    hit = jnp.expand_dims(target, axis) == classes
    return cast(jnp.where(hit, jnp.expand_dims(scale, axis), jnp.zeros((), grad.dtype)), self.dtype)


@lowering("nll_loss_forward")
def nll_loss_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    """self [(N,) C] of log-probabilities, target [(N)] of classes: the loss and the weights' sum (0 if a batch is not reduced)."""
    return _nll_forward(self, target, weight, reduction, ignore_index, self.ndim - 1)


@lowering("nll_loss2d_forward")
def nll_loss2d_forward(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    """As `nll_loss_forward` for self [N, C, H, W], target [N, H, W]."""
    return _nll_forward(self, target, weight, reduction, ignore_index, 1)


@lowering("nll_loss_backward")
def nll_loss_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total_weight: Array
) -> Array:
    return _nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, self.ndim - 1)


@lowering("nll_loss2d_backward")
def nll_loss2d_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, total_weight: Array
) -> Array:
    return _nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, 1)


def _margins(x: Array, target: Array, margin: Number) -> tuple[Array, Array]:
    """How far each class [N, C] is from being a margin below the target's score, and which class is the target."""
    is_target = target[:, None] == jnp.arange(x.shape[1], dtype=target.dtype)
    chosen = jnp.take_along_axis(x, target[:, None], axis=1, mode="clip")
    return margin.to(x.dtype) - chosen + x, is_target


@lowering("multi_margin_loss", static=("p",))
def multi_margin_loss(self: Array, target: Array, p: int, margin: Number, weight: Array | None, reduction: int) -> Array:
    """The mean over classes of max(0, margin - self[target] + self[class]) ** p, the target's class left out; self [(N,) C]."""
    x = widened(self).reshape(-1, self.shape[-1]) if self.ndim else widened(self).reshape(1, 1)
    labels = target.reshape(-1).astype(jnp.int32)
    excess, is_target = _margins(x, labels, margin)
    terms = jnp.where(is_target, 0.0, jnp.maximum(excess, 0.0)) ** int(p)
    loss = jnp.sum(terms, axis=1) / x.shape[1]
    if weight is not None:
        loss = loss * cast(jnp.take(weight, labels, mode="clip"), x.dtype)
    return reduced(loss.reshape(target.shape), reduction, self.dtype)


@lowering("multi_margin_loss_backward", static=("p",))
def multi_margin_loss_backward(grad_output: Array, self: Array, target: Array, p: int, margin: Number, weight: Array | None, reduction: int) -> Array:
    x = widened(self).reshape(-1, self.shape[-1]) if self.ndim else widened(self).reshape(1, 1)
    labels = target.reshape(-1).astype(jnp.int32)
    excess, is_target = _margins(x, labels, margin)
    slope = jnp.where((excess > 0) & ~is_target, 1.0 if int(p) == 1 else 2 * excess, 0.0)
    slope = jnp.where(is_target, -jnp.sum(slope, axis=1, keepdims=True), slope) / x.shape[1]
    if weight is not None:
        slope = slope * cast(jnp.take(weight, labels, mode="clip"), x.dtype)[:, None]
    each = share(grad_output, reduction, labels.size).reshape(-1, 1)
    return cast((slope * each).reshape(self.shape), self.dtype)


def _label_lists(self: Array, target: Array) -> tuple[Array, Array, Array]:
    """Scores [N, C], labels [N, C], and which labels count: those before the first negative one."""
    width = self.shape[-1] if self.ndim else 1
    x, labels = widened(self).reshape(-1, width), target.reshape(-1, width).astype(jnp.int32)
    return x, labels, jnp.cumsum((labels < 0).astype(jnp.int32), axis=1, dtype=jnp.int32) == 0


@lowering("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    """Sums max(0, 1 - self[label] + self[class]) / C over the labels of each row and the classes that are none of them.

    target [(N,) C] lists labels, up to the first negative number. The second result marks the classes that are labels.
    """
    x, labels, counts = _label_lists(self, target)
    classes = jnp.arange(x.shape[1], dtype=jnp.int32)
    is_target = jnp.any((labels[:, :, None] == classes) & counts[:, :, None], axis=1)
    terms = _label_excess(x, labels)
    used = counts[:, :, None] & ~is_target[:, None, :]
    loss = jnp.sum(jnp.where(used, jnp.maximum(terms, 0.0), 0.0), axis=(1, 2)) / x.shape[1]
    shape = self.shape[:-1] if self.ndim else ()
    return reduced(loss.reshape(shape), reduction, self.dtype), cast(is_target.reshape(target.shape), self.dtype)


def _label_excess(x: Array, labels: Array) -> Array:
    """1 - x[label] + x[class], [N, label, class]."""
    return 1 - jnp.take_along_axis(x, labels, axis=1, mode="clip")[:, :, None] + x[:, None, :]


@lowering("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, is_target: Array) -> Array:
    x, labels, counts = _label_lists(self, target)
    used = counts[:, :, None] & (is_target.reshape(x.shape) == 0)[:, None, :] & (_label_excess(x, labels) > 0)
    hits = used.astype(x.dtype)
    rows = jnp.arange(x.shape[0], dtype=jnp.int32)[:, None]
    slope = jnp.sum(hits, axis=1).at[rows, labels].add(-jnp.sum(hits, axis=2), mode="drop") / x.shape[1]
    each = share(grad_output, reduction, x.shape[0]).reshape(-1, 1)
    return cast((slope * each).reshape(self.shape), self.dtype)
