"""Complex numbers: building them, their parts, and the sides of their branch cuts.

`real`, `imag` and `view_as_real` are views, made by the device; the `_copy` twins are here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import cast, default_float, is_complex, is_floating
from .registry import lowering


@lowering("complex")
def complex_from_parts(real: Array, imag: Array) -> Array:
    """real + i imag."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


@lowering("polar")
def polar(size: Array, angle: Array) -> Array:
    """size (cos angle + i sin angle)."""
    size, angle = jnp.broadcast_arrays(size, angle)
    return lax.complex(size * lax.cos(angle), size * lax.sin(angle))


@lowering("angle")
def angle(x: Array) -> Array:
    """The argument in (-π, π]; of a real number 0, or π below zero, NaN for NaN."""
    if is_complex(x.dtype):
        return lax.atan2(lax.imag(x), lax.real(x))
    x = x if is_floating(x.dtype) else cast(x, default_float())
    return jnp.where(x != x, x, jnp.where(x < 0, math.pi, 0))


@lowering("_conj_physical", "_conj_copy")
def conj(x: Array) -> Array:
    return lax.conj(x) if is_complex(x.dtype) else x


@lowering("view_as_real_copy")
def view_as_real(x: Array) -> Array:
    """The parts as a last dimension of 2."""
    return jnp.stack([lax.real(x), lax.imag(x)], axis=-1)


@lowering("view_as_complex_copy")
def view_as_complex(x: Array) -> Array:
    """The inverse of `view_as_real`: `x` has a last dimension of 2."""
    return lax.complex(x[..., 0], x[..., 1])


def with_sign_of(size: Array, sign: Array) -> Array:
    """|size| with the sign bit of `sign`, both floating and of one shape."""
    return lax.select(sign_bit(sign), -lax.abs(size), lax.abs(size))


def sign_bit(x: Array) -> Array:
    """True where the sign bit of a floating array is set, NaN and -0.0 included."""
    return lax.bitcast_convert_type(x, jnp.dtype(f"int{x.dtype.itemsize * 8}")) < 0


def on_its_side(function: Callable[[Array], Array], odd_real: bool, mirrored: bool = False) -> Callable[[Array], Array]:
    """`function`, with the signs C99 wants on a branch cut: XLA forgets whether a zero part was -0.0, and so takes the wrong side.

    The imaginary part of the result gets the sign of the argument's (the opposite if `mirrored`); so does the real part if `odd_real`.
    """

    def signed(z: Array) -> Array:
        value = function(z)
        if not is_complex(z.dtype):
            return value
        real = with_sign_of(lax.real(value), lax.real(z)) if odd_real else lax.real(value)
        return lax.complex(real, with_sign_of(lax.imag(value), -lax.imag(z) if mirrored else lax.imag(z)))

    return signed


def power(base: Array, exponent: Array) -> Array:
    """base ** exponent of complex arrays of one shape, with the powers of zero that XLA leaves NaN."""
    of_zero = jnp.where(exponent == 0, 1, jnp.where(lax.real(exponent) > 0, 0, math.nan))
    found = lax.platform_dependent(base, exponent, cpu=_power_in_double, default=lax.pow)
    return jnp.where(base == 0, of_zero, found)


def _power_in_double(base: Array, exponent: Array) -> Array:
    """The power computed in complex128: in complex64 the rounding of the logarithm grows with the exponent. A TPU has no such type."""
    wide = np.dtype(np.complex128)
    return lax.pow(base.astype(wide), exponent.astype(wide)).astype(base.dtype)
