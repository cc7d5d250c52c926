"""Writing into a view of a value, and the gradients of views: the value anew with one slice, diagonal or window replaced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import Array, lax

from . import strided
from .axes import axis_of, positions
from .promotion import cast, opmath
from .registry import lowering
from .view import diagonal_length, slice_range


def _blank(like: Array, sizes: Sequence[int]) -> Array:
    return lax.full(tuple(sizes), 0, like.dtype)


@lowering("slice_scatter")
def slice_scatter(self: Array, src: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    axis = axis_of(dim, self.ndim)
    first, _, count = slice_range(self.shape[axis], start, end, step)
    src = cast(src, self.dtype)
    if count == 0 or self.size == 0:
        return self
    if step == 1:
        return lax.dynamic_update_slice_in_dim(self, src, np.int32(first), axis)
    spread = _between(src, self.shape[axis], axis, first, step)
    here = positions(self.shape, axis) - np.int32(first)
    inside = (here >= 0) & (here < count * step) & (lax.rem(here, np.int32(step)) == 0)
    return lax.select(inside, spread, self)


def _between(src: Array, length: int, axis: int, first: int, step: int) -> Array:
    """`src` spread out along `axis` at `first`, `first + step`, ..., with zeros elsewhere."""
    covered = first + (src.shape[axis] - 1) * step + 1
    return lax.pad(src, src.dtype.type(0), [(first, length - covered, step - 1) if d == axis else (0, 0, 0) for d in range(src.ndim)])


@lowering("slice_backward")
def slice_backward(grad_output: Array, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Array:
    axis = axis_of(dim, len(input_sizes))
    first, _, count = slice_range(input_sizes[axis], start, end, step)
    if count == 0 or grad_output.size == 0:
        return _blank(grad_output, input_sizes)
    return _between(grad_output, input_sizes[axis], axis, first, step)


@lowering("select_scatter")
def select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    axis = axis_of(dim, self.ndim)
    row = lax.expand_dims(cast(src, self.dtype), (axis,))
    return lax.dynamic_update_slice_in_dim(self, row, np.int32(index % self.shape[axis]), axis) if self.size else self


@lowering("select_backward")
def select_backward(grad_output: Array, input_sizes: Sequence[int], dim: int, index: int) -> Array:
    axis = axis_of(dim, len(input_sizes))
    row = lax.expand_dims(grad_output, (axis,))
    return _between(row, input_sizes[axis], axis, index % input_sizes[axis], 1) if grad_output.size else _blank(grad_output, input_sizes)


def _on_diagonal(src: Array, sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> tuple[Array, Array]:
    """`src` spread over the shape so that each element of the diagonal sees its own, and where the diagonal is."""
    first, second = axis_of(dim1, len(sizes)), axis_of(dim2, len(sizes))
    rest = [d for d in range(len(sizes)) if d not in (first, second)]
    rows = sizes[first]
    aligned = lax.pad(src, src.dtype.type(0), [(0, 0, 0)] * len(rest) + [(max(0, -offset), rows - max(0, -offset) - src.shape[-1], 0)])
    spread = lax.broadcast_in_dim(_sorted_axes(aligned, [*rest, first]), tuple(sizes), sorted([*rest, first]))
    return spread, positions(sizes, second) - positions(sizes, first) == offset


def _sorted_axes(array: Array, names: Sequence[int]) -> Array:
    """Transposes so that the dims called `names` come in rising order."""
    return lax.transpose(array, sorted(range(array.ndim), key=lambda d: names[d]))


@lowering("diagonal_scatter")
def diagonal_scatter(self: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    if src.size == 0:
        return self
    spread, here = _on_diagonal(cast(src, self.dtype), self.shape, offset, dim1, dim2)
    return lax.select(here, spread, self)


@lowering("diagonal_backward")
def diagonal_backward(grad_output: Array, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Array:
    return diagonal_scatter(_blank(grad_output, input_sizes), grad_output, offset, dim1, dim2)


@lowering("diag_embed")
def diag_embed(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Square matrices over the new dims `dim1` and `dim2`, with the last dim of `self` on the given diagonal."""
    ndim, side = self.ndim + 1, self.shape[-1] + abs(offset)
    first, second = axis_of(dim1, ndim), axis_of(dim2, ndim)
    lead = iter(self.shape[:-1])
    sizes = [side if d in (first, second) else next(lead) for d in range(ndim)]
    assert diagonal_length(side, side, offset) == self.shape[-1]
    return diagonal_backward(self, sizes, offset, first, second)


@lowering("as_strided_scatter")
def as_strided_scatter(self: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Array:
    return strided.write(self.reshape(-1), size, stride, storage_offset or 0, cast(src, self.dtype)).reshape(self.shape)


_SHIFTS = 16
"""Windows up to this size are summed as that many shifted arrays in one kernel; larger ones are scattered."""


@lowering("unfold_backward")
def unfold_backward(grad_in: Array, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Array:
    """Each element's gradient is the sum over the windows that hold it."""
    if grad_in.size == 0:
        return _blank(grad_in, input_sizes)
    windows = cast(grad_in, opmath(grad_in.dtype))
    if not input_sizes:
        return cast(lax.reduce_sum(windows, (0,)), grad_in.dtype)
    axis, last = axis_of(dim, len(input_sizes)), grad_in.ndim - 1
    total = _blank(windows, input_sizes)
    if size <= _SHIFTS:
        for at in range(size):
            total = total + _between(lax.index_in_dim(windows, at, last, keepdims=False), input_sizes[axis], axis, at, step)
        return cast(total, grad_in.dtype)
    places = (grad_in.shape[axis], size)
    place = positions(places, 0) * np.int32(step) + positions(places, 1)
    windows = lax.transpose(windows, [*range(axis + 1), last, *range(axis + 1, last)])
    total = total.at[(*[slice(None)] * axis, place)].add(windows, mode="promise_in_bounds", wrap_negative_indices=False)
    return cast(total, grad_in.dtype)
