"""Copying one tensor's values into another of its own shape and dtype."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from .promotion import Number, cast
from .registry import lowering


@lowering("copy", unread=("self",))
def copy(self: Array, src: Array | Number, non_blocking: bool = False) -> Array:
    """The values of `src`, cast to the dtype and broadcast to the shape of `self`."""
    value = src.value if isinstance(src, Number) else src
    return jnp.broadcast_to(cast(value, self.dtype), self.shape)
