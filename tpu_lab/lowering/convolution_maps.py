"""The three linear maps every convolution is made of.

For x [N, C, *spatial], w [O, C / groups, *kernel] and y [N, O, *out]: `forward` (x, w to y), `input_gradient` (y, w to x; this is
what a transposed convolution is) and `weight_gradient` (x, y to w). Results have the accumulation dtype (`opmath`).

Measured on XLA:CPU against im2col, NHWC and one matmul per kernel position: its own convolution is the fastest for dense kernels
with overlap; a matmul for kernels that tile the input (1x1, patch embeddings: 2-6 times); for groups, one convolution per
group while they are few, else sums over the kernel's positions (depthwise: 40 times). The forms for groups are taken on CPU
only, other platforms get the grouped convolution itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import matmul_precision, widened
from .promotion import opmath

_MAX_SPLIT_GROUPS = 8
_MAX_POSITIONS = 64
"""Beyond these numbers programs get long to compile: groups turned into one convolution each, kernel positions turned into one product each."""


_Map = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Window:
    """What a convolution's kernel does per spatial dimension (`torch.nn.Conv2d`'s arguments) and the number of channel groups."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, rank: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> Window:
        """A window over `rank` dimensions; a sequence of length 1 counts for all of them."""

        def expand(values: Sequence[int]) -> tuple[int, ...]:
            return tuple(values) * rank if len(values) == 1 else tuple(values)

        return cls(expand(stride), expand(padding), expand(dilation), groups)

    def output_size(self, size: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """The spatial size of the forward result."""
        terms = zip(size, kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in terms)

    def transposed_size(self, size: Sequence[int], kernel: Sequence[int], output_padding: Sequence[int]) -> tuple[int, ...]:
        """The spatial size of a transposed convolution's result."""
        extra = tuple(output_padding) * len(size) if len(output_padding) == 1 else output_padding
        terms = zip(size, kernel, self.stride, self.padding, self.dilation, extra, strict=True)
        return tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + e for n, k, s, p, d, e in terms)

    def tiles(self, kernel: Sequence[int]) -> bool:
        """True if no input element meets two kernel positions and nothing is padded: the convolution is one matmul."""
        whole = all(k == 1 or (k == s and d == 1) for k, s, d in zip(kernel, self.stride, self.dilation, strict=True))
        return whole and self.groups == 1 and not any(self.padding)


def _numbers(rank: int, lhs: str = "NC", rhs: str = "OI", out: str = "NC") -> lax.ConvDimensionNumbers:
    """Dimension numbers by the order of the two leading dimensions of each operand; the spatial ones follow them."""
    spatial = tuple(range(2, 2 + rank))
    one, other = (0, 1, *spatial), (1, 0, *spatial)
    return lax.ConvDimensionNumbers(one if lhs == "NC" else other, one if rhs == "OI" else other, one if out == "NC" else other)


def _dense_forward(x: Array, w: Array, window: Window) -> Array:
    return lax.conv_general_dilated(
        x,
        w,
        window.stride,
        [(p, p) for p in window.padding],
        rhs_dilation=window.dilation,
        dimension_numbers=_numbers(x.ndim - 2),
        feature_group_count=window.groups,
        precision=matmul_precision(x.dtype),
        preferred_element_type=opmath(x.dtype),
    )


