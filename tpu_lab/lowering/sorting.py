"""Sorting, the k greatest elements, binary search in sorted sequences, and membership.

PyTorch's order: NaN is greatest, -0.0 equals 0.0, equal elements keep their order whichever the direction. XLA:CPU sorts
one integer array 4 times faster than pairs or floats (no comparator is called), so there an element's key and its position
are packed into one int64; 64-bit elements take two such passes, the low halves first. Other targets sort the pair.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .axes import axis_of, positions, with_axis
from .promotion import Number, cast, is_floating, result_dtype
from .registry import lowering

_SMALL = 4096
"""Up to so many 64-bit elements the time to compile two passes outweighs the faster sort."""


def sort_key(array: Array) -> Array:
    """Signed integers (int32, of 64-bit elements int64) whose order is PyTorch's order of the elements."""
    dtype = np.dtype(array.dtype)
    wide = dtype.itemsize == 8
    signed, unsigned = (np.dtype(np.int64), np.dtype(np.uint64)) if wide else (np.dtype(np.int32), np.dtype(np.uint32))
    if is_floating(dtype):
        values = array if wide else cast(array, np.dtype(np.float32))
        values = lax.select(lax.eq(values, lax.full_like(values, 0)), lax.full_like(values, 0), values)
        bits = lax.bitcast_convert_type(values, signed)
        largest = lax.full_like(bits, np.iinfo(signed).max)
        ordered = lax.select(lax.lt(bits, lax.full_like(bits, 0)), lax.bitwise_xor(bits, largest), bits)
        return lax.select(lax.ne(values, values), largest, ordered)
    if dtype == unsigned:
        return lax.bitcast_convert_type(lax.bitwise_xor(array, unsigned.type(1 << (dtype.itemsize * 8 - 1))), signed)
    return cast(array, signed)


def order_of(array: Array, axis: int, descending: bool = False) -> Array:
    """The positions along `axis` that sort the array (at least one dim), stable; int32, or int64 for longer axes."""
    key = sort_key(array)
    key = lax.bitwise_not(key) if descending else key
    if array.size == 0 or (key.dtype == np.int64 and array.size <= _SMALL):
        return _sorted_pairs(key, axis)
    return lax.platform_dependent(key, cpu=lambda k: _sorted_packed(k, axis), default=lambda k: _sorted_pairs(k, axis))  # type: ignore[no-any-return]


def _sorted_pairs(key: Array, axis: int) -> Array:
    return lax.sort((key, positions(key.shape, axis)), dimension=axis, is_stable=True, num_keys=1)[1]


def _sorted_packed(key: Array, axis: int) -> Array:
    place = positions(key.shape, axis)
    if key.dtype == np.int32:
        return _pass(key, place, axis)
    low = lax.convert_element_type(lax.bitwise_xor(key, np.int64(1 << 31)), np.int32)
    first = _pass(low, place, axis)
    high = pick(lax.convert_element_type(lax.shift_right_arithmetic(key, np.int64(32)), np.int32), first, axis)
    return pick(first, _pass(high, place, axis), axis)


def _pass(key: Array, place: Array, axis: int) -> Array:
    packed = lax.bitwise_or(lax.shift_left(key.astype(np.int64), np.int64(32)), place.astype(np.int64))
    return lax.bitwise_and(lax.sort(packed, dimension=axis, is_stable=False), np.int64(0xFFFFFFFF)).astype(place.dtype)


def pick(array: Array, order: Array, axis: int) -> Array:
    """The elements at the given positions along `axis`, which have to be valid ones."""
    return jnp.take_along_axis(array, order, axis=axis, mode="promise_in_bounds")


@lowering("sort")
def sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    array, axis = with_axis(self), axis_of(dim, self.ndim)
    order = order_of(array, axis, descending)
    return pick(array, order, axis).reshape(self.shape), order.reshape(self.shape).astype(np.int64)


@lowering("sort.stable")
def sort_stable(self: Array, *, stable: bool | None, dim: int, descending: bool) -> tuple[Array, Array]:
    return sort(self, dim, descending)


