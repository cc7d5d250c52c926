"""Pooling whose windows follow from the output size (adaptive, fractional), and unpooling."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from .pooling import Pair, PoolWindow, better, flat_positions, max_over_windows, scatter_planes
from .promotion import cast, opmath
from .registry import lowering
from .resample import Resampling, resample, resample_transposed


def _bounds(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """First and one-past-last element of each of `out` adaptive windows: floor(i * size / out), ceil((i + 1) * size / out)."""
    i = np.arange(out)
    return i * size // out, -((-(i + 1) * size) // out)


def _averaging(size: int, out: int) -> Resampling:
    start, stop = _bounds(size, out)
    length = stop - start
    taps = int(length.max(initial=1))
    offset = np.arange(taps)
    weights = np.where(offset < length[:, None], 1.0 / length[:, None], 0.0)
    return Resampling(size, np.minimum(start[:, None] + offset, size - 1), weights)


def _averagings(shape: Sequence[int], out: Sequence[int]) -> list[Resampling]:
    return [_averaging(n, m) for n, m in zip(shape, out, strict=True)]


def _adaptive_average(x: Array, output_size: Sequence[int], rank: int) -> Array:
    return resample(x, _averagings(x.shape[x.ndim - rank :], output_size))


def _adaptive_average_backward(grad: Array, x: Array, rank: int) -> Array:
    return resample_transposed(grad, _averagings(x.shape[x.ndim - rank :], grad.shape[grad.ndim - rank :]))


@lowering("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Array, output_size: Sequence[int]) -> Array:
    """self [(N,) C, H, W]: means over `output_size` windows that cover the plane."""
    return _adaptive_average(self, output_size, 2)


@lowering("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(self: Array, output_size: Sequence[int]) -> Array:
    return _adaptive_average(self, output_size, 3)


@lowering("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad_output: Array, self: Array) -> Array:
    return _adaptive_average_backward(grad_output, self, 2)


@lowering("_adaptive_avg_pool3d_backward")
def adaptive_avg_pool3d_backward(grad_output: Array, self: Array) -> Array:
    return _adaptive_average_backward(grad_output, self, 3)


def _max_over_starts(x: Array, starts: Sequence[np.ndarray | Array], lengths: Sequence[np.ndarray | int]) -> Pair:
    """Maxima over windows given by start (int[out], or per plane [..., out]) and length along each of the last dimensions.

    A window shorter than the longest repeats its last element, which changes neither maximum nor position.
    """
    values, flat, step = x, jnp.zeros(x.shape, jnp.int32), 1
    for axis, start, length in zip(range(x.ndim - 1, -1, -1), reversed(starts), reversed(lengths), strict=False):
        here = jnp.arange(values.shape[axis], dtype=jnp.int32).reshape((-1,) + (1,) * (x.ndim - axis - 1)) * step
        step *= values.shape[axis]
        positions = jnp.broadcast_to(flat + here, values.shape)
        best: Pair | None = None
        for i in range(int(np.max(length, initial=1))):
            index = start + np.minimum(i, np.asarray(length) - 1)
            candidate = _take(values, index, axis), _take(positions, index, axis)
            best = candidate if best is None else better(best, candidate)
        assert best is not None
        values, flat = best
    return values, flat


def _take(x: Array, index: np.ndarray | Array, axis: int) -> Array:
    """Elements along `axis`: the same for every plane (index of rank 1), or per plane (leading dimensions as x, one position per window)."""
    if index.ndim == 1:
        return jnp.take(x, jnp.asarray(index, jnp.int32), axis=axis, mode="clip")
    planes = index.ndim - 1
    shape = [1] * x.ndim
    shape[:planes], shape[axis] = index.shape[:planes], index.shape[-1]
    target = list(x.shape)
    target[axis] = index.shape[-1]
    return jnp.take_along_axis(x, jnp.broadcast_to(jnp.asarray(index, jnp.int32).reshape(shape), target), axis=axis, mode="clip")


def _adaptive_max(x: Array, output_size: Sequence[int], rank: int) -> Pair:
    sizes = x.shape[x.ndim - rank :]
    if all(n and m and n % m == 0 for n, m in zip(sizes, output_size, strict=True)):
        windows = [PoolWindow(n, n // m, n // m, 0, 1, m) for n, m in zip(sizes, output_size, strict=True)]
        values, flat = max_over_windows(x, windows)
    else:
        bounds = [_bounds(n, m) for n, m in zip(sizes, output_size, strict=True)]
        values, flat = _max_over_starts(x, [start for start, _ in bounds], [stop - start for start, stop in bounds])
    return values, flat.astype(jnp.int64)


@lowering("adaptive_max_pool2d")
def adaptive_max_pool2d(self: Array, output_size: Sequence[int]) -> Pair:
    """self [(N,) C, H, W]: maxima over `output_size` windows that cover the plane, and their flat positions in it (int64)."""
    return _adaptive_max(self, output_size, 2)


@lowering("adaptive_max_pool3d")
def adaptive_max_pool3d(self: Array, output_size: Sequence[int]) -> Pair:
    return _adaptive_max(self, output_size, 3)


@lowering("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(grad_output: Array, self: Array, indices: Array) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 2)


@lowering("adaptive_max_pool3d_backward")
def adaptive_max_pool3d_backward(grad_output: Array, self: Array, indices: Array) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 3)


def _fractional_starts(samples: Array, size: int, kernel: int, out: int) -> Array:
    """Pseudo-random window starts int32[..., out] from samples [...] in [0, 1) (Graham, "Fractional Max-Pooling", section 3.2)."""
    last = jnp.full((*samples.shape, 1), size - kernel, jnp.int32)
    if out == 1:
        return last
    samples = cast(samples, opmath(samples.dtype))[..., None]
    alpha = jnp.array((size - kernel) / (out - 1), samples.dtype)
    i = jnp.arange(out - 1, dtype=samples.dtype)
    starts = ((i + samples) * alpha).astype(jnp.int32) - (samples * alpha).astype(jnp.int32)
    return jnp.concatenate([starts, last], axis=-1)


def _fractional_max(x: Array, kernel: Sequence[int], output_size: Sequence[int], random_samples: Array, order: Sequence[int]) -> Pair:
    """`order` says which of the last dimension's samples belongs to which spatial dimension."""
    rank = len(order)
    sizes = x.shape[x.ndim - rank :]
    samples = random_samples.reshape(*x.shape[: x.ndim - rank], rank)
    starts = [_fractional_starts(samples[..., order[d]], sizes[d], kernel[d], output_size[d]) for d in range(rank)]
    values, flat = _max_over_starts(x, starts, list(kernel))
    return values, flat.astype(jnp.int64)


