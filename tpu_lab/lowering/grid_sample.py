"""Sampling of images at given places (`grid_sample`, `affine_grid`) with gradients.

A sample is a sum over the neighbours of its place: per dimension a few (index, weight) pairs, combined over dimensions. Gradients
are jax's of that sum, the coordinate rules being written so that their derivatives are PyTorch's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .precision import matmul_precision, widened
from .promotion import cast, opmath
from .registry import lowering

_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
"""The values of the arguments `interpolation_mode` and `padding_mode`."""
_CUBIC_A = -0.75

Tap = tuple[Array, Array]
"""An index along one dimension, as a float without fraction (it may lie outside), and its weight; both [N, places]."""


def _clip(x: Array, size: int) -> Array:
    """x between 0 and size - 1; constant (without slope) at and beyond both."""
    return jnp.where(x <= 0, 0.0, jnp.where(x >= size - 1, size - 1.0, x)).astype(x.dtype)


def _reflect(x: Array, size: int, align_corners: bool) -> Array:
    """x mirrored at the centres of the border elements (`align_corners`) or at their outer edges, as often as needed."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return jnp.zeros_like(x)
    distance = jnp.where(x < low, low - x, x - low)
    flips = jnp.floor(distance / span)
    rest = distance - flips * span
    return jnp.where(flips % 2 == 0, rest + low, span - rest + low)


def _padded(x: Array, size: int, padding_mode: int, align_corners: bool) -> Array:
    """Places outside the image brought inside, as `padding_mode` says."""
    if padding_mode == _REFLECTION:
        x = _reflect(x, size, align_corners)
    return x if padding_mode == _ZEROS else _clip(x, size)


def _taps(place: Array, size: int, interpolation_mode: int, padding_mode: int, align_corners: bool) -> list[Tap]:
    """The neighbours of places given from -1 to 1 along one dimension of `size` elements."""
    x = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
    if interpolation_mode == _BICUBIC:
        base = jnp.floor(x)
        t = x - base
        weights = (_far(t + 1), _near(t), _near(1 - t), _far(2 - t))
        return [(_padded(base + i - 1, size, padding_mode, align_corners), w) for i, w in enumerate(weights)]
    x = _padded(x, size, padding_mode, align_corners)
    if interpolation_mode == _NEAREST:
        return [(jnp.round(x), jnp.ones_like(x))]
    base = jnp.floor(x)
    return [(base, 1 - (x - base)), (base + 1, x - base)]


def _near(x: Array) -> Array:
    """Keys' cubic kernel for distances up to 1."""
    return ((_CUBIC_A + 2) * x - (_CUBIC_A + 3)) * x * x + 1


def _far(x: Array) -> Array:
    """Keys' cubic kernel for distances from 1 to 2."""
    return ((_CUBIC_A * x - 5 * _CUBIC_A) * x + 8 * _CUBIC_A) * x - 4 * _CUBIC_A


def _sample(image: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """image [N, C, *spatial], grid [N, *out, rank] whose last dimension names the last spatial one first; [N, C, *out]."""
    rank = image.ndim - 2
    sizes = image.shape[2:]
    places = grid.reshape(grid.shape[0], -1, rank)
    per_dimension = [_taps(places[..., rank - 1 - d], sizes[d], interpolation_mode, padding_mode, align_corners) for d in range(rank)]
    flat = image.reshape(*image.shape[:2], -1)
    total = jnp.zeros((*image.shape[:2], places.shape[1]), image.dtype)
    for corner in itertools.product(*per_dimension):
        inside, index, weight = jnp.array(True), jnp.zeros(places.shape[:2], jnp.int32), jnp.ones((), image.dtype)
        for (position, factor), size in zip(corner, sizes, strict=True):
            within = (position >= 0) & (position <= size - 1)
            inside = inside & within
            index = index * size + jnp.where(within, position, 0).astype(jnp.int32)
            weight = weight * factor
        seen = jax.vmap(lambda plane, i: jnp.take(plane, i, axis=1, mode="clip"))(flat, jnp.where(inside, index, 0))
        total = total + jnp.where(inside[:, None], seen, 0.0) * weight[:, None]
    return total.reshape(*image.shape[:2], *grid.shape[1:-1])


@lowering("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """input [N, C, (D,) H, W] at the places of grid [N, *out, 2 or 3], where -1 and 1 are the image's borders: [N, C, *out]."""
    out = _sample(widened(input), widened(grid), interpolation_mode, padding_mode, align_corners)
    return cast(out, input.dtype)


@lowering("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None]:
    """The gradients of input (None unless asked for) and grid."""

    def sample(image: Array, places: Array) -> Array:
        return _sample(image, places, interpolation_mode, padding_mode, align_corners)

    _, pull = jax.vjp(sample, widened(input), widened(grid))
    grad_input, grad_grid = pull(widened(grad_output))
    return cast(grad_input, input.dtype) if output_mask[0] else None, cast(grad_grid, grid.dtype)


def _steps(count: int, align_corners: bool) -> np.ndarray:
    """The centres of `count` elements between -1 and 1."""
    if count <= 1:
        return np.zeros(count)
    steps = np.linspace(-1.0, 1.0, count)
    return steps if align_corners else steps * (count - 1) / count


@lowering("affine_grid_generator")
def affine_grid_generator(theta: Array, size: Sequence[int], align_corners: bool) -> Array:
    """theta [N, rank, rank + 1] applied to the centres of an image of `size` [N, C, *spatial]: [N, *spatial, rank], last dimension first."""
    spatial = size[2:]
    rank = len(spatial)
    work = opmath(theta.dtype)
    axes = np.meshgrid(*(_steps(n, align_corners) for n in spatial), indexing="ij")
    base = np.stack([*reversed(axes), np.ones(tuple(spatial))], axis=-1).reshape(-1, rank + 1)
    grid = jnp.einsum("lk,nrk->nlr", jnp.asarray(base, work), widened(theta), precision=matmul_precision(work))
    return cast(grid.reshape(theta.shape[0], *spatial, rank), theta.dtype)
