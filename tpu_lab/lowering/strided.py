"""Strided views of a storage: reading one, writing one, and the storage that a result needs.

A storage is one flat array. A view of it (size, stride, offset as in `torch.as_strided`, all in elements) is said in
reshape, slice, transpose and broadcast, because XLA fuses those into their consumers; a gather or scatter is the last
resort. Sizes and strides are part of the program, the offset may be a run-time number.

How a view is taken apart: dims of size 1 say nothing, dims of stride 0 are broadcasts, the rest is sorted by falling
stride and dims that continue each other are merged. What remains is read dim by dim, outermost first: a dim (size, stride)
is a *window* of `size * stride` elements seen as `size` rows of `stride` elements, in which the inner dims lie. A window
that would leave the storage starts earlier, and the inner dims later; so no assumption on the offset is needed. Where the
storage is a whole number of rows and the view stays within them (`is_aligned`), all dims become one slice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array, lax

Dims = tuple[tuple[int, int], ...]
"""(size, stride) of each dim, by falling stride."""

_PIECES = 32
"""Up to so many slices are concatenated to read an overlapping view; beyond that a gather is cheaper."""


def is_whole(n: int, size: Sequence[int], stride: Sequence[int], offset: int) -> bool:
    """True if the view is all `n` elements of its storage in order: reading it is a reshape, writing it forgets the old storage."""
    if offset != 0 or math.prod(size) != n:
        return False
    step = 1
    for length, distance in zip(reversed(size), reversed(stride), strict=True):
        if length != 1 and distance != step and n:
            return False
        step *= length
    return True


def is_aligned(n: int, size: Sequence[int], stride: Sequence[int], offset: int) -> bool:
    """True if the view is a box in some row-major shape of its storage, as every slice of a contiguous tensor is.

    Such a view can be written as one in-place slice; who gives a run-time offset to `read` or `write` may promise it there.
    """
    rooms = _rooms(n, tuple(size), tuple(stride))
    if rooms is None:
        return False
    for step, room in rooms:
        at, offset = divmod(offset, step)
        if at > room:
            return False
    return True


def read(storage: Array, size: Sequence[int], stride: Sequence[int], offset: int | Array, *, aligned: bool = False, fenced: bool = False) -> Array:
    """The elements of a view, as an array of shape `size`.

    `storage` is flat. `offset` is an int or a 0-d int64 array; the view has to lie within the storage. `aligned` promises
    `is_aligned` for a run-time offset (for an int it is found out here). `fenced` puts optimization barriers around the
    transpose of a view whose last dim is not the innermost one: XLA:CPU copies such a view in tiles only where nothing is
    fused with the transpose (1024 x 1024 floats: 0.24 instead of 3.5 ms), and keeps barriers only if the program is
    compiled with `xla_disable_hlo_passes=cse_barrier_expander`.
    """
    size, stride = tuple(size), tuple(stride)
    if 0 in size:
        return lax.full(size, 0, storage.dtype)
    form = _form(size, stride)
    aligned = aligned or (isinstance(offset, int) and is_aligned(storage.shape[0], size, stride, offset))
    shape = _frame(storage.shape[0], form.dims) if aligned else None
    if shape is not None:
        core = _slice(storage.reshape(shape), _starts(offset, shape, _box(form.dims)), _box(form.dims))
    elif _pieces(form.dims) <= _PIECES:
        core = _read_dims(storage, form.dims, offset)
    else:
        core = _gather(storage, form.dims, offset)
    core = core.reshape([size[d] for d in form.order])
    if form.permutation != tuple(range(core.ndim)):
        fenced = fenced and form.permutation[-1] != core.ndim - 1
        core = lax.transpose(_fence(core) if fenced else core, form.permutation)
        core = _fence(core) if fenced else core
    if form.expanded:
        return lax.broadcast_in_dim(core, size, sorted(form.order))
    return core.reshape(size)


def write(storage: Array, size: Sequence[int], stride: Sequence[int], offset: int | Array, value: Array, *, aligned: bool = False) -> Array:
    """The flat storage after `value` (shape `size`, the storage's dtype) was written through a view; other elements keep their values.

    Where several positions of the view are one element, the last of them in row-major order is kept. `offset` and
    `aligned` as in `read`.
    """
    size, stride = tuple(size), tuple(stride)
    if 0 in size:
        return storage
    form = _form(size, stride)
    if form.expanded:
        value = lax.slice(value, [n - 1 if s == 0 else 0 for n, s in zip(size, stride, strict=True)], size)
    core = value.reshape([size[d] for d in sorted(form.order)])
    inverse = tuple(np.argsort(form.permutation)) if form.order else ()
    if inverse != tuple(range(core.ndim)):
        core = lax.transpose(core, inverse)
    core = core.reshape([length for length, _ in form.dims])
    aligned = aligned or (isinstance(offset, int) and is_aligned(storage.shape[0], size, stride, offset))
    shape = _frame(storage.shape[0], form.dims) if aligned else None
    if shape is not None:
        box = _box(form.dims)
        return _update(storage.reshape(shape), core.reshape(box), _starts(offset, shape, box)).reshape(storage.shape)
    if _pieces(form.dims) == 1:
        return _write_dims(storage, form.dims, offset, core)
    return _scatter(storage, [(size[d], stride[d]) for d in sorted(form.order)], offset, value)


def lay_out(value: Array, stride: Sequence[int]) -> Array:
    """The shortest flat storage in which a tensor of `value`'s shape, these strides and offset 0 reads as `value`; holes are 0."""
    length = 0 if 0 in value.shape else 1 + sum((n - 1) * s for n, s in zip(value.shape, stride, strict=True))
    if is_whole(length, value.shape, stride, 0):
        return value.reshape(length)
    return write(lax.full((length,), 0, value.dtype), value.shape, stride, 0, value)


def reinterpret(storage: Array, dtype: Any, count: int | None = None) -> Array:
    """The bytes of a flat storage as a flat array of another dtype (`Tensor.view(dtype)`), little-endian.

    A last item that the bytes only begin is filled up with zeros; `count` cuts the result to so many elements, which the way
    back from such a filled-up array needs. A byte read as bool is True if it is not 0: bytes but 0 and 1 do not survive that.
    """
    items = _reinterpret(storage, np.dtype(dtype))
    return items if count is None else _slice(items, (0,), (count,))


def _reinterpret(storage: Array, dtype: np.dtype[Any]) -> Array:
    if storage.dtype == dtype:
        return storage
    if storage.dtype == np.bool_:
        storage = lax.convert_element_type(storage, np.uint8)
    elif np.issubdtype(storage.dtype, np.complexfloating):
        parts = [lax.expand_dims(part, (1,)) for part in (lax.real(storage), lax.imag(storage))]
        storage = lax.concatenate(parts, 1).reshape(-1)
    if dtype == np.bool_:
        return lax.ne(_bitcast(storage, np.dtype(np.uint8)), np.uint8(0))
    if np.issubdtype(dtype, np.complexfloating):
        pairs = _bitcast(storage, np.dtype(f"f{dtype.itemsize // 2}"))
        pairs = _pad_last(pairs, pairs.size + pairs.size % 2).reshape(-1, 2)
        real, imag = (lax.slice(pairs, (0, i), (pairs.shape[0], i + 1)).reshape(-1) for i in (0, 1))
        return lax.complex(real, imag)
    return _bitcast(storage, dtype)


def _bitcast(storage: Array, dtype: np.dtype[Any]) -> Array:
    ratio = dtype.itemsize // storage.dtype.itemsize
    if ratio > 1:
        storage = _pad_last(storage, -(-storage.size // ratio) * ratio).reshape(-1, ratio)
    return lax.bitcast_convert_type(storage, dtype).reshape(-1)


@dataclass(frozen=True)
class _Form:
    """A view taken apart: the merged dims; which dims of the view they are, by falling stride; how those are permuted; is any broadcast."""

    dims: Dims
    order: tuple[int, ...]
    permutation: tuple[int, ...]
    expanded: bool


@functools.lru_cache(maxsize=4096)
def _form(size: tuple[int, ...], stride: tuple[int, ...]) -> _Form:
    order = sorted((d for d in range(len(size)) if size[d] != 1 and stride[d] != 0), key=lambda d: -stride[d])
    dims: list[tuple[int, int]] = []
    for d in order:
        if dims and dims[-1][1] == size[d] * stride[d]:
            dims[-1] = (dims[-1][0] * size[d], stride[d])
        else:
            dims.append((size[d], stride[d]))
    permutation = tuple(order.index(d) for d in sorted(order))
    return _Form(tuple(dims), tuple(order), permutation, any(n != 1 and s == 0 for n, s in zip(size, stride, strict=True)))


def _extent(dims: Dims) -> int:
    """How many elements lie between the first and the last one, both included."""
    return 1 + sum((n - 1) * s for n, s in dims)


def _pieces(dims: Dims) -> int:
    """How many non-overlapping views it takes to say this one: 1 if every dim's stride is at least the extent of the dims within it."""
    if len(dims) < 2:
        return 1
    if dims[0][1] >= _extent(dims[1:]):
        return _pieces(dims[1:])
    count, chunk = _cut(dims)
    if chunk == 0:
        return count * _pieces(dims[1:])
    whole = count - 1 if dims[1][0] % chunk else count
    rest = (dims[0], (dims[1][0] - whole * chunk, dims[1][1]), *dims[2:])
    return whole * _pieces((dims[0], (chunk, dims[1][1]), *dims[2:])) + (_pieces(rest) if whole < count else 0)


def _cut(dims: Dims) -> tuple[int, int]:
    """How to take the first two, overlapping dims apart: (number of pieces, steps of the second dim in each; 0: one piece per step of the first)."""
    (size, stride), (inner_size, inner_stride) = dims[:2]
    innermost = _extent(dims[2:])
    chunk = (stride - innermost) // inner_stride + 1 if stride >= innermost else 0
    if chunk == 0 or -(-inner_size // chunk) > size:
        return size, 0
    return -(-inner_size // chunk), chunk


def _frame(n: int, dims: Dims) -> tuple[int, ...] | None:
    """The row-major shape of `n` elements in which each of `dims` steps along one axis; the last axis is what the last dim steps over."""
    shape: list[int] = []
    above = n
    for _, stride in dims:
        if above % stride:
            return None
        shape.append(above // stride)
        above = stride
    return (*shape, above)


@functools.lru_cache(maxsize=4096)
def _rooms(n: int, size: tuple[int, ...], stride: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """For each dim of the frame: its stride, and how far along it the view may start."""
    dims = _form(size, stride).dims
    shape = _frame(n, dims)
    return None if shape is None else tuple((step, have - length) for (length, step), have in zip(dims, shape, strict=False))


def _box(dims: Dims) -> tuple[int, ...]:
    return (*(n for n, _ in dims), 1)


def _digits(offset: Any, shape: Sequence[int]) -> list[Any]:
    """The index in a row-major `shape` of a flat offset."""
    digits: list[Any] = []
    for length in reversed(shape[1:]):
        digits.append(_remainder(offset, length))
        offset = _quotient(offset, length)
    return [offset, *reversed(digits)]


def _starts(offset: int | Array, shape: Sequence[int], box: Sequence[int]) -> list[Any]:
    return [0 if length == have else at for at, length, have in zip(_digits(offset, shape), box, shape, strict=True)]


def _read_dims(row: Array, dims: Dims, start: int | Array) -> Array:
    """Reads dims along the last axis of `row` (leading axes stay). Start is within that axis."""
    lead, have = row.shape[:-1], row.shape[-1]
    if not dims:
        return _slice_last(row, start, 1).reshape(lead)
    (size, stride), inner = dims[0], dims[1:]
    if stride < _extent(inner):
        return _read_overlapping(row, dims, start)
    if stride == 1 and not inner:
        return _slice_last(row, start, size)
    if size * stride > have:
        span = _slice_last(row, start, _extent(dims))
        if not inner:
            return lax.slice(span, [0] * row.ndim, span.shape, [1] * len(lead) + [stride])
        rows, start = _pad_last(span, size * stride), 0
    else:
        at = _lesser(start, have - size * stride)
        rows, start = _slice_last(row, at, size * stride), _difference(start, at)
    return _read_dims(rows.reshape(*lead, size, stride), inner, start)


def _read_overlapping(row: Array, dims: Dims, start: int | Array) -> Array:
    axis = row.ndim - 1
    count, chunk = _cut(dims)
    if chunk == 0:
        steps = [_read_dims(row, dims[1:], start + i * dims[0][1]) for i in range(count)]
        return lax.concatenate([lax.expand_dims(s, (axis,)) for s in steps], axis)
    (size, step), pieces = dims[1], []
    for first in range(0, size, chunk):
        part: Dims = (dims[0], (min(chunk, size - first), step), *dims[2:])
        pieces.append(_read_dims(row, part, start + first * step))
    return lax.concatenate(pieces, axis + 1)


def _write_dims(row: Array, dims: Dims, start: int | Array, value: Array) -> Array:
    """The counterpart of `_read_dims` for dims that do not overlap; `value` has the leading axes of `row`, then the dims."""
    lead, have = row.shape[:-1], row.shape[-1]
    if not dims:
        return _update_last(row, value.reshape(*lead, 1), start)
    (size, stride), inner = dims[0], dims[1:]
    if stride == 1:
        return _update_last(row, value, start)
    span = min(size * stride, have if size * stride <= have else _extent(dims))
    at = _lesser(start, have - span)
    block = _pad_last(_slice_last(row, at, span), size * stride).reshape(*lead, size, stride)
    block = _write_dims(block, inner, _difference(start, at), value).reshape(*lead, size * stride)
    return _update_last(row, _slice_last(block, 0, span), at)


def _gather(storage: Array, dims: Dims, offset: int | Array) -> Array:
    run = dims[-1][0] if dims[-1][1] == 1 else 1
    outer = dims[:-1] if run > 1 else dims
    shape = tuple(n for n, _ in outer)
    places = lax.full((*shape, 1), 0, np.int64) + offset
    for axis, (_, stride) in enumerate(outer):
        places = places + lax.broadcasted_iota(np.int64, (*shape, 1), axis) * stride
    collapsed, kept = ((), (len(shape),)) if run > 1 else ((0,), ())
    numbers = lax.GatherDimensionNumbers(offset_dims=kept, collapsed_slice_dims=collapsed, start_index_map=(0,))
    return lax.gather(storage, places, numbers, (run,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _scatter(storage: Array, dims: Sequence[tuple[int, int]], offset: int | Array, value: Array) -> Array:
    """Writes an overlapping view (`dims` in the view's order). Which position wins an element is the same for every offset and found here, once."""
    index = np.zeros((), np.int64)
    for size, stride in dims:
        index = index[..., None] + np.arange(size, dtype=np.int64) * stride
    touched, last = np.unique(index.reshape(-1)[::-1], return_index=True)
    flat = value.reshape(-1)
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    winners = lax.gather(flat, (flat.size - 1 - last)[:, None], numbers, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    places = lax.full((len(touched), 1), 0, np.int64) + offset + touched[:, None]
    into = lax.ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    return lax.scatter(storage, places, winners, into, indices_are_sorted=True, unique_indices=True, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _fence(array: Array) -> Array:
    return lax.optimization_barrier(array)  # type: ignore[no-any-return]


def _slice(array: Array, starts: Sequence[int | Array], sizes: Sequence[int]) -> Array:
    if tuple(sizes) == array.shape:
        return array
    if all(isinstance(at, int) for at in starts):
        return lax.slice(array, starts, [at + n for at, n in zip(starts, sizes, strict=True)])  # type: ignore[arg-type, misc]
    return lax.dynamic_slice(array, _indices(starts), sizes, allow_negative_indices=False)


def _update(array: Array, value: Array, starts: Sequence[int | Array]) -> Array:
    if value.shape == array.shape:
        return value
    return lax.dynamic_update_slice(array, value, _indices(starts), allow_negative_indices=False)


def _indices(starts: Sequence[int | Array]) -> list[Any]:
    return [np.int64(at) if isinstance(at, int) else at for at in starts]


def _slice_last(row: Array, start: int | Array, size: int) -> Array:
    return _slice(row, [*[0] * (row.ndim - 1), start], (*row.shape[:-1], size))


def _update_last(row: Array, value: Array, start: int | Array) -> Array:
    return _update(row, value, [*[0] * (row.ndim - 1), start])


def _pad_last(row: Array, size: int) -> Array:
    extra = size - row.shape[-1]
    return row if extra == 0 else lax.pad(row, np.zeros((), row.dtype), [(0, 0, 0)] * (row.ndim - 1) + [(0, extra, 0)])


def _lesser(start: Any, limit: int) -> Any:
    """min(start, limit); a limit of 0 leaves nothing to find out at run time."""
    if limit == 0 or isinstance(start, int):
        return min(start, limit) if limit else 0
    return lax.min(start, start.dtype.type(limit))


def _difference(start: Any, at: Any) -> Any:
    return start if isinstance(at, int) and at == 0 else start - at


def _remainder(offset: Any, length: int) -> Any:
    return offset % length if isinstance(offset, int) else lax.rem(offset, offset.dtype.type(length))


def _quotient(offset: Any, length: int) -> Any:
    return offset // length if isinstance(offset, int) else lax.div(offset, offset.dtype.type(length))
