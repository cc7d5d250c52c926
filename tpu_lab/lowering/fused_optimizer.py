"""The fused optimizer steps and the two operators of `GradScaler`.

Registered in their functional form, which the in-place operators (`_fused_adam_`) are derived from: the results are the new
contents of the lists that PyTorch's in-place form writes, in schema order. A list that a step leaves alone is returned as
it came. Formulas and their order of operations are those of PyTorch's CPU kernels
(https://pytorch.org/docs/stable/optim.html states them): the step counts are taken as they come, already advanced, and
everything that depends on a step count alone is computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from .promotion import Number, cast, opmath
from .registry import lowering

_DOUBLE = np.dtype(np.float64)


def _double(value: Number | Array) -> Array:
    return value.to(_DOUBLE) if isinstance(value, Number) else cast(value, _DOUBLE).reshape(())


def _unscaled(grad: Array, grad_scale: Array | None) -> Array:
    """The gradient without the loss scale, in its own dtype: what the step stores back."""
    if grad_scale is None:
        return grad
    work = opmath(grad.dtype)
    return cast(cast(grad, work) / cast(grad_scale, work).reshape(()), grad.dtype)


def _working_gradient(grad: Array, grad_scale: Array | None, work: np.dtype, maximize: bool) -> Array:
    value = cast(grad, work)
    if grad_scale is not None:
        value = value / cast(grad_scale, work).reshape(())
    return -value if maximize else value


def _decayed(value: Array, weight: Array, by: Array) -> Array:
    """`value + weight * by`, exactly `value` if the weight is 0."""
    return jnp.where(weight == 0, value, value + weight * by)


def _unless_overflow(found_inf: Array | None, new: Sequence[list[Array]], old: Sequence[list[Array]]) -> tuple[list[Array], ...]:
    """The new lists in the dtypes of the old ones; the old ones where `found_inf` is 1 (a skipped step of GradScaler)."""
    kept = []
    for new_list, old_list in zip(new, old, strict=True):
        values = [a if a is b else cast(a, b.dtype) for a, b in zip(new_list, old_list, strict=True)]
        if found_inf is not None:
            skip = found_inf.reshape(()) == 1
            values = [a if a is b else jnp.where(skip, b, a) for a, b in zip(values, old_list, strict=True)]
        kept.append(values)
    return tuple(kept)


def _adam(
    self: list[Array],
    grads: list[Array],
    exp_avgs: list[Array],
    exp_avg_sqs: list[Array],
    max_exp_avg_sqs: list[Array],
    state_steps: list[Array],
    *,
    lr: Number | Array,
    beta1: Number,
    beta2: Number,
    weight_decay: Number,
    eps: Number,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Array | None,
    found_inf: Array | None,
    decoupled: bool,
) -> tuple[list[Array], ...]:
    """One Adam (`decoupled`: AdamW) step per parameter."""
    rate, first, second = _double(lr), _double(beta1), _double(beta2)
    params, averages, squares, largest = [], [], [], []
    for i, param in enumerate(self):
        work = opmath(param.dtype)
        step = _double(state_steps[i])
        step_size = cast(rate / (1 - first**step), work)
        root_correction = cast(jnp.sqrt(1 - second**step), work)
        grad = _working_gradient(grads[i], grad_scale, work, maximize)
        value = cast(param, work)
        if decoupled:
            value = _decayed(value, cast(-rate * _double(weight_decay), work), value)
        else:
            grad = _decayed(grad, weight_decay.to(work), value)
        average = cast(exp_avgs[i], work)
        average = average + cast(1 - first, work) * (grad - average)
        square = cast(second, work) * cast(exp_avg_sqs[i], work) + cast(1 - second, work) * grad * grad
        seen = square
        if amsgrad:
            seen = jnp.maximum(cast(max_exp_avg_sqs[i], work), square)
            largest.append(seen)
        params.append(value - step_size * average / (jnp.sqrt(seen) / root_correction + eps.to(work)))
        averages.append(average)
        squares.append(square)
    new = (params, [_unscaled(g, grad_scale) for g in grads], averages, squares, largest if amsgrad else max_exp_avg_sqs)
    return _unless_overflow(found_inf, new, (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs))


@lowering("_fused_adam", "_fused_adam.tensor_lr")
def fused_adam(*lists: list[Array], **options: object) -> tuple[list[Array], ...]:
    """Adam with weight decay in the gradient. Returns parameters, gradients, both averages, their maxima."""
    return _adam(*lists, **options, decoupled=False)  # type: ignore[arg-type]


@lowering("_fused_adamw", "_fused_adamw.tensor_lr")
def fused_adamw(*lists: list[Array], **options: object) -> tuple[list[Array], ...]:
    """Adam with decoupled weight decay. Returns parameters, gradients, both averages, their maxima."""
    return _adam(*lists, **options, decoupled=True)  # type: ignore[arg-type]


@lowering("_fused_sgd", "_fused_sgd.tensor_lr")
def fused_sgd(
    self: list[Array],
    grads: list[Array],
    momentum_buffer_list: list[Array],
    *,
    weight_decay: Number,
    momentum: Number,
    lr: Number | Array,
    dampening: Number,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Array | None,
    found_inf: Array | None,
) -> tuple[list[Array], ...]:
    """Gradient descent; without momentum the buffer list is empty. Returns parameters, gradients, buffers."""
    params, buffers = [], []
    for i, param in enumerate(self):
        work = opmath(param.dtype)
        value = cast(param, work)
        grad = _decayed(_working_gradient(grads[i], grad_scale, work, maximize), weight_decay.to(work), value)
        if momentum_buffer_list:
            buffer = grad
            if not is_first_step:
                buffer = momentum.to(work) * cast(momentum_buffer_list[i], work) + cast(1 - _double(dampening), work) * grad
            buffers.append(buffer)
            grad = grad + momentum.to(work) * buffer if nesterov else buffer
        params.append(value - cast(_double(lr), work) * grad)
    new = (params, [_unscaled(g, grad_scale) for g in grads], buffers)
    return _unless_overflow(found_inf, new, (self, grads, momentum_buffer_list))


def _adagrad(
    self: list[Array],
    grads: list[Array],
    state_sums: list[Array],
    state_steps: list[Array],
    *,
    lr: Number | Array,
    lr_decay: Number,
    weight_decay: Number,
    eps: Number,
    maximize: bool,
    grad_scale: Array | None,
    found_inf: Array | None,
) -> tuple[list[Array], ...]:
    """Adagrad. Returns parameters, gradients, sums of squares."""
    params, sums = [], []
    for i, param in enumerate(self):
        work = opmath(param.dtype)
        value = cast(param, work)
        grad = _decayed(_working_gradient(grads[i], grad_scale, work, maximize), weight_decay.to(work), value)
        total = cast(state_sums[i], work) + grad * grad
        rate = _double(lr) / (1 + (_double(state_steps[i]) - 1) * _double(lr_decay))
        params.append(value - cast(rate, work) * grad / (jnp.sqrt(total) + eps.to(work)))
        sums.append(total)
    new = (params, [_unscaled(g, grad_scale) for g in grads], sums)
    return _unless_overflow(found_inf, new, (self, grads, state_sums))


lowering("_fused_adagrad.tensor_lr")(_adagrad)


@lowering("_fused_adagrad")
def fused_adagrad(*lists: list[Array], **options: object) -> tuple[list[Array], ...]:
    """Adagrad; this overload's schema says the step counts are written too: they come back unchanged."""
    return (*_adagrad(*lists, **options), lists[3])  # type: ignore[arg-type]


