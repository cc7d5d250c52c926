"""Counting values in bins of equal width (`histc`)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import Number, cast, is_floating, opmath
from .registry import lowering


@lowering("histc")
def histc(self: Array, bins: int, min: Number, max: Number) -> Array:
    """How many elements fall in each of `bins` equal bins from `min` to `max` (that end included); others do not count.

    Where `min == max` the data's own range is taken, widened by 1 on both sides if that is a point too.
    """
    work = opmath(self.dtype) if is_floating(self.dtype) else np.dtype(np.int64)
    x = cast(self, work).reshape(-1)
    low, high = min.to(work), max.to(work)
    if x.size:
        own = low == high
        low, high = jnp.where(own, jnp.min(x), low), jnp.where(own, jnp.max(x), high)
    point = low == high
    low, high = jnp.where(point, low - 1, low), jnp.where(point, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = _float_place(x, low, high, bins) if is_floating(work) else (x - low) * bins // (high - low)
    index = jnp.where(inside, jnp.clip(place, 0, bins - 1), bins).astype(np.int32)
    return jnp.zeros((bins,), np.int32).at[index].add(1, mode="drop").astype(self.dtype)


def _float_place(x: Array, low: Array, high: Array, bins: int) -> Array:
    """The bin by PyTorch's order of operations. The barrier keeps XLA from multiplying by a reciprocal, which moves values on an edge."""
    width: Array = lax.optimization_barrier(jnp.broadcast_to(high - low, x.shape))
    return jnp.floor((x - low) * bins / width)
