"""Rows of different length one after another: reductions of each (`segment_reduce`), and to padded form and back (jagged tensors)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import Number, cast, opmath
from .registry import lowering

_START: dict[str, float] = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


def _offsets(lengths: Array | None, offsets: Array | None) -> Array:
    """Where each segment begins, and the end of the last: [*, segments + 1]."""
    if offsets is not None:
        return offsets
    if lengths is None:
        raise RuntimeError("segment_reduce(): either lengths or offsets has to be given")
    return jnp.concatenate([jnp.zeros_like(lengths[..., :1]), jnp.cumsum(lengths, axis=-1)], axis=-1)


def _segment_of(offsets: Array, length: int) -> Array:
    """The segment of each place [*, length]; the number of segments where it belongs to none."""
    place = jnp.arange(length, dtype=offsets.dtype)
    found = jnp.sum(offsets[..., None, 1:] <= place[:, None], axis=-1, dtype=np.int32)
    return jnp.where(place < offsets[..., :1], np.int32(offsets.shape[-1] - 1), found)


def _rows(data: Array, axis: int) -> Array:
    """data [*leading, length, *rest] as [batch, length, rest]."""
    lead, rest = int(np.prod(data.shape[:axis])), int(np.prod(data.shape[axis + 1 :]))
    return data.reshape(lead, data.shape[axis], rest)


def _grid(rows: Array, segment: Array) -> tuple[Array, Array]:
    return jnp.broadcast_to(jnp.arange(rows.shape[0], dtype=np.int32)[:, None], segment.shape), segment


@lowering("segment_reduce", static=("initial",))
def segment_reduce(
    data: Array,
    reduce: str,
    *,
    lengths: Array | None,
    indices: Array | None,
    offsets: Array | None,
    axis: int,
    unsafe: bool,
    initial: float | None,
) -> Array:
    """sum, mean, prod, max or min of each segment along `axis`: data [*, length, *rest], result [*, segments, *rest].

    A segment without elements gives `initial`, or where there is none 0, NaN, 1, -inf or inf.
    """
    bounds = _offsets(lengths, offsets)
    rows = cast(_rows(data, axis), opmath(data.dtype))
    bounds = bounds.reshape(rows.shape[0], -1)
    count = bounds.shape[1] - 1
    place = _grid(rows, _segment_of(bounds, rows.shape[1]))
    start = jnp.full((rows.shape[0], count, rows.shape[2]), _START[reduce] if initial is None else initial, rows.dtype)
    kept = start.at[place]
    updates: dict[str, Any] = {"sum": kept.add, "mean": kept.add, "prod": kept.multiply, "max": kept.max, "min": kept.min}
    total = updates[reduce](rows, mode="drop")
    if reduce == "mean":
        size = jnp.diff(bounds, axis=1)[:, :, None]
        empty = jnp.full((), np.nan if initial is None else initial, rows.dtype)
        total = jnp.where(size == 0, empty, total / jnp.maximum(size, 1).astype(rows.dtype))
    return cast(total.reshape(*data.shape[:axis], count, *data.shape[axis + 1 :]), data.dtype)


@lowering("_segment_reduce_backward", static=("initial",))
def segment_reduce_backward(
    grad: Array,
    output: Array,
    data: Array,
    reduce: str,
    *,
    lengths: Array | None,
    offsets: Array | None,
    axis: int,
    initial: float | None,
) -> Array:
    """The gradient of data. Equal extremes share theirs; a product leaves out the element itself."""
    rows = cast(_rows(data, axis), opmath(data.dtype))
    bounds = _offsets(lengths, offsets).reshape(rows.shape[0], -1)
    segment = _segment_of(bounds, rows.shape[1])
    place = _grid(rows, segment)

    def spread(value: Array) -> Array:
        """A value of each segment at each of its elements; 0 elsewhere."""
        wide = cast(_rows(value, axis), rows.dtype)
        return wide.at[place].get(mode="fill", fill_value=0)

    upstream = spread(grad)
    if reduce == "mean":
        size = jnp.maximum(jnp.diff(bounds, axis=1), 1).astype(rows.dtype)
        result = upstream / size.at[place].get(mode="fill", fill_value=1)[:, :, None]
    elif reduce in ("max", "min"):
        chosen = (rows == spread(output)) | jnp.isnan(rows)
        ties = jnp.zeros((rows.shape[0], bounds.shape[1] - 1, rows.shape[2]), rows.dtype).at[place].add(chosen.astype(rows.dtype), mode="drop")
        result = jnp.where(chosen, upstream / ties.at[place].get(mode="fill", fill_value=1), 0)
    elif reduce == "prod":
        result = upstream * _others(rows, segment, 1.0 if initial is None else initial)
    else:
        result = upstream
    return cast(result.reshape(data.shape), data.dtype)


def _others(rows: Array, segment: Array, initial: float) -> Array:
    """The product of the other elements of each element's segment, times `initial`: exact where elements are 0."""
    same = segment[:, :, None] == segment[:, None, :]
    other = same & ~jnp.eye(rows.shape[1], dtype=np.bool_)
    return initial * jnp.prod(jnp.where(other[..., None], rows[:, None, :, :], 1), axis=2)


@lowering("_jagged_to_padded_dense_forward")
def jagged_to_padded(values: Array, offsets: Sequence[Array], max_lengths: Sequence[int], padding_value: Number) -> Array:
    """values [total, *rest] as [rows, longest, *rest]: row i holds values from offsets[i] to offsets[i + 1], then the padding."""
    (bounds,) = offsets
    place = bounds[:-1, None] + jnp.arange(max_lengths[0], dtype=bounds.dtype)
    inside = place < bounds[1:, None]
    found = values.at[place].get(mode="clip") if values.shape[0] else jnp.zeros((*place.shape, *values.shape[1:]), values.dtype)
    return jnp.where(lax.expand_dims(inside, range(2, found.ndim)), found, padding_value.to(values.dtype))