@lowering("_amp_foreach_non_finite_check_and_unscale")
def amp_unscale(self: list[Array], found_inf: Array, inv_scale: Array) -> tuple[list[Array], Array]:
    """Gradients times `inv_scale` [1]; `found_inf` [1] becomes 1 if one of them is not finite."""
    found = found_inf
    scaled = []
    for grad in self:
        work = opmath(grad.dtype)
        scaled.append(cast(cast(grad, work) * cast(inv_scale, work).reshape(()), grad.dtype))
        found = jnp.where(jnp.all(jnp.isfinite(grad)), found, jnp.ones((), found.dtype))
    return scaled, found


@lowering("_amp_update_scale")
def amp_update_scale(
    self: Array, growth_tracker: Array, found_inf: Array, scale_growth_factor: Number, scale_backoff_factor: Number, growth_interval: int
) -> tuple[Array, Array]:
    """The loss scale and the count of good steps in a row after a step: shrink on overflow, grow after `growth_interval` good ones.

    A growth that would overflow float32 is not done.
    """
    overflow = found_inf.reshape(growth_tracker.shape) != 0
    good = growth_tracker + 1
    due = good == growth_interval
    grown = cast(cast(self, _DOUBLE) * scale_growth_factor.to(_DOUBLE), self.dtype)
    shrunk = cast(cast(self, _DOUBLE) * scale_backoff_factor.to(_DOUBLE), self.dtype)
    scale = jnp.where(overflow, shrunk, jnp.where(due & jnp.isfinite(grown), grown, self))
    return scale, jnp.where(overflow | due, jnp.zeros((), growth_tracker.dtype), good)
