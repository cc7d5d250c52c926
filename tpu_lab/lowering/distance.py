"""Distances between all rows, of one set (pdist) or two (cdist), in any p-norm, with gradients."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

from .precision import matmul_precision
from .promotion import cast
from .registry import lowering

_ROWS_WORTH_A_MATMUL = 25
"""Above this many rows PyTorch computes euclidean distances through a matmul unless told otherwise."""
_MATMUL_IF_LARGE, _ALWAYS_MATMUL = 0, 1
"""The values of `compute_mode` that allow one (2 forbids it)."""


def _norm(difference: Array, p: float) -> Array:
    """The p-norm over the last dimension; p = 0 counts the elements that differ."""
    size = jnp.abs(difference)
    if p == 0:
        return jnp.sum(size != 0, axis=-1, dtype=difference.dtype)
    if p == 1:
        return jnp.sum(size, axis=-1)
    if p == 2:
        return jnp.sqrt(jnp.sum(size * size, axis=-1))
    if math.isinf(p):
        return jnp.max(size, axis=-1, initial=0)
    return jnp.sum(size**p, axis=-1) ** (1 / p)


def _slope(difference: Array, distance: Array, p: float) -> Array:
    """The derivative of the p-norm of `difference` by its elements; 0 where the rows coincide. `distance` lacks the last dimension."""
    distance = distance[..., None]
    size, sign = jnp.abs(difference), jnp.sign(difference)
    if p == 0:
        return jnp.zeros_like(difference)
    if p == 1:
        return sign
    if math.isinf(p):
        return jnp.where(size == distance, sign, 0)
    apart = jnp.where(distance == 0, 1, distance)
    if p == 2:
        return jnp.where(distance == 0, 0, difference / apart)
    flat = (distance == 0) | ((size == 0) & (p < 2))
    return jnp.where(flat, 0, sign * (jnp.where(size == 0, 1, size) / apart) ** (p - 1) * (size != 0))


def _euclidean(x1: Array, x2: Array) -> Array:
    """sqrt(|a|^2 - 2 a b + |b|^2), with the norms as two more columns of one matmul."""
    norm1 = jnp.sum(x1 * x1, axis=-1, keepdims=True)
    norm2 = jnp.sum(x2 * x2, axis=-1, keepdims=True)
    left = jnp.concatenate([-2 * x1, norm1, jnp.ones_like(norm1)], axis=-1)
    right = jnp.concatenate([x2, jnp.ones_like(norm2), norm2], axis=-1)
    squares = jnp.matmul(left, right.swapaxes(-1, -2), precision=matmul_precision(x1.dtype))
    return jnp.sqrt(jnp.maximum(squares, 0))


@lowering("_euclidean_dist")
def euclidean_dist(x1: Array, x2: Array) -> Array:
    return _euclidean(x1, x2)


@lowering("_cdist_forward", static=("p",))
def cdist_forward(x1: Array, x2: Array, p: float, compute_mode: int | None) -> Array:
    """x1 [*, P, M], x2 [*, R, M] to the distances [*, P, R]."""
    mode = compute_mode or _MATMUL_IF_LARGE
    large = max(x1.shape[-2], x2.shape[-2]) > _ROWS_WORTH_A_MATMUL
    if p == 2 and (mode == _ALWAYS_MATMUL or (mode == _MATMUL_IF_LARGE and large)):
        return _euclidean(x1, x2)
    return _norm(x1[..., :, None, :] - x2[..., None, :, :], p)


@lowering("_cdist_backward", static=("p",))
def cdist_backward(grad: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Array:
    """The gradient of x1 (that of x2 is the same call with the sets exchanged)."""
    slope = _slope(x1[..., :, None, :] - x2[..., None, :, :], cdist, p)
    return jnp.sum(grad[..., None] * slope, axis=-2)


@lowering("_pdist_forward", static=("p",))
def pdist_forward(self: Array, p: float) -> Array:
    """self [N, M] to the distances of its rows i < j, [N (N - 1) / 2] in row order."""
    i, j = np.triu_indices(self.shape[0], 1)
    distances = _norm(self[:, None, :] - self[None, :, :], p)
    flat = jnp.asarray(i * self.shape[0] + j, jnp.int32)
    return jnp.take(distances.reshape(-1), flat, mode="clip")


@lowering("_pdist_backward", static=("p",))
def pdist_backward(grad: Array, self: Array, p: float, pdist: Array) -> Array:
    n = self.shape[0]
    i, j = (jnp.asarray(k, jnp.int32) for k in np.triu_indices(n, 1))

    def symmetric(values: Array) -> Array:
        upper = jnp.zeros((n, n), values.dtype).at[i, j].set(values)
        return upper + upper.T

    slope = _slope(self[:, None, :] - self[None, :, :], symmetric(pdist), p)
    return cast(jnp.sum(symmetric(grad)[..., None] * slope, axis=1), self.dtype)
