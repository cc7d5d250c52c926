"""Fourier transforms: the three ATen operators that every function of `torch.fft` ends in.

`normalization` is ATen's enumeration: 0 leaves the sum as it is, 1 divides by sqrt(n), 2 by n, where n is the number of points
transformed. Real input of 16 bits is transformed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from .promotion import cast, opmath
from .registry import lowering


def _normalized(value: Array, points: int, normalization: int) -> Array:
    if normalization == 0 or points == 0:
        return value
    factor = 1 / points if normalization == 2 else 1 / math.sqrt(points)
    scaled: Array = value * np.finfo(value.dtype).dtype.type(factor)
    return scaled


def _split(dims: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """`dims` as (others, block): the block, at most three last dimensions in order, is one transform of XLA without a transpose."""
    places = {d % rank for d in dims}
    block = [d for d in range(max(rank - 3, 0), rank) if places.issuperset(range(d, rank))]
    return [d % rank for d in dims if d % rank not in block], block


def _complex(value: Array, dims: Sequence[int], forward: bool) -> Array:
    """The unscaled complex transform along `dims`."""
    others, block = _split(dims, value.ndim)
    for axes in ([block] if block else []) + [[d] for d in others]:
        value = jnp.fft.fftn(value, axes=axes) if forward else jnp.fft.ifftn(value, axes=axes, norm="forward")
    return value


def _points(shape: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod(shape[d] for d in dims)


@lowering("_fft_c2c")
def fft_c2c(self: Array, dim: list[int], normalization: int, forward: bool) -> Array:
    """Complex to complex along `dim`."""
    if self.size == 0:
        return self
    return _normalized(_complex(self, dim, forward), _points(self.shape, dim), normalization)


@lowering("_fft_r2c")
def fft_r2c(self: Array, dim: list[int], normalization: int, onesided: bool) -> Array:
    """Real to complex; `onesided` keeps the first n // 2 + 1 values of the last of `dim`, the others follow by symmetry."""
    value = cast(self, opmath(self.dtype))
    if onesided:
        last = dim[-1] % value.ndim
        others, block = _split(dim, value.ndim)
        axes = block if last == value.ndim - 1 else [last]
        value = _complex(jnp.fft.rfftn(value, axes=axes), [d for d in (*others, *block) if d not in axes], forward=True)
    else:
        value = _complex(value, dim, forward=True)
    return _normalized(value, _points(self.shape, dim), normalization)


@lowering("_fft_c2r")
def fft_c2r(self: Array, dim: list[int], normalization: int, last_dim_size: int) -> Array:
    """Half a Hermitian spectrum to `last_dim_size` real values along the last of `dim`."""
    value = jnp.fft.irfft(_complex(self, dim[:-1], forward=False), n=last_dim_size, axis=dim[-1], norm="forward")
    return _normalized(value, _points(value.shape, dim), normalization)
