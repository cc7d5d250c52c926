"""Sliding blocks of images to columns and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from .precision import widened
from .promotion import cast, opmath
from .registry import lowering


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _blocks(x: Array, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]) -> Array:
    """x [N, C, H, W] to its sliding blocks [N, C * kernel area, number of blocks]."""
    k, d, p, s = _pair(kernel), _pair(dilation), _pair(padding), _pair(stride)
    out = [(n + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i, n in enumerate(x.shape[2:])]
    padded = jnp.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
    seen = []
    for row in range(k[0]):
        for column in range(k[1]):
            start = (row * d[0], column * d[1])
            stop = [b + (m - 1) * step + 1 for b, m, step in zip(start, out, s, strict=True)]
            seen.append(lax.slice(padded, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *s)))
    return jnp.stack(seen, axis=2).reshape(x.shape[0], x.shape[1] * math.prod(k), math.prod(out))


@lowering("im2col")
def im2col(self: Array, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]) -> Array:
    """self [(N,) C, H, W] to its sliding blocks [(N,) C * kernel area, number of blocks]."""
    if self.ndim == 3:
        return _blocks(self[None], kernel_size, dilation, padding, stride)[0]
    return _blocks(self, kernel_size, dilation, padding, stride)


@lowering("col2im")
def col2im(
    self: Array,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    """The transpose of `im2col`: blocks [(N,) C * kernel area, number] added up in an image [(N,) C, *output_size]."""
    columns = widened(self) if self.ndim == 3 else widened(self)[None]
    shape = (columns.shape[0], columns.shape[1] // math.prod(_pair(kernel_size)), *output_size)
    primal = jax.ShapeDtypeStruct(shape, opmath(self.dtype))
    image: Array
    (image,) = jax.linear_transpose(lambda x: _blocks(x, kernel_size, dilation, padding, stride), primal)(columns)
    return cast(image if self.ndim == 3 else image[0], self.dtype)