def _flipped(w: Array, groups: int) -> Array:
    """The kernel of the transposed convolution: reversed in space, input and output channels exchanged within each group."""
    reverse = jnp.flip(w, tuple(range(2, w.ndim)))
    swapped = reverse.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
    return swapped.reshape(groups * w.shape[1], w.shape[0] // groups, *w.shape[2:])


def _dense_input_gradient(y: Array, w: Array, window: Window, size: Sequence[int]) -> Array:
    """The transposed convolution: y with `stride - 1` holes between its elements, against the flipped kernel, channels swapped per group."""
    kernel = w.shape[2:]
    padding = []
    for n, m, k, s, p, d in zip(size, y.shape[2:], kernel, window.stride, window.padding, window.dilation, strict=True):
        reach = d * (k - 1)
        low = reach - p
        padding.append((low, n + reach - ((m - 1) * s + 1) - low))
    return lax.conv_general_dilated(
        y,
        _flipped(w, window.groups),
        (1,) * len(kernel),
        padding,
        lhs_dilation=window.stride,
        rhs_dilation=window.dilation,
        dimension_numbers=_numbers(len(kernel)),
        feature_group_count=window.groups,
        precision=matmul_precision(y.dtype),
        preferred_element_type=opmath(y.dtype),
    )


def _dense_weight_gradient(x: Array, y: Array, window: Window, kernel: Sequence[int]) -> Array:
    """A convolution of x by y in which channels and batch have changed places; stride and dilation change places too."""
    padding = []
    for n, m, k, s, p, d in zip(x.shape[2:], y.shape[2:], kernel, window.stride, window.padding, window.dilation, strict=True):
        padding.append((p, d * (k - 1) + (m - 1) * s + 1 - n - p))
    return lax.conv_general_dilated(
        x,
        y,
        window.dilation,
        padding,
        rhs_dilation=window.stride,
        dimension_numbers=_numbers(len(kernel), "CN", "IO", "CN"),
        batch_group_count=window.groups,
        precision=matmul_precision(x.dtype),
        preferred_element_type=opmath(x.dtype),
    )


def _to_tiles(x: Array, kernel: Sequence[int], window: Window, out: Sequence[int]) -> Array:
    """x [N, C, *spatial] as [N, C * prod(kernel), prod(out)], for a window that `tiles` its input."""
    rank = len(kernel)
    step = tuple(s if k == 1 else 1 for k, s in zip(kernel, window.stride, strict=True))
    used = tuple(m * k if k > 1 else (m - 1) * s + 1 for m, k, s in zip(out, kernel, window.stride, strict=True))
    x = lax.slice(x, (0,) * x.ndim, (*x.shape[:2], *used), (1, 1, *step))
    x = x.reshape(*x.shape[:2], *(n for pair in zip(out, kernel, strict=True) for n in pair))
    order = (0, 1, *range(3, 3 + 2 * rank, 2), *range(2, 2 + 2 * rank, 2))
    return x.transpose(order).reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out))


def _from_tiles(tiles: Array, channels: int, kernel: Sequence[int], window: Window, out: Sequence[int], size: Sequence[int]) -> Array:
    """The transpose of `_to_tiles`: back to [N, channels, *size], zero where no window looks."""
    rank = len(kernel)
    x = tiles.reshape(tiles.shape[0], channels, *kernel, *out)
    order = (0, 1, *(d for i in range(rank) for d in (2 + rank + i, 2 + i)))
    x = x.transpose(order).reshape(tiles.shape[0], channels, *(m * k for m, k in zip(out, kernel, strict=True)))
    padding = [(0, 0, 0), (0, 0, 0)]
    for n, m, k, s in zip(size, out, kernel, window.stride, strict=True):
        holes = s - 1 if k == 1 else 0
        padding.append((0, n - (m * k + (m * k - 1) * holes), holes))
    return lax.pad(x, jnp.zeros((), x.dtype), padding)


def _batched_dot(a: Array, b: Array, contract: tuple[int, int]) -> Array:
    """Matmul over the batch dimension 0; an operand without it (rank 2) is repeated, which XLA:CPU multiplies faster than a transposed product."""
    if a.ndim == 2:
        a = jnp.broadcast_to(a, (b.shape[0], *a.shape))
    numbers = (((contract[0],), (contract[1],)), ((0,), (0,)))
    return lax.dot_general(a, b, numbers, matmul_precision(b.dtype), opmath(b.dtype))


def forward(x: Array, w: Array, window: Window) -> Array:
    """The convolution of x by w."""
    kernel = w.shape[2:]
    out = window.output_size(x.shape[2:], kernel)
    if window.tiles(kernel) and x.size and w.size:
        y = _batched_dot(w.reshape(w.shape[0], -1), _to_tiles(x, kernel, window, out), (2, 1))
        return y.reshape(x.shape[0], w.shape[0], *out)

    def dense(x: Array, w: Array) -> Array:
        return _dense_forward(x, w, window)

    def split(x: Array, w: Array) -> Array:
        single = replace(window, groups=1)
        return _per_group(lambda x, w: forward(x, w, single), window.groups, (x, 1), (w, 0), 1)

    def positions(x: Array, w: Array) -> Array:
        return _position_forward(widened(x), widened(w), window)

    return _by_platform(window, w, dense, split, positions)(x, w)


def input_gradient(y: Array, w: Array, window: Window, size: Sequence[int]) -> Array:
    """The transpose of `forward` in x, whose spatial size is `size`."""
    kernel = w.shape[2:]
    if window.tiles(kernel) and y.size and w.size:
        tiles = _batched_dot(w.reshape(w.shape[0], -1), y.reshape(*y.shape[:2], -1), (1, 1))
        return _from_tiles(tiles, w.shape[1], kernel, window, y.shape[2:], size)

    def dense(y: Array, w: Array) -> Array:
        return _dense_input_gradient(y, w, window, size)

    def split(y: Array, w: Array) -> Array:
        single = replace(window, groups=1)
        return _per_group(lambda y, w: input_gradient(y, w, single, size), window.groups, (y, 1), (w, 0), 1)

    mirrored = replace(window, padding=tuple(d * (k - 1) - p for d, k, p in zip(window.dilation, kernel, window.padding, strict=True)))
    without_holes = all(s == 1 for s in window.stride) and min(mirrored.padding, default=0) >= 0

    def positions(y: Array, w: Array) -> Array:
        if without_holes and mirrored.output_size(y.shape[2:], kernel) == tuple(size):
            return _position_forward(widened(y), widened(_flipped(w, window.groups)), mirrored)
        x = _spec((y.shape[0], w.shape[1] * window.groups, *size), opmath(y.dtype))
        grad: Array
        (grad,) = jax.linear_transpose(lambda x: _position_forward(x, widened(w), window), x)(widened(y))
        return grad

    return _by_platform(window, w, dense, split, positions)(y, w)


