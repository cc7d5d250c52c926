"""The exponential of a matrix: scaling by a power of two, a Taylor polynomial, squaring back."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .linalg import multiply
from .promotion import cast, opmath
from .registry import lowering

_DEGREE = 15
_REACH = {np.dtype(np.float32): 3.0, np.dtype(np.float64): 0.7}
"""Up to this 1-norm the polynomial's remainder, norm^16 / 16!, is below the rounding of the result."""


@lowering("linalg_matrix_exp")
def matrix_exp(self: Array) -> Array:
    """exp of each matrix of [*, n, n]; every matrix of a batch is scaled by its own norm. 16-bit matrices are computed in float32."""
    if self.size == 0:
        return self
    if opmath(self.dtype) != self.dtype:
        return cast(matrix_exp(cast(self, opmath(self.dtype))), self.dtype)
    real = np.dtype(np.finfo(self.dtype).dtype)
    norm = jnp.max(jnp.sum(jnp.abs(self), axis=-2), axis=-1)
    halvings = jnp.maximum(jnp.ceil(jnp.log2(norm / real.type(_REACH[real]))), 0)
    halvings = jnp.where(jnp.isfinite(halvings), halvings, 0).astype(np.int32)
    scale = jnp.exp2(-halvings.astype(real)).astype(self.dtype)
    value = _taylor(self * scale[..., None, None])
    most = jnp.max(halvings)

    def square(k: Array, current: Array) -> Array:
        return jnp.where((k < halvings)[..., None, None], multiply(current, current), current)

    result: Array = lax.fori_loop(jnp.int32(0), most, square, value)
    return result


def _taylor(matrix: Array) -> Array:
    """The Taylor polynomial of degree 15 in six products: a quintic in the third power, whose coefficients are quadratics."""
    factor = [matrix.dtype.type(1 / math.factorial(i)) for i in range(_DEGREE + 1)]
    identity = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    second = multiply(matrix, matrix)
    third = multiply(second, matrix)

    def quadratic(i: int) -> Array:
        total: Array = factor[i] * identity + factor[i + 1] * matrix + factor[i + 2] * second
        return total

    value: Array = quadratic(12) + factor[15] * third
    for i in (9, 6, 3, 0):
        value = quadratic(i) + multiply(value, third)
    return value
