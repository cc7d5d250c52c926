"""Special functions: error functions, gamma functions, modified Bessel functions of the first kind, the zeta function.

Formulas carry their number in the NIST Digital Library of Mathematical Functions (DLMF, https://dlmf.nist.gov).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy import special as jax_special

from .promotion import pointwise
from .unary import round_half_even


def _inverse_error_function(x: Array) -> Array:
    """The inverse of erf. XLA's polynomial for float32 is off by a few units in the last place near 1, so that is taken in double precision."""
    if x.dtype != np.float32:
        return lax.erf_inv(x)
    return lax.erf_inv(x.astype(np.float64)).astype(np.float32)


_DIRECT: dict[str, Callable[[Array], Array]] = {
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erfinv": _inverse_error_function,
    "lgamma": lax.lgamma,
    "i0": jax_special.i0,
    "special_i0e": lax.bessel_i0e,
    "special_i1": jax_special.i1,
    "special_i1e": lax.bessel_i1e,
    "special_modified_bessel_i0": jax_special.i0,
    "special_modified_bessel_i1": jax_special.i1,
    "special_ndtri": jax_special.ndtri,
}
"""Functions that jax has itself, or nearly."""


def _register() -> None:
    for overload, function in _DIRECT.items():

        def apply(x: Array, function: Callable[[Array], Array] = function) -> Array:
            return function(x)

        pointwise(overload, kind="int_to_float")(apply)


_register()


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Σ coefficients[k] x**k, by Horner's rule."""
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


_ERFC_SERIES = [float((-1) ** k * math.prod(range(1, 2 * k, 2)) / 2**k) for k in range(17)]
"""DLMF 7.12.1: the terms of x √π exp(x²) erfc(x) in 1/x²."""
_ERFC_SERIES_FROM = 8.0


def _scaled_erfc(x: Array) -> Array:
    """exp(x²) erfc(x) in float64, where the product still has all digits of float32 and most of float64 at its upper end."""
    x = lax.convert_element_type(x, np.dtype(np.float64))
    near = lax.min(x, np.float64(_ERFC_SERIES_FROM))
    far = lax.max(x, np.float64(_ERFC_SERIES_FROM))
    product = jnp.where(x < -30, math.inf, lax.exp(near * near) * lax.erfc(near))
    return jnp.where(x > _ERFC_SERIES_FROM, polynomial(_ERFC_SERIES, 1 / (far * far)) / (far * math.sqrt(math.pi)), product)


@pointwise("special_erfcx", kind="int_to_float")
def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x)."""
    return _scaled_erfc(x)


@pointwise("special_log_ndtr", kind="int_to_float")
def log_ndtr(x: Array) -> Array:
    """The logarithm of the normal distribution function, through `erfcx` in the lower tail."""
    tail = lax.convert_element_type(lax.log(_scaled_erfc(-x * math.sqrt(0.5)) / 2), x.dtype) - x * x / 2
    return jnp.where(x < -1, tail, lax.log1p(-lax.erfc(x * math.sqrt(0.5)) / 2))


@pointwise("special_entr", kind="int_to_float")
def entr(x: Array) -> Array:
    """-x log x; 0 at 0, -inf below."""
    return jnp.where(x == 0, 0, jnp.where(x < 0, -math.inf, -x * lax.log(x)))


@pointwise("digamma", kind="int_to_float")
def digamma(x: Array) -> Array:
    """ψ(x); at a zero the infinity of its side."""
    return jnp.where(x == 0, -1 / x, lax.digamma(x))


def _derivative_of_cotangent(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial in cot: cot' = -(1 + cot²)."""
    terms = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(terms)][1:]
        padded = [*slope, 0.0, 0.0]
        terms = [-(padded[k] + (padded[k - 2] if k >= 2 else 0.0)) for k in range(len(padded))]
    return terms


@pointwise("polygamma", kind="int_to_float")
def polygamma(n: int, x: Array) -> Array:
    """ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x) above zero (DLMF 5.15), reflected below (DLMF 5.15.6), infinite at the poles.

    In float64: ζ and the reflection lose digits to cancellation and overflow.
    """
    if n == 0:
        return digamma(x)
    x = lax.convert_element_type(x, np.dtype(np.float64))
    sign = (-1.0) ** (n + 1)
    positive = jnp.where(x < 0, 1 - x, x)
    value = sign * math.factorial(n) * lax.zeta(jnp.full_like(x, n + 1), positive)
    value = jnp.where(positive == math.inf, 0, value)
    angle = math.pi * (x - round_half_even(x))
    reflected = -(math.pi ** (n + 1)) * polynomial(_derivative_of_cotangent(n), lax.cos(angle) / lax.sin(angle)) - sign * value
    pole = (x <= 0) & (x == lax.floor(x))
    return jnp.where(pole, sign * math.inf, jnp.where(x < 0, reflected, value))


@pointwise("mvlgamma", kind="int_to_float")
def mvlgamma(x: Array, p: int) -> Array:
    """log Γₚ(x) = p (p - 1) / 4 log π + Σ log Γ(x - i / 2), i < p (DLMF 35.3.4)."""
    total = jnp.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
    for i in range(p):
        total = total + lax.lgamma(x - i / 2)
    return total


@pointwise("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar", kind="int_to_float")
def zeta(s: Array, q: Array) -> Array:
    """Hurwitz's ζ(s, q) = Σ (q + k)⁻ˢ, k >= 0; NaN for s < 1, infinite where a term is."""
    s, q = jnp.broadcast_arrays(s, q)
    pole = (q <= 0) & (q == lax.floor(q))
    return jnp.where(s < 1, math.nan, jnp.where(pole & (s > 1), math.inf, lax.zeta(s, q)))


@pointwise("igamma")
def igamma(a: Array, x: Array) -> Array:
    """The regularized lower incomplete gamma function P(a, x)."""
    a, x = jnp.broadcast_arrays(a, x)
    return jnp.where((a == 0) & (x > 0), 1, jnp.where((a == math.inf) & (x >= 0) & (x < math.inf), 0, lax.igamma(a, x)))


@pointwise("igammac")
def igammac(a: Array, x: Array) -> Array:
    """The regularized upper incomplete gamma function Q(a, x)."""
    a, x = jnp.broadcast_arrays(a, x)
    return jnp.where((a == math.inf) & (x >= 0) & (x < math.inf), 1, lax.igammac(a, x))