def weight_gradient(x: Array, y: Array, window: Window, kernel: Sequence[int]) -> Array:
    """The transpose of `forward` in w, whose spatial size is `kernel`."""
    w = _spec((y.shape[1], x.shape[1] // window.groups, *kernel), opmath(x.dtype))
    if window.tiles(kernel) and y.size and x.size:
        tiles = _to_tiles(x, kernel, window, y.shape[2:])
        numbers = (((0, 2), (0, 2)), ((), ()))
        flat = y.reshape(*y.shape[:2], -1)
        return lax.dot_general(flat, tiles, numbers, matmul_precision(x.dtype), opmath(x.dtype)).reshape(w.shape)

    def dense(x: Array, y: Array) -> Array:
        return _dense_weight_gradient(x, y, window, kernel)

    def split(x: Array, y: Array) -> Array:
        single = replace(window, groups=1)
        return _per_group(lambda x, y: weight_gradient(x, y, single, kernel), window.groups, (x, 1), (y, 1), 0)

    def positions(x: Array, y: Array) -> Array:
        grad: Array
        (grad,) = jax.linear_transpose(lambda w: _position_forward(widened(x), w, window), w)(widened(y))
        return grad

    return _by_platform(window, w, dense, split, positions)(x, y)


def _by_platform(window: Window, w: Array | jax.ShapeDtypeStruct, dense: _Map, split: _Map, positions: _Map) -> _Map:
    """Which form of a map to use; w gives the shape of the weight."""
    if window.groups == 1:
        return dense
    depthwise = w.shape[1] == 1
    if window.groups <= _MAX_SPLIT_GROUPS and not depthwise:
        on_cpu = split
    elif math.prod(w.shape[2:]) <= _MAX_POSITIONS and w.size:
        on_cpu = positions
    else:
        return dense
    return lambda a, b: lax.platform_dependent(a, b, cpu=on_cpu, default=dense)


def _per_group(function: _Map, groups: int, a: tuple[Array, int], b: tuple[Array, int], out_axis: int) -> Array:
    """`function` of each group's parts, joined along `out_axis`; operands come with the axis that holds their channels."""
    parts = zip(jnp.split(a[0], groups, a[1]), jnp.split(b[0], groups, b[1]), strict=True)
    return jnp.concatenate([function(*part) for part in parts], axis=out_axis)


def _spec(shape: tuple[int, ...], dtype: np.dtype) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _position_forward(x: Array, w: Array, window: Window) -> Array:
    """A grouped convolution as a sum over the kernel's positions: a product per channel if depthwise, else a matmul per group."""
    groups, kernel = window.groups, w.shape[2:]
    out = window.output_size(x.shape[2:], kernel)
    padded = jnp.pad(x, [(0, 0), (0, 0), *((p, p) for p in window.padding)])
    by_group = w.reshape(groups, w.shape[0] // groups, w.shape[1], math.prod(kernel))
    total: Array | None = None
    for index in range(math.prod(kernel)):
        position = _unravel(index, kernel)
        start = [i * d for i, d in zip(position, window.dilation, strict=True)]
        stop = [b + (m - 1) * s + 1 for b, m, s in zip(start, out, window.stride, strict=True)]
        seen = lax.slice(padded, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *window.stride))
        seen = seen.reshape(x.shape[0], groups, w.shape[1], math.prod(out))
        factor = by_group[..., index]
        if w.shape[1] == 1:
            term = seen * factor
        else:
            repeated = jnp.broadcast_to(factor, (x.shape[0], *factor.shape))
            term = lax.dot_general(repeated, seen, (((3,), (2,)), ((0, 1), (0, 1))), matmul_precision(x.dtype))
        total = term if total is None else total + term
    assert total is not None
    return total.reshape(x.shape[0], w.shape[0], *out)


def _unravel(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The position of flat `index` in `shape`, row by row."""
    position = []
    for n in reversed(shape):
        position.append(index % n)
        index //= n
    return tuple(reversed(position))
