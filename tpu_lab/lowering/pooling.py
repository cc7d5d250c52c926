"""Max and average pooling over fixed windows, with gradients.

All of it works one dimension at a time: the maximum (or sum) over a box is that of its rows' maxima, the first position in row
order included. Measured on XLA:CPU that beats a `reduce_window` of pairs by 5-30 times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import cast, is_floating, opmath
from .registry import lowering

_MAX_UNROLLED = 32
"""Window lengths up to here become one comparison per position; longer ones one `reduce_window`, quicker to compile."""


@dataclass(frozen=True)
class PoolWindow:
    """A pooling window along one dimension of length `size`; `out` is the number of windows."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    out: int

    @property
    def padding_after(self) -> int:
        """What has to follow the input so that the last window is complete; negative if part of the input is not looked at."""
        return (self.out - 1) * self.stride + self.dilation * (self.kernel - 1) + 1 - self.size - self.padding

    @property
    def disjoint(self) -> bool:
        """True if the windows follow each other without overlap, gap or padding."""
        return self.padding == 0 and self.dilation == 1 and self.kernel == self.stride and self.padding_after <= 0


def pool_windows(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[PoolWindow]:
    """The windows per dimension; arguments of length 1 count for all dimensions, an empty stride is the kernel.

    In `ceil_mode` a last, incomplete window counts if it starts inside the input or the padding before it.
    """

    def expand(values: Sequence[int]) -> Sequence[int]:
        return tuple(values) * len(size) if len(values) == 1 else values

    windows = []
    for n, k, s, p, d in zip(size, *map(expand, (kernel, stride or kernel, padding, dilation)), strict=True):
        out = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (out - 1) * s >= n + p:
            out -= 1
        windows.append(PoolWindow(n, k, s, p, d, out))
    return windows


def lowest(dtype: np.dtype) -> Array:
    """The value no element of `dtype` is below."""
    if is_floating(dtype):
        return jnp.array(-np.inf, dtype)
    return jnp.array(False if dtype == np.bool_ else np.iinfo(dtype).min, dtype)


Pair = tuple[Array, Array]


def better(best: Pair, candidate: Pair) -> Pair:
    """The larger of two (value, position) pairs as PyTorch's pooling picks it: the earlier of equals, the later of two NaN."""
    takes = (candidate[0] > best[0]) | (candidate[0] != candidate[0])
    return jnp.where(takes, candidate[0], best[0]), jnp.where(takes, candidate[1], best[1])


def _better_in_any_order(a: Pair, b: Pair) -> Pair:
    """`better` for a reduction that keeps no order: positions decide what comes first."""
    a_nan, b_nan = a[0] != a[0], b[0] != b[0]
    tie = (a[0] == b[0]) | (a_nan & b_nan)
    takes = (b[0] > a[0]) | (b_nan & ~a_nan) | (tie & jnp.where(a_nan, b[1] > a[1], b[1] < a[1]))
    return jnp.where(takes, b[0], a[0]), jnp.where(takes, b[1], a[1])


def _along(values: Array, ndim: int, axis: int) -> Array:
    """A vector shaped to broadcast along `axis`."""
    return values.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _max_stage(values: Array, flat: Array | None, window: PoolWindow, axis: int, step: int) -> Pair:
    """The maxima over the windows along one axis. `flat` are positions found along later axes, `step` is what one step along this axis adds."""
    n = window.size
    pad = [(0, 0, 0)] * values.ndim
    pad[axis] = (window.padding, window.padding_after, 0)
    padded = lax.pad(values, lowest(values.dtype), pad)
    here = _along(jnp.arange(n, dtype=jnp.int32) * step, values.ndim, axis)
    positions = jnp.broadcast_to(here, values.shape) if flat is None else flat + here
    if window.kernel > _MAX_UNROLLED:
        dims, strides, dilation = [1] * values.ndim, [1] * values.ndim, [1] * values.ndim
        dims[axis], strides[axis], dilation[axis] = window.kernel, window.stride, window.dilation
        edges = [(0, 0)] * values.ndim
        edges[axis] = (window.padding, max(window.padding_after, 0))
        initial = (lowest(values.dtype), jnp.array(np.iinfo(np.int32).max, jnp.int32))
        out = lax.reduce_window((values, positions), initial, _better_in_any_order, dims, strides, edges, window_dilation=dilation)
        return lax.slice_in_dim(out[0], 0, window.out, axis=axis), lax.slice_in_dim(out[1], 0, window.out, axis=axis)
    # Padding loses against everything but a window of nothing but lowest values, which has to name its first real element.
    padded_positions = lax.pad(positions, jnp.array(0, jnp.int32), pad)
    best: Pair | None = None
    for i in range(window.kernel):
        start = i * window.dilation
        stop = start + (window.out - 1) * window.stride + 1
        candidate = (
            lax.slice_in_dim(padded, start, stop, window.stride, axis),
            lax.slice_in_dim(padded_positions, start, stop, window.stride, axis),
        )
        if best is None:
            best = candidate
            continue
        first_real = _first_real_position(window, i)
        if first_real.any():
            mask = _along(jnp.asarray(first_real), values.ndim, axis)
            best = best[0], jnp.where(mask, candidate[1], best[1])
        best = better(best, candidate)
    assert best is not None
    return best


def _first_real_position(window: PoolWindow, i: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each window: is its `i`-th position the first one inside the input?"""
    position = np.arange(window.out) * window.stride - window.padding + i * window.dilation
    return (position >= 0) & (position - window.dilation < 0)


def max_over_windows(x: Array, windows: Sequence[PoolWindow]) -> Pair:
    """Maxima over the last `len(windows)` dimensions and their positions in the flattened input plane (int32)."""
    values, flat, step = x, None, 1
    for axis, window in zip(range(x.ndim - 1, -1, -1), reversed(windows), strict=False):
        values, flat = _max_stage(values, flat, window, axis, step)
        step *= window.size
    assert flat is not None
    return values, flat


def flat_positions(indices: Array, shape: tuple[int, ...], rank: int) -> Array:
    """Positions in planes (the last `rank` dimensions of `shape`) as positions in the whole flattened array."""
    plane = math.prod(shape[len(shape) - rank :])
    planes = math.prod(shape[: len(shape) - rank])
    base = jnp.arange(planes, dtype=jnp.int64).reshape(*indices.shape[: indices.ndim - rank], *(1,) * rank) * plane
    return (base + indices.astype(jnp.int64)).reshape(-1)


def scatter_planes(grad: Array, indices: Array, shape: tuple[int, ...], rank: int) -> Array:
    """Adds each element of `grad` to the place `indices` names in its plane (the last `rank` dimensions) of zeros of `shape`."""
    work = opmath(grad.dtype)
    total = jnp.zeros(math.prod(shape), work).at[flat_positions(indices, shape, rank)].add(cast(grad.reshape(-1), work), mode="drop")
    return cast(total.reshape(shape), grad.dtype)


def _max_pool(
    x: Array, rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> Pair:
    windows = pool_windows(x.shape[x.ndim - rank :], kernel, stride, padding, dilation, ceil_mode)
    values, flat = max_over_windows(x, windows)
    return values, flat.astype(jnp.int64)


@lowering("max_pool2d_with_indices")
def max_pool2d_with_indices(
    self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> Pair:
    """self [(N,) C, H, W]: the maxima over windows and where they were in the flattened plane (int64)."""
    return _max_pool(self, 2, kernel_size, stride, padding, dilation, ceil_mode)


@lowering("max_pool3d_with_indices")
def max_pool3d_with_indices(
    self: Array, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> Pair:
    """self [(N,) C, D, H, W]: as `max_pool2d_with_indices`."""
    return _max_pool(self, 3, kernel_size, stride, padding, dilation, ceil_mode)


@lowering("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Array,
) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 2)


@lowering("max_pool3d_with_indices_backward")
def max_pool3d_with_indices_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Array,
) -> Array:
    return scatter_planes(grad_output, indices, self.shape, 3)


def _window_sum(x: Array, windows: Sequence[PoolWindow]) -> Array:
    """Sums over windows of the last dimensions, the padding counted as zero."""
    for axis, window in zip(range(x.ndim - len(windows), x.ndim), windows, strict=True):
        if window.disjoint:
            used = lax.slice_in_dim(x, 0, window.out * window.kernel, axis=axis)
            x = jnp.sum(used.reshape(*x.shape[:axis], window.out, window.kernel, *x.shape[axis + 1 :]), axis=axis + 1, dtype=x.dtype)
            continue
        pad = [(0, 0, 0)] * x.ndim
        pad[axis] = (window.padding, window.padding_after, 0)
        dims, strides = [1] * x.ndim, [1] * x.ndim
        dims[axis], strides[axis] = window.kernel, window.stride
        padded = lax.pad(x, jnp.zeros((), x.dtype), pad)
        x = lax.reduce_window(padded, np.zeros((), x.dtype), lax.add, dims, strides, "VALID")  # differentiable only from a concrete 0
    return x


def _divide_by_count(total: Array, windows: Sequence[PoolWindow], count_include_pad: bool, divisor_override: int | None) -> Array:
    """Each window's sum over its number of elements: those in input and padding, or in the input alone, or `divisor_override`."""
    divisor: Array | int
    if divisor_override is not None:
        divisor = divisor_override
    else:
        divisor = 1
        for axis, window in zip(range(total.ndim - len(windows), total.ndim), windows, strict=True):
            start = np.arange(window.out) * window.stride - window.padding
            stop = np.minimum(start + window.kernel, window.size + window.padding)
            if not count_include_pad:
                start, stop = np.maximum(start, 0), np.minimum(stop, window.size)
            counts = (stop - start).astype(np.int32)
            if counts.size and (counts == counts[0]).all():
                divisor = divisor * int(counts[0])
            else:
                divisor = divisor * _along(jnp.asarray(counts), total.ndim, axis)
    return lax.div(total, jnp.broadcast_to(jnp.asarray(divisor), total.shape).astype(total.dtype))


def _avg_pool(
    x: Array,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    windows = pool_windows(x.shape[x.ndim - rank :], kernel, stride, padding, (1,), ceil_mode)
    total = _window_sum(cast(x, opmath(x.dtype)), windows)
    return cast(_divide_by_count(total, windows, count_include_pad, divisor_override), x.dtype)


def _avg_pool_backward(
    grad: Array,
    x: Array,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    windows = pool_windows(x.shape[x.ndim - rank :], kernel, stride, padding, (1,), ceil_mode)
    share = _divide_by_count(cast(grad, opmath(grad.dtype)), windows, count_include_pad, divisor_override)
    primal = jax.ShapeDtypeStruct(x.shape, share.dtype)
    total: Array
    (total,) = jax.linear_transpose(lambda x: _window_sum(x, windows), primal)(share)
    return cast(total, grad.dtype)


@lowering("avg_pool2d")
def avg_pool2d(
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """self [(N,) C, H, W]: the means over windows; integers divide with truncation."""
    return _avg_pool(self, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lowering("avg_pool3d")
def avg_pool3d(
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """self [(N,) C, D, H, W]: as `avg_pool2d`."""
    return _avg_pool(self, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lowering("avg_pool2d_backward")
def avg_pool2d_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    return _avg_pool_backward(grad_output, self, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lowering("avg_pool3d_backward")
def avg_pool3d_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    return _avg_pool_backward(grad_output, self, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
