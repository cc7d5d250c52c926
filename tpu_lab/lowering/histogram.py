"""Histograms of values in one or several dimensions, with given edges or with bins of equal width.

A bin holds its lower edge, the last one its upper edge too; what lies outside counts nowhere. `bincount` is not here: its
size depends on values.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .division import divided
from .registry import lowering


def _edges(x: Array, bins: int, low: Array, high: Array) -> Array:
    """`bins + 1` edges from `low` to `high`, widened by 1/2 on both sides where they are one point; counted from the nearer end, as `linspace`."""
    point = low == high
    low, high = jnp.where(point, low - 0.5, low), jnp.where(point, high + 0.5, high)
    step = divided(high - low, float(bins))
    places = jnp.arange(bins + 1, dtype=x.dtype)
    return jnp.where(jnp.arange(bins + 1) < (bins + 1) // 2, low + step * places, high - step * (bins - places))


def _bounds(points: Array, limits: Sequence[float] | None) -> list[tuple[Array, Array]]:
    """The lowest and highest value of each column of [N, D]; of `limits`, pairs, where they are given. No points: 0 and 1."""
    columns = points.shape[1]
    if limits is not None:
        given = jnp.asarray(np.asarray(limits), points.dtype)
        return [(given[2 * d], given[2 * d + 1]) for d in range(columns)]
    if points.shape[0] == 0:
        return [(jnp.zeros((), points.dtype), jnp.ones((), points.dtype))] * columns
    return [(jnp.min(points[:, d]), jnp.max(points[:, d])) for d in range(columns)]


def _all_edges(points: Array, bins: Sequence[int], limits: Sequence[float] | None) -> list[Array]:
    return [_edges(points, n, *bounds) for n, bounds in zip(bins, _bounds(points, limits), strict=True)]


def _counted(points: Array, edges: Sequence[Array], weight: Array | None, density: bool) -> Array:
    """How many points [N, D] (or how much weight [N]) lie in each cell of the grid that `edges` make; per volume and in total 1 with `density`."""
    sizes = tuple(e.shape[0] - 1 for e in edges)
    index = jnp.zeros(points.shape[0], np.int32)
    outside = jnp.zeros(points.shape[0], np.bool_)
    for column, own in enumerate(edges):
        x = points[:, column]
        place = jnp.searchsorted(own, x, side="right").astype(np.int32) - 1
        place = jnp.where(x == own[-1], sizes[column] - 1, place)
        outside = outside | ~((x >= own[0]) & (x <= own[-1]))
        index = index * np.int32(sizes[column]) + jnp.clip(place, 0, sizes[column] - 1)
    total = int(np.prod(sizes))
    amount = jnp.ones(points.shape[0], points.dtype) if weight is None else weight.reshape(-1).astype(points.dtype)
    counts = jnp.zeros(total, points.dtype).at[jnp.where(outside, total, index)].add(amount, mode="drop").reshape(sizes)
    if not density:
        return counts
    counts = counts / jnp.sum(counts)
    for column, own in enumerate(edges):
        width = lax.expand_dims(jnp.diff(own), [d for d in range(len(sizes)) if d != column])
        counts = counts / width
    return counts


@lowering("histogram.bin_ct", static=("range",))
def histogram_bin_ct(self: Array, bins: int, *, range: Sequence[float] | None, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """Counts [bins] and edges [bins + 1] of all elements."""
    points = self.reshape(-1, 1)
    edges = _all_edges(points, (bins,), range)
    return _counted(points, edges, weight, density), edges[0]


@lowering("histogram.bins_tensor")
def histogram_bins_tensor(self: Array, bins: Array, *, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """Counts between the edges `bins`, which rise; and these edges."""
    return _counted(self.reshape(-1, 1), [bins], weight, density), bins


def _points(self: Array) -> Array:
    return self.reshape(-1, self.shape[-1])


@lowering("_histogramdd_bin_edges", static=("range",))
def histogramdd_bin_edges(self: Array, bins: Sequence[int], *, range: Sequence[float] | None, weight: Array | None, density: bool) -> list[Array]:
    """The edges of each dimension of points [*, D]."""
    return _all_edges(_points(self), bins, range)


@lowering("_histogramdd_from_bin_cts", static=("range",))
def histogramdd_from_bin_cts(self: Array, bins: Sequence[int], *, range: Sequence[float] | None, weight: Array | None, density: bool) -> Array:
    """Counts [*bins] of points [*, D]."""
    return _counted(_points(self), _all_edges(_points(self), bins, range), weight, density)


@lowering("_histogramdd_from_bin_tensors")
def histogramdd_from_bin_tensors(self: Array, bins: Sequence[Array], *, weight: Array | None, density: bool) -> Array:
    """Counts of points [*, D] between the edges of each dimension."""
    return _counted(_points(self), bins, weight, density)
