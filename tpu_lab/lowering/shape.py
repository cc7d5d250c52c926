"""Joining, padding, repeating and reordering elements: cat, stack, pad, flip, roll, repeat, tril, pixel shuffle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import Array, lax

from .axes import axis_of, positions, with_axis
from .indexing import value_as
from .promotion import Number, cast, result_dtype
from .registry import lowering


@lowering("cat")
def cat(tensors: Sequence[Array], dim: int) -> Array:
    """Dtypes are promoted; 1-d tensors without elements join tensors of any shape, as they do in PyTorch."""
    common = result_dtype(*tensors)
    parts = [t for t in tensors if t.shape != (0,)] or list(tensors[:1])
    return lax.concatenate([cast(t, common) for t in parts], axis_of(dim, parts[0].ndim))


@lowering("stack", "_stack")
def stack(tensors: Sequence[Array], dim: int) -> Array:
    axis = axis_of(dim, tensors[0].ndim + 1)
    common = result_dtype(*tensors)
    return lax.concatenate([lax.expand_dims(cast(t, common), (axis,)) for t in tensors], axis)


@lowering("constant_pad_nd")
def constant_pad_nd(self: Array, pad: Sequence[int], value: Number) -> Array:
    """`pad` holds (before, after) pairs from the last dim on; negative ones crop."""
    config = [(0, 0, 0)] * self.ndim
    for i in range(len(pad) // 2):
        config[self.ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1], 0)
    return lax.pad(self, value_as(value, np.dtype(self.dtype)), config)


@lowering("flip")
def flip(self: Array, dims: Sequence[int]) -> Array:
    return lax.rev(self, tuple({axis_of(d, self.ndim) for d in dims})) if self.ndim else self


@lowering("roll")
def roll(self: Array, shifts: int | Sequence[int], dims: int | Sequence[int]) -> Array:
    """Without dims the elements are rolled in flat order."""
    steps = [shifts] if isinstance(shifts, int) else list(shifts)
    along = [dims] if isinstance(dims, int) else list(dims)
    if not along:
        return _rolled(self.reshape(-1), steps[0], 0).reshape(self.shape)
    out = self
    for shift, dim in zip(steps, along, strict=True):
        out = _rolled(out, shift, axis_of(dim, self.ndim))
    return out


def _rolled(array: Array, shift: int, axis: int) -> Array:
    length = array.shape[axis] if array.ndim else 0
    cut = -shift % length if length else 0
    if cut == 0:
        return array
    return lax.concatenate([lax.slice_in_dim(array, cut, length, axis=axis), lax.slice_in_dim(array, 0, cut, axis=axis)], axis)


@lowering("rot90")
def rot90(self: Array, k: int, dims: Sequence[int]) -> Array:
    first, second = (axis_of(d, self.ndim) for d in dims)
    turns = k % 4
    if turns == 0:
        return self
    if turns == 2:
        return lax.rev(self, (first, second))
    order = list(range(self.ndim))
    order[first], order[second] = second, first
    return lax.transpose(lax.rev(self, (second,)), order) if turns == 1 else lax.rev(lax.transpose(self, order), (second,))


@lowering("repeat")
def repeat(self: Array, repeats: Sequence[int]) -> Array:
    array = self.reshape([1] * (len(repeats) - self.ndim) + list(self.shape))
    doubled = [n for r, m in zip(repeats, array.shape, strict=True) for n in (r, m)]
    spread = lax.broadcast_in_dim(array, doubled, range(1, 2 * array.ndim, 2))
    return spread.reshape([r * m for r, m in zip(repeats, array.shape, strict=True)])


@lowering("repeat_interleave.self_int")
def repeat_interleave(self: Array, repeats: int, dim: int | None, *, output_size: int | None) -> Array:
    array = self.reshape(-1) if dim is None else with_axis(self)
    axis = 0 if dim is None else axis_of(dim, self.ndim)
    shape = (*array.shape[: axis + 1], repeats, *array.shape[axis + 1 :])
    spread = lax.broadcast_in_dim(array, shape, [d for d in range(len(shape)) if d != axis + 1])
    return spread.reshape([n * repeats if d == axis else n for d, n in enumerate(array.shape)])


def _triangle(self: Array, diagonal: int, upper: bool) -> Array:
    rows, columns = positions(self.shape, self.ndim - 2), positions(self.shape, self.ndim - 1)
    distance = columns - rows
    limit = lax.full_like(distance, max(-(2**31), min(diagonal, 2**31 - 1)))
    return lax.select(lax.ge(distance, limit) if upper else lax.le(distance, limit), self, lax.full_like(self, 0))


@lowering("tril")
def tril(self: Array, diagonal: int) -> Array:
    return _triangle(self, diagonal, upper=False)


@lowering("triu")
def triu(self: Array, diagonal: int) -> Array:
    return _triangle(self, diagonal, upper=True)


@lowering("pixel_shuffle")
def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    """(*, C r^2, H, W) to (*, C, H r, W r)."""
    *lead, channels, height, width = self.shape
    r, n = upscale_factor, len(lead)
    blocks = self.reshape(*lead, channels // r**2, r, r, height, width)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return lax.transpose(blocks, order).reshape(*lead, channels // r**2, height * r, width * r)


@lowering("pixel_unshuffle")
def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    """(*, C, H r, W r) to (*, C r^2, H, W)."""
    *lead, channels, height, width = self.shape
    r, n = downscale_factor, len(lead)
    blocks = self.reshape(*lead, channels, height // r, r, width // r, r)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return lax.transpose(blocks, order).reshape(*lead, channels * r**2, height // r, width // r)


@lowering("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(self: Array, groups: int) -> Array:
    batch, channels, *rest = self.shape
    blocks = self.reshape(batch, groups, channels // groups, *rest)
    return lax.transpose(blocks, [0, 2, 1, *range(3, blocks.ndim)]).reshape(self.shape)
