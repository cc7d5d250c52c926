"""`_grouped_mm`: many matrix products in one call, the experts of a mixture.

`offs` [groups] (int32) holds the end of each group along the ragged axis; what lies behind the last end is no group's and
comes out as 0 (PyTorch leaves it undefined). TPU targets get XLA's `ragged_dot_general`. XLA:CPU expands that to every group
times every row, so there a loop walks tiles of rows that belong to one group each: the work is that of the rows present.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .matmul import product
from .promotion import accumulate, cast, opmath
from .registry import lowering

_TILE = 64
"""Rows (or contracted columns) multiplied at once; a group that is shorter wastes the rest of its tile."""


@lowering("_grouped_mm")
def grouped_mm(self: Array, mat2: Array, offs: Array | None, bias: Array | None, out_dtype: object) -> Array:
    """The product by the ranks of `self` and `mat2`.

    3 x 3: one product per group. 2 x 3: the rows of `self` are ragged, [m, k] x [g, k, n] -> [m, n]. 3 x 2: the columns of `mat2`
    are, [g, m, k] x [k, n] -> [m, n]. 2 x 2: the contracted axis is, [m, k] x [k, n] -> [g, m, n]. `bias` is added if given.
    """
    if offs is None:
        out = product(self, mat2)
    elif self.ndim == 2 and mat2.ndim == 3:
        out = _ragged_rows(self, mat2, offs)
    elif self.ndim == 3:
        out = _ragged_rows(mat2.T, jnp.swapaxes(self, 1, 2), offs).T
    else:
        out = _ragged_contraction(self.T, mat2, offs)
    return cast(out if bias is None else out + cast(bias, out.dtype), self.dtype)


def _ragged_rows(rows: Array, matrices: Array, ends: Array) -> Array:
    """Each row of `rows` [m, k] times the matrix of its group in `matrices` [g, k, n]."""
    return lax.platform_dependent(rows, matrices, ends, cpu=_ragged_rows_by_tiles, default=_ragged_rows_whole)  # type: ignore[no-any-return]


def _ragged_contraction(left: Array, right: Array, ends: Array) -> Array:
    """For each group of rows the product `left[rows].T @ right[rows]`: [k, m], [k, n] -> [g, m, n]."""
    return lax.platform_dependent(left, right, ends, cpu=_ragged_contraction_by_tiles, default=_ragged_contraction_whole)  # type: ignore[no-any-return]


def _sizes(ends: Array) -> Array:
    return jnp.diff(ends, prepend=jnp.zeros((1,), ends.dtype)).astype(np.int32)


def _ragged_rows_whole(rows: Array, matrices: Array, ends: Array) -> Array:
    numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    rows, matrices = accumulate([rows, matrices])
    return lax.ragged_dot_general(rows, matrices, _sizes(ends), numbers)


def _ragged_contraction_whole(left: Array, right: Array, ends: Array) -> Array:
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    left, right = accumulate([left, right])
    return lax.ragged_dot_general(left, right, _sizes(ends), numbers)


Step = Callable[[Array, Array, Array, Array, Array, Array], Array]


def _by_tiles(a: Array, b: Array, ends: Array, out: Array, step: Step) -> Array:
    """Folds `step(out, a, b, group, rows, valid)` over all tiles: `rows` [_TILE] are row numbers of `a`, `valid` says which count."""
    count = a.shape[0]
    if count == 0 or ends.shape[0] == 0:
        return out
    sizes = _sizes(ends)
    last_tile = jnp.cumsum(-(-sizes // _TILE), dtype=np.int32)

    def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
        tile, current = state
        # The barrier keeps XLA from converting the whole of a bfloat16 operand to float32 ahead of the loop.
        held_a, held_b, tile = lax.optimization_barrier((a, b, tile))
        group = jnp.searchsorted(last_tile, tile, side="right").astype(np.int32)
        before = jnp.where(group == 0, 0, last_tile[jnp.maximum(group - 1, 0)])
        start = ends[group].astype(np.int32) - sizes[group] + (tile - before) * _TILE
        rows = start + jnp.arange(_TILE, dtype=np.int32)
        return tile + np.int32(1), step(current, held_a, held_b, group, jnp.minimum(rows, count - 1), rows < ends[group])

    return lax.while_loop(lambda state: state[0] < last_tile[-1], body, (jnp.zeros((), np.int32), out))[1]


def _ragged_rows_by_tiles(rows: Array, matrices: Array, ends: Array) -> Array:
    count = rows.shape[0]

    def step(out: Array, rows: Array, matrices: Array, group: Array, numbers: Array, valid: Array) -> Array:
        part = product(rows[numbers], lax.dynamic_index_in_dim(matrices, group, 0, keepdims=False))
        return out.at[jnp.where(valid, numbers, count)].set(part, mode="drop")

    return _by_tiles(rows, matrices, ends, jnp.zeros((count, matrices.shape[2]), opmath(rows.dtype)), step)


def _ragged_contraction_by_tiles(left: Array, right: Array, ends: Array) -> Array:
    def step(out: Array, left: Array, right: Array, group: Array, numbers: Array, valid: Array) -> Array:
        kept = jnp.where(valid[:, None], left[numbers], jnp.zeros((), left.dtype))
        other = jnp.where(valid[:, None], right[numbers], jnp.zeros((), right.dtype))
        return out.at[group].add(product(kept.T, other))

    return _by_tiles(left, right, ends, jnp.zeros((ends.shape[0], left.shape[1], right.shape[1]), opmath(left.dtype)), step)
