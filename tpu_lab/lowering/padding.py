"""Reflection and replication padding with gradients (constant padding is elsewhere)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from .precision import widened
from .promotion import cast, opmath
from .registry import lowering


def _pad_axis(x: Array, axis: int, before: int, after: int, reflect: bool) -> Array:
    """x padded along one axis; a negative width cuts off."""
    n = x.shape[axis]
    parts = [lax.slice_in_dim(x, max(-before, 0), n - max(-after, 0), axis=axis)]
    if before > 0:
        parts.insert(0, _edge(x, axis, 1, 1 + before, reflect, 0))
    if after > 0:
        parts.append(_edge(x, axis, n - 1 - after, n - 1, reflect, n - 1))
    return jnp.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]


def _edge(x: Array, axis: int, start: int, stop: int, reflect: bool, border: int) -> Array:
    """The mirrored elements from `start` to `stop`, or as many copies of the one at `border`."""
    if reflect:
        return jnp.flip(lax.slice_in_dim(x, start, stop, axis=axis), axis)
    shape = list(x.shape)
    shape[axis] = stop - start
    return jnp.broadcast_to(lax.slice_in_dim(x, border, border + 1, axis=axis), shape)


def _pad(x: Array, padding: Sequence[int], reflect: bool) -> Array:
    """`padding` names the last dimension first, two widths each."""
    for i in range(len(padding) // 2):
        x = _pad_axis(x, x.ndim - 1 - i, padding[2 * i], padding[2 * i + 1], reflect)
    return x


def _pad_backward(grad: Array, x: Array, padding: Sequence[int], reflect: bool) -> Array:
    primal = jax.ShapeDtypeStruct(x.shape, opmath(grad.dtype))
    total: Array
    (total,) = jax.linear_transpose(lambda x: _pad(x, padding, reflect), primal)(widened(grad))
    return cast(total, grad.dtype)


@lowering("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(self: Array, padding: Sequence[int]) -> Array:
    """self [(N,) C, *spatial] mirrored at its borders, which are not repeated."""
    return _pad(self, padding, True)


@lowering("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(self: Array, padding: Sequence[int]) -> Array:
    """self [(N,) C, *spatial] with its border elements repeated."""
    return _pad(self, padding, False)


@lowering("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward")
def reflection_pad_backward(grad_output: Array, self: Array, padding: Sequence[int]) -> Array:
    return _pad_backward(grad_output, self, padding, True)


@lowering("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad_backward(grad_output: Array, self: Array, padding: Sequence[int]) -> Array:
    return _pad_backward(grad_output, self, padding, False)