@lowering("topk")
def topk(self: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
    """The k greatest (or least) elements along `dim`, sorted; which of equal elements are taken is not specified."""
    array, axis = with_axis(self), axis_of(dim, self.ndim)
    length = array.shape[axis]
    exact = (is_floating(array.dtype) and array.dtype.itemsize <= 4) or array.dtype.itemsize <= 2
    if exact and 0 < k < max(64, length // 8) and array.size:
        order = _top(cast(array, np.dtype(np.float32)), k, axis, largest)
    else:
        order = lax.slice_in_dim(order_of(array, axis, largest), 0, k, axis=axis)
    values = pick(array, order, axis)
    shape = () if self.ndim == 0 and k == 1 else values.shape
    return values.reshape(shape), order.reshape(shape).astype(np.int64)


def _top(values: Array, k: int, axis: int, largest: bool) -> Array:
    """Positions by XLA's top-k. It compares bits, a NaN by its sign: one sign for all puts them first or last."""
    nan = lax.bitcast_convert_type(lax.full(values.shape, 0x7FC00000 if largest else 0xFFC00000, np.uint32), np.float32)
    values = lax.select(lax.ne(values, values), nan, values if largest else -values)
    rows = jnp.moveaxis(values, axis, -1)
    return jnp.moveaxis(lax.top_k(rows, k)[1], -1, axis)


def _search(sequence: Array, values: Array, right: bool) -> Array:
    """Binary search along the last axis of `sequence` (1-d, or with the leading dims of `values`); comparisons and midpoints are ATen's."""
    length = sequence.shape[-1]
    flat = sequence.reshape(-1)
    base = None
    if sequence.ndim > 1:
        rows = values.size // values.shape[-1] if values.size else 0
        base = (positions((rows, 1), 0).astype(np.int64) * length).reshape(*values.shape[:-1], 1)

    def step(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = low + (high - low) // 2
        place = lax.min(middle, lax.full_like(middle, length - 1))
        found = flat.at[place if base is None else base + place].get(mode="promise_in_bounds")
        above = lax.gt(found, values) if right else lax.ge(found, values)
        going = low < high
        return jnp.where(going & ~above, middle + 1, low), jnp.where(going & above, middle, high)

    start = (lax.full(values.shape, 0, np.int32), lax.full(values.shape, length, np.int32))
    if length == 0 or values.size == 0:
        return start[0]
    return lax.fori_loop(jnp.int32(0), jnp.int32(length.bit_length()), step, start)[0]  # type: ignore[no-any-return]


@lowering("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(sorted_sequence: Array, self: Array | Number, *, out_int32: bool, right: bool, side: str | None, sorter: Array | None) -> Array:
    """int64 (or int32) positions at which the values of `self` keep the sequence sorted; `side` overrules `right`."""
    common = result_dtype(sorted_sequence, self)
    values = self.to(common) if isinstance(self, Number) else cast(self, common)
    sequence = sorted_sequence
    if sorter is not None:
        sequence = pick(sequence, sorter, sequence.ndim - 1)
    found = _search(cast(sequence, common), values, right if side is None else side == "right")
    return found.astype(np.int32 if out_int32 else np.int64)


@lowering("bucketize.Tensor", "bucketize.Scalar")
def bucketize(self: Array | Number, boundaries: Array, *, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, self, out_int32=out_int32, right=right, side=None, sorter=None)


_FEW = 32
"""Against up to so many values every element is compared with each; among more it is searched."""


@lowering("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor")
def isin(elements: Array | Number, test_elements: Array | Number, *, assume_unique: bool, invert: bool) -> Array:
    """True where an element equals any test element (NaN equals nothing); with `invert` where it equals none."""
    common = result_dtype(elements, test_elements)
    values, tests = (v.to(common) if isinstance(v, Number) else cast(v, common) for v in (elements, test_elements))
    tests = tests.reshape(-1)
    if tests.size <= _FEW:
        found = lax.reduce_or(lax.expand_dims(values, (values.ndim,)) == tests, (values.ndim,))
    else:
        ranked = pick(tests, order_of(tests, 0), 0)
        place = lax.min(_search(ranked, values, right=False), np.int32(tests.size - 1))
        found = ranked.at[place].get(mode="promise_in_bounds") == values
    return lax.bitwise_not(found) if invert else found
