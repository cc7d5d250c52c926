"""Linear resampling with positions and weights known in advance: what interpolation and adaptive averages have in common.

A resampling along one dimension is a table: which input elements each output is made of, with which weights. It is applied as
gathers, never as a matmul with a mostly empty matrix, so that an inf or NaN reaches only the outputs that look at it. The
gradient is a resampling too, by the transposed table.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import cast, opmath

_MAX_UNROLLED = 8
"""Tables with more entries per output are gathered at once and summed, instead of term by term."""


@dataclass(frozen=True, eq=False)
class Resampling:
    """Output i is the sum over t of `weights[i, t] * input[index[i, t]]`; entries of weight 0 do not count. Both are [out, taps]."""

    size: int
    index: np.ndarray
    weights: np.ndarray

    def transposed(self) -> Resampling:
        """The resampling that sends a gradient of the output back to the input."""
        out, taps = self.index.shape
        rows = np.repeat(np.arange(out), taps)
        columns, values = self.index.reshape(-1), self.weights.reshape(-1)
        used = values != 0
        rows, columns, values = rows[used], columns[used], values[used]
        order = np.argsort(columns, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
        counts = np.bincount(columns, minlength=self.size)
        slot = np.arange(columns.size) - np.repeat(np.cumsum(counts) - counts, counts)
        index = np.zeros((self.size, max(int(counts.max(initial=0)), 1)), np.int64)
        weights = np.zeros(index.shape)
        index[columns, slot], weights[columns, slot] = rows, values
        return Resampling(out, index, weights)


def resample(x: Array, tables: Sequence[Resampling]) -> Array:
    """Applies one table to each of the last dimensions of x, in the accumulation dtype; the result has x's dtype.

    The dimension that shrinks most is taken first.
    """
    work = cast(x, opmath(x.dtype))
    axes = range(x.ndim - len(tables), x.ndim)
    for axis, table in sorted(zip(axes, tables, strict=True), key=lambda pair: len(pair[1].index) / max(pair[1].size, 1)):
        work = _apply(work, table, axis)
    return cast(work, x.dtype)


def resample_transposed(grad: Array, tables: Sequence[Resampling]) -> Array:
    """The gradient of `resample` with respect to x."""
    return resample(grad, [table.transposed() for table in tables])


def _apply(x: Array, table: Resampling, axis: int) -> Array:
    out, taps = table.index.shape
    if taps == 1 and out == table.size and (table.index[:, 0] == np.arange(out)).all() and (table.weights == 1).all():
        return x
    trailing = (1,) * (x.ndim - axis - 1)
    if taps == 1 and out and out % table.size == 0 and (table.index[:, 0] == np.arange(out) // (out // table.size)).all():
        return _weighted(jnp.repeat(x, out // table.size, axis=axis), table.weights.reshape(out, *trailing))
    if out * taps == table.size and (table.index.reshape(-1) == np.arange(table.size)).all():
        seen = _weighted(x.reshape(*x.shape[:axis], out, taps, *x.shape[axis + 1 :]), table.weights.reshape(out, taps, *trailing))
        if taps > _MAX_UNROLLED:
            return jnp.sum(seen, axis=axis + 1, dtype=x.dtype)
        return functools.reduce(lax.add, (lax.index_in_dim(seen, t, axis + 1, keepdims=False) for t in range(taps)))
    if taps > _MAX_UNROLLED:
        seen = jnp.take(x, jnp.asarray(table.index.reshape(-1), jnp.int32), axis=axis, mode="clip")
        seen = seen.reshape(*x.shape[:axis], out, taps, *x.shape[axis + 1 :])
        return jnp.sum(_weighted(seen, table.weights.reshape(out, taps, *trailing)), axis=axis + 1, dtype=x.dtype)
    total: Array | None = None
    for t in range(taps):
        seen = jnp.take(x, jnp.asarray(table.index[:, t], jnp.int32), axis=axis, mode="clip")
        term = _weighted(seen, table.weights[:, t].reshape(out, *trailing))
        total = term if total is None else total + term
    assert total is not None
    return total


def _weighted(seen: Array, weights: np.ndarray) -> Array:
    """seen * weights, with 0 (not NaN) where the weight is 0."""
    if not (weights == 1).all():
        if weights.size and (weights == weights.flat[0]).all():
            return seen * jnp.array(weights.flat[0], seen.dtype)
        product = seen * jnp.asarray(weights, seen.dtype)
        return product if (weights != 0).all() else jnp.where(jnp.asarray(weights != 0), product, jnp.zeros((), seen.dtype))
    return seen
