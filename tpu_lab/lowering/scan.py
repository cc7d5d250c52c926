"""Running sums, products, extremes and log-sums along a dimension.

XLA:CPU turns a cumulative reduction into windows of windows, 3-20 times slower than a loop over the elements. On the CPU a
scan is therefore a `fori_loop` over a few *lanes*: runs of memory that are walked side by side, each carrying its own
running value. Up to 32 bytes per step stay in one compiled kernel (about 5 ns a step), more lanes would collide in the
cache. A few long rows are cut into chunks to fill the lanes; each chunk starts with the total of those before it, so that
the rounding is that of one walk. Other targets get the cumulative reduction they have hardware for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from .axes import axis_of, is_nan, positions, with_axis
from .dtypes import to_jax
from .promotion import cast, is_complex, is_floating, opmath
from .registry import lowering

Fold = Callable[[Array, Array], Array]
Total = Callable[[Array, int], Array]
"""Folds an array (already of the dtype carried) over one axis."""

_LANE_BYTES = 32
_CHUNK_FROM = 2048
"""Rows shorter than this are not cut into chunks."""


def running(fold: Fold, unit: Any, array: Array, axis: int, native: Callable[..., Array], total: Total | None = None) -> Array:
    """The running fold of `array` along `axis`, in its dtype.

    `unit` is the neutral element, a numpy scalar of the dtype the running value is carried in. `native(array, axis=axis)` is
    the same scan as other targets than the CPU should see it. `total` is the whole fold, where chunks may be folded apart
    from each other (not a product: a part of it can overflow although the whole does not).
    """
    if array.size == 0:
        return array
    out: Array = lax.platform_dependent(array, cpu=lambda a: _in_lanes(fold, unit, a, axis, total), default=lambda a: native(a, axis=axis))
    return out


def _in_lanes(fold: Fold, unit: Any, array: Array, axis: int, total: Total | None) -> Array:
    shape, length = array.shape, array.shape[axis]
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = array.reshape(outer, length, inner)
    lanes = max(1, _LANE_BYTES // array.dtype.itemsize // inner)
    if lanes == 1:
        return _walk(fold, unit, rows, length, None).reshape(shape)
    if total is not None and outer * 4 <= lanes and length >= _CHUNK_FROM:
        return _in_chunks(fold, unit, rows, lanes // outer, total).reshape(shape)
    lanes = min(lanes, outer)
    several = -(-outer // lanes)
    walked = _walk(fold, unit, _padded(rows, 0, several * lanes).reshape(lanes, several * length, inner), length, None)
    return walked.reshape(several * lanes, length, inner)[:outer].reshape(shape)


def _in_chunks(fold: Fold, unit: Any, rows: Array, chunks: int, total: Total) -> Array:
    outer, length, inner = rows.shape
    span = -(-length // chunks)
    parts = _padded(rows, 1, span * chunks).reshape(outer, chunks, span, inner)
    totals = total(parts.astype(unit.dtype), 2)
    starts = [lax.full((outer, 1, inner), unit, unit.dtype)]
    for chunk in range(chunks - 1):
        starts.append(fold(starts[-1], totals[:, chunk : chunk + 1]))
    start = lax.concatenate(starts, 1).reshape(outer * chunks, 1, inner)
    walked = _walk(fold, unit, parts.reshape(outer * chunks, span, inner), span, start)
    return walked.reshape(outer, span * chunks, inner)[:, :length]


def _padded(rows: Array, axis: int, size: int) -> Array:
    extra = size - rows.shape[axis]
    return lax.pad(rows, rows.dtype.type(0), [(0, extra if d == axis else 0, 0) for d in range(3)]) if extra else rows


def _walk(fold: Fold, unit: Any, rows: Array, span: int, start: Array | None) -> Array:
    """Scans (lanes, steps, inner) along the steps; the running value starts with `start`, and anew every `span` steps."""
    lanes, steps, inner = rows.shape
    first = lax.full((lanes, 1, inner), unit, unit.dtype) if start is None else start

    def step(at: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        carried, out = state
        if span < steps:
            carried = lax.select(lax.eq(lax.rem(at, np.int32(span)), np.int32(0)), first, carried)
        place = (np.int32(0), at, np.int32(0))
        carried = fold(carried, lax.dynamic_slice(rows, place, (lanes, 1, inner)).astype(unit.dtype))
        return carried, lax.dynamic_update_slice(out, carried.astype(rows.dtype), place)

    out: Array = lax.fori_loop(jnp.int32(0), jnp.int32(steps), step, (first, lax.full(rows.shape, 0, rows.dtype)))[1]
    return out


def _carried(dtype: np.dtype) -> np.dtype:
    """The dtype a running value is carried in: one step wider than `dtype`, as ATen does on the CPU."""
    if is_complex(dtype):
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtype == np.float32 else opmath(dtype)


def _sum(array: Array, axis: int) -> Array:
    return lax.reduce_sum(array, (axis,))


def _accumulate(self: Array, dim: int, dtype: torch.dtype | None, unit: int, fold: Fold, native: Callable[..., Array], total: Total | None) -> Array:
    inexact = is_floating(self.dtype) or is_complex(self.dtype)
    target = to_jax(dtype) if dtype is not None else np.dtype(self.dtype) if inexact else np.dtype(np.int64)
    values, axis = with_axis(cast(cast(self, target), opmath(target))), axis_of(dim, self.ndim)
    out = running(fold, _carried(target).type(unit), values, axis, native, total)
    return cast(out.reshape(self.shape), target)


@lowering("cumsum")
def cumsum(self: Array, dim: int, *, dtype: torch.dtype | None) -> Array:
    return _accumulate(self, dim, dtype, 0, lax.add, lax.cumsum, _sum)


@lowering("cumprod")
def cumprod(self: Array, dim: int, *, dtype: torch.dtype | None) -> Array:
    return _accumulate(self, dim, dtype, 1, lax.mul, lax.cumprod, None)


def running_sum(counts: Array) -> Array:
    """The running sum of a 1-d integer array, in its dtype (for families that turn a mask into positions)."""
    return running(lax.add, counts.dtype.type(0), counts, 0, lax.cumsum, _sum)


def running_max(array: Array, axis: int) -> Array:
    """The running maximum of a real array along `axis`; NaN stays once it came."""
    unit = array.dtype.type(-np.inf) if is_floating(array.dtype) else array.dtype.type(np.iinfo(array.dtype).min)
    return running(lax.max, unit, array, axis, lax.cummax, lambda a, d: lax.reduce_max(a, (d,)))


def running_min(array: Array, axis: int) -> Array:
    """The running minimum of a real array along `axis`; NaN stays once it came."""
    unit = array.dtype.type(np.inf) if is_floating(array.dtype) else array.dtype.type(np.iinfo(array.dtype).max)
    return running(lax.min, unit, array, axis, lax.cummin, lambda a, d: lax.reduce_min(a, (d,)))


def _extreme(self: Array, dim: int, scan: Callable[[Array, int], Array]) -> tuple[Array, Array]:
    """Running extreme and its position: the latest of equal elements, the latest NaN once there was one.

    An element takes over exactly where it equals the running extreme, so the position is the running maximum of those places.
    """
    values, axis = with_axis(cast(self, np.dtype(np.uint8)) if self.dtype == np.bool_ else self), axis_of(dim, self.ndim)
    best = scan(values, axis)
    taken = lax.eq(values, best)
    nan = is_nan(values)
    if nan is not None:
        taken = lax.bitwise_or(taken, nan)
    places = positions(values.shape, axis)
    place = running_max(lax.select(taken, places, lax.full_like(places, 0)), axis)
    return cast(best.reshape(self.shape), self.dtype), place.reshape(self.shape).astype(np.int64)


@lowering("cummax")
def cummax(self: Array, dim: int) -> tuple[Array, Array]:
    return _extreme(self, dim, running_max)


@lowering("cummin")
def cummin(self: Array, dim: int) -> tuple[Array, Array]:
    return _extreme(self, dim, running_min)


@lowering("_cummax_helper", mutates=("values", "indices"), unread=("values", "indices"))
def cummax_into(self: Array, values: Array, indices: Array, dim: int) -> tuple[Array, Array]:
    return cummax(self, dim)


@lowering("_cummin_helper", mutates=("values", "indices"), unread=("values", "indices"))
def cummin_into(self: Array, values: Array, indices: Array, dim: int) -> tuple[Array, Array]:
    return cummin(self, dim)


def _log_add_exp(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)); a complex result keeps the angle of the larger operand, so it may lie outside (-pi, pi]."""
    if is_complex(a.dtype):
        swap = lax.lt(lax.real(a), lax.real(b))
        small, large = lax.select(swap, a, b), lax.select(swap, b, a)
    else:
        small, large = lax.min(a, b), lax.max(a, b)
    top = lax.real(large) if is_complex(a.dtype) else large
    same = lax.bitwise_and(lax.eq(lax.real(small) if is_complex(a.dtype) else small, top), lax.bitwise_not(lax.is_finite(top)))
    return lax.select(same, small, lax.add(large, lax.log1p(lax.exp(small - large))))


def _log_sum_exp(array: Array, axis: int) -> Array:
    real = lax.real(array) if is_complex(array.dtype) else array
    top = lax.reduce_max(real, (axis,))
    top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0)).astype(array.dtype)
    spread = lax.broadcast_in_dim(top, array.shape, [d for d in range(array.ndim) if d != axis])
    return lax.log(lax.reduce_sum(lax.exp(array - spread), (axis,))) + top


@lowering("logcumsumexp", "_logcumsumexp")
def logcumsumexp(self: Array, dim: int) -> Array:
    values, axis = with_axis(cast(self, opmath(self.dtype))), axis_of(dim, self.ndim)

    def native(array: Array, axis: int) -> Array:
        return lax.associative_scan(_log_add_exp, array, axis=axis)  # type: ignore[no-any-return]

    unit = _carried(np.dtype(self.dtype)).type(-np.inf)
    total = None if is_complex(self.dtype) else _log_sum_exp
    return cast(running(_log_add_exp, unit, values, axis, native, total).reshape(self.shape), self.dtype)
