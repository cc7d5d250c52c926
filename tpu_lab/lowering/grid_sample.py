"""Sampling of images at given places (`grid_sample`, `affine_grid`) with gradients.

A sample is a sum over the neighbours of its place: per dimension a few (index, weight) pairs, combined over dimensions. The
gradient of the grid is jax's of the weights, the coordinate rules being written so that their derivatives are PyTorch's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import register_dataclass

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


@register_dataclass
@dataclass(frozen=True)
class _Corners:
    """The K neighbours each place has in an image: flat index in its plane and whether it exists, both [K, N, places]."""

    index: Array
    inside: Array


def _corners(grid: Array, sizes: Sequence[int], interpolation_mode: int, padding_mode: int, align_corners: bool) -> tuple[Array, _Corners]:
    """The neighbours' weights [K, N, places] and the neighbours, for grid [N, *out, rank] whose last dimension names the last size first."""
    rank = len(sizes)
    places = grid.reshape(grid.shape[0], -1, rank)
    taps = [_taps(places[..., rank - 1 - d], sizes[d], interpolation_mode, padding_mode, align_corners) for d in range(rank)]
    indices, weights, inside = [], [], []
    for corner in itertools.product(*taps):
        index, weight, within = jnp.zeros(places.shape[:2], jnp.int32), jnp.ones((), grid.dtype), jnp.array(True)
        for (position, factor), size in zip(corner, sizes, strict=True):
            here = (position >= 0) & (position <= size - 1)
            index = index * size + jnp.where(here, position, 0).astype(jnp.int32)
            weight, within = weight * factor, within & here
        indices.append(index)
        weights.append(weight)
        inside.append(within)
    return jnp.stack(weights), _Corners(jnp.stack(indices), jnp.stack(inside))


@lowering("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """input [N, C, (D,) H, W] at the places of grid [N, *out, 2 or 3], where -1 and 1 are the image's borders: [N, C, *out]."""
    weights, corners = _corners(widened(grid), input.shape[2:], interpolation_mode, padding_mode, align_corners)
    planes = widened(input).reshape(*input.shape[:2], -1)
    total = jnp.zeros((*input.shape[:2], weights.shape[2]), planes.dtype)
    for k in range(weights.shape[0]):
        seen = jnp.take_along_axis(planes, corners.index[k][:, None], axis=2, mode="clip")
        total = total + jnp.where(corners.inside[k][:, None], seen, 0) * cast(weights[k], total.dtype)[:, None]
    return cast(total.reshape(*input.shape[:2], *grid.shape[1:-1]), input.dtype)


def _in_memory(x: Array) -> Array:
    """x, written out before it is used: XLA:CPU would else compute it anew for each element that reads it, in a slow order."""
    written: Array = lax.optimization_barrier(x)
    return written


def _pixel_rows(x: Array) -> Array:
    """x [N, C, *] as [N * places, C], so that a pixel is read and written as one piece."""
    return _in_memory(jnp.moveaxis(x, 1, -1).reshape(-1, x.shape[1]))


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
    """The gradients of input (None unless asked for) and grid.

    Pixel by pixel (`_pixel_rows`): 20 times faster on XLA:CPU than what jax derives from the forward pass.
    """
    sizes = input.shape[2:]
    weights, pull, corners = jax.vjp(lambda g: _corners(g, sizes, interpolation_mode, padding_mode, align_corners), widened(grid), has_aux=True)
    grads, pixels = _pixel_rows(widened(grad_output)), _pixel_rows(widened(input))
    base = jnp.arange(input.shape[0], dtype=jnp.int32)[:, None] * math.prod(sizes)
    grad_weights, grad_pixels = [], jnp.zeros_like(pixels)
    for k in range(weights.shape[0]):
        index, inside = (corners.index[k] + base).reshape(-1), corners.inside[k].reshape(-1)
        seen = _in_memory(jnp.take(pixels, index, axis=0, mode="clip"))
        grad_weights.append(jnp.where(inside, jnp.sum(seen * grads, axis=1), 0))
        if output_mask[0]:
            factor = jnp.where(inside, cast(weights[k], grads.dtype).reshape(-1), 0)
            grad_pixels = grad_pixels.at[index].add(grads * factor[:, None], mode="promise_in_bounds")
    (grad_grid,) = pull(cast(jnp.stack(grad_weights).reshape(weights.shape), weights.dtype))
    grad_input = None
    if output_mask[0]:
        by_place = grad_pixels.reshape(input.shape[0], *sizes, input.shape[1])
        grad_input = cast(jnp.moveaxis(by_place, -1, 1), input.dtype)
    return grad_input, cast(grad_grid, grid.dtype)


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