@lowering("fractional_max_pool2d")
def fractional_max_pool2d(self: Array, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Array) -> Pair:
    """self [(N,) C, H, W]; random_samples [N, C, 2] in [0, 1), the first for W."""
    return _fractional_max(self, kernel_size, output_size, random_samples, (1, 0))


@lowering("fractional_max_pool3d")
def fractional_max_pool3d(self: Array, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Array) -> Pair:
    """self [(N,) C, D, H, W]; random_samples [N, C, 3] in [0, 1)."""
    return _fractional_max(self, kernel_size, output_size, random_samples, (0, 1, 2))


@lowering("fractional_max_pool2d_backward")
def fractional_max_pool2d_backward(grad_output: Array, self: Array, kernel_size: Sequence[int], output_size: Sequence[int], indices: Array) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 2)


@lowering("fractional_max_pool3d_backward")
def fractional_max_pool3d_backward(grad_output: Array, self: Array, kernel_size: Sequence[int], output_size: Sequence[int], indices: Array) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 3)


def _unpool(x: Array, indices: Array, output_size: Sequence[int]) -> Array:
    rank = len(output_size)
    shape = (*x.shape[: x.ndim - rank], *output_size)
    empty = jnp.zeros(int(np.prod(shape)), x.dtype)
    return empty.at[flat_positions(indices, shape, rank)].set(x.reshape(-1), mode="drop").reshape(shape)


@lowering("max_unpool2d")
def max_unpool2d(self: Array, indices: Array, output_size: Sequence[int]) -> Array:
    """Zeros of `output_size` with each element of self [(N,) C, H, W] at the place `indices` names in its plane."""
    return _unpool(self, indices, output_size)


@lowering("max_unpool3d")
def max_unpool3d(self: Array, indices: Array, output_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> Array:
    return _unpool(self, indices, output_size)
