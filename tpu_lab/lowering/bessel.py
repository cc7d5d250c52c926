"""Bessel functions J, Y, K of orders 0 and 1, spherical j0 and the Airy function Ai, computed in float64.

Near zero by their power series. Beyond, by the trapezoidal rule on an integral whose integrand falls off at both ends, where the
rule converges exponentially: DLMF 10.32.9 for K, and DLMF 10.9.18 along its path of steepest descent for J + iY. The path is
t = u + i (π/2 + gd u), gd the Gudermannian; on it sinh t = i - sinh u tanh u. Constants are computed, not tabulated. J, Y and
Ai are NaN at infinity, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import pointwise
from .special_unary import polynomial

_FLOAT64 = np.dtype(np.float64)
_SERIES_UP_TO = 2.0
_TERMS = 16
_STEPS = 32
_NEGLIGIBLE = 40.0
"""exp(-40) is below float64's resolution: there the integrals are cut off."""

_FACTORIAL = [math.factorial(k) for k in range(_TERMS + 1)]
_HARMONIC = [sum(1 / j for j in range(1, k + 1)) for k in range(_TERMS + 1)]
_ORDER_0 = [1 / _FACTORIAL[k] ** 2 for k in range(_TERMS)]
_ORDER_1 = [1 / (_FACTORIAL[k] * _FACTORIAL[k + 1]) for k in range(_TERMS)]
_LOG_0 = [_HARMONIC[k] * _ORDER_0[k] for k in range(_TERMS)]
_LOG_1 = [(_HARMONIC[k] + _HARMONIC[k + 1] - 2 * np.euler_gamma) * _ORDER_1[k] for k in range(_TERMS)]
"""Coefficients of the power series of order 0 and 1 in ±x²/4 and of their logarithmic companions (DLMF 10.2.2, 10.8, 10.31)."""


def _integral(reach: Array, integrands: Callable[[Array], Sequence[Array]]) -> list[Array]:
    """The integrals from 0 to `reach` of even functions, by the trapezoidal rule."""
    step = reach / _STEPS

    def add(k: Array, sums: list[Array]) -> list[Array]:
        return [total + value for total, value in zip(sums, integrands(step * lax.convert_element_type(k, _FLOAT64)), strict=True)]

    start = [value / 2 for value in integrands(jnp.zeros_like(reach))]
    return [step * total for total in lax.fori_loop(np.int32(1), np.int32(_STEPS + 1), add, start)]


def _hankel(order: float, x: Array) -> tuple[Array, Array]:
    """J and Y of `order` at x >= 2."""
    ratio = _NEGLIGIBLE / x
    reach = lax.acosh((ratio + lax.sqrt(ratio * ratio + 4)) / 2)

    def integrands(u: Array) -> tuple[Array, Array]:
        secant = 1 / lax.cosh(u)
        fall = 2 * lax.exp(-x * lax.sinh(u) * lax.tanh(u))
        turn = order * 2 * lax.atan(lax.tanh(u / 2))
        even, odd = lax.cosh(order * u), lax.sinh(order * u)
        cosine, sine = lax.cos(turn), lax.sin(turn)
        return fall * (even * cosine - odd * secant * sine), fall * (even * secant * cosine + odd * sine)

    real, imag = _integral(reach, integrands)
    turned = (order + 1) * math.pi / 2
    cosine = lax.cos(x) * math.cos(turned) + lax.sin(x) * math.sin(turned)
    sine = lax.sin(x) * math.cos(turned) - lax.cos(x) * math.sin(turned)
    return (real * cosine - imag * sine) / math.pi, (real * sine + imag * cosine) / math.pi


def _scaled_k(order: float, x: Array) -> Array:
    """exp(x) K of `order` at x >= 2."""

    def integrand(u: Array) -> list[Array]:
        half = lax.sinh(u / 2)
        return [lax.exp(-2 * x * half * half) * lax.cosh(order * u)]

    return _integral(2 * lax.asinh(lax.sqrt(_NEGLIGIBLE / 2 / x)), integrand)[0]


def _split(x: Array) -> tuple[Array, Array, Array]:
    """|x| in float64, once held down to where the series is good, once up to where the integral is and finite."""
    size = lax.abs(lax.convert_element_type(x, _FLOAT64))
    return size, lax.min(size, _FLOAT64.type(_SERIES_UP_TO)), lax.clamp(_FLOAT64.type(_SERIES_UP_TO), size, _FLOAT64.type(1e300))


def _j(order: int, x: Array) -> Array:
    size, near, far = _split(x)
    square = -near * near / 4
    series = polynomial(_ORDER_0, square) if order == 0 else near / 2 * polynomial(_ORDER_1, square)
    value = jnp.where(size <= _SERIES_UP_TO, series, _hankel(order, far)[0])
    value = jnp.where(size == math.inf, math.nan, value)
    return value if order == 0 else jnp.where(x < 0, -value, value)


def _y(order: int, x: Array) -> Array:
    size, near, far = _split(x)
    square, log = -near * near / 4, lax.log(near / 2)
    if order == 0:
        series = 2 / math.pi * ((log + np.euler_gamma) * polynomial(_ORDER_0, square) - polynomial(_LOG_0, square))
    else:
        series = (near * log * polynomial(_ORDER_1, square) - near / 2 * polynomial(_LOG_1, square) - 2 / near) / math.pi
    value = jnp.where(size <= _SERIES_UP_TO, series, _hankel(order, far)[1])
    value = jnp.where(size == math.inf, math.nan, jnp.where(size == 0, -math.inf, value))
    return jnp.where(x < 0, math.nan, value)


def _k(order: int, x: Array, scaled: bool) -> Array:
    size, near, far = _split(x)
    square, log = near * near / 4, lax.log(near / 2)
    if order == 0:
        series = polynomial(_LOG_0, square) - (log + np.euler_gamma) * polynomial(_ORDER_0, square)
    else:
        series = 1 / near + near / 2 * log * polynomial(_ORDER_1, square) - near / 4 * polynomial(_LOG_1, square)
    beyond = _scaled_k(order, far)
    value = jnp.where(size <= _SERIES_UP_TO, series * lax.exp(near) if scaled else series, beyond if scaled else beyond * lax.exp(-far))
    value = jnp.where(size == math.inf, 0, jnp.where(size == 0, math.inf, value))
    return jnp.where(x < 0, math.nan, value)


@pointwise("special_bessel_j0", kind="int_to_float")
def bessel_j0(x: Array) -> Array:
    return _j(0, x)


@pointwise("special_bessel_j1", kind="int_to_float")
def bessel_j1(x: Array) -> Array:
    return _j(1, x)


@pointwise("special_bessel_y0", kind="int_to_float")
def bessel_y0(x: Array) -> Array:
    return _y(0, x)


@pointwise("special_bessel_y1", kind="int_to_float")
def bessel_y1(x: Array) -> Array:
    return _y(1, x)


@pointwise("special_modified_bessel_k0", kind="int_to_float")
def modified_bessel_k0(x: Array) -> Array:
    return _k(0, x, scaled=False)


@pointwise("special_modified_bessel_k1", kind="int_to_float")
def modified_bessel_k1(x: Array) -> Array:
    return _k(1, x, scaled=False)


@pointwise("special_scaled_modified_bessel_k0", kind="int_to_float")
def scaled_modified_bessel_k0(x: Array) -> Array:
    """exp(x) K0(x)."""
    return _k(0, x, scaled=True)


@pointwise("special_scaled_modified_bessel_k1", kind="int_to_float")
def scaled_modified_bessel_k1(x: Array) -> Array:
    """exp(x) K1(x)."""
    return _k(1, x, scaled=True)


@pointwise("special_spherical_bessel_j0", kind="int_to_float")
def spherical_bessel_j0(x: Array) -> Array:
    """sin(x) / x."""
    return jnp.where(x == 0, 1, jnp.where(lax.abs(x) == math.inf, 0, lax.sin(x) / x))


_AIRY_EVEN = [math.prod(3 * j + 1 for j in range(k)) / math.factorial(3 * k) / (3 ** (2 / 3) * math.gamma(2 / 3)) for k in range(_TERMS)]
_AIRY_ODD = [math.prod(3 * j + 2 for j in range(k)) / math.factorial(3 * k + 1) / (3 ** (1 / 3) * math.gamma(1 / 3)) for k in range(_TERMS)]
"""Coefficients of Ai in x³, and of -Ai / x (DLMF 9.4.1)."""


@pointwise("special_airy_ai", kind="int_to_float")
def airy_ai(x: Array) -> Array:
    """Ai(x), away from zero by K and the Hankel function of order 1/3 (DLMF 9.6.2, 9.6.6)."""
    size, near, far = _split(x)
    signed = jnp.where(x < 0, -near, near)
    cube = signed * signed * signed
    series = polynomial(_AIRY_EVEN, cube) - signed * polynomial(_AIRY_ODD, cube)
    argument = lax.max(far * lax.sqrt(far) * (2 / 3), _FLOAT64.type(1))
    root = lax.sqrt(far / 3)
    bessel_j, bessel_y = _hankel(1 / 3, argument)
    falling = root / math.pi * _scaled_k(1 / 3, argument) * lax.exp(-argument)
    waving = root * (math.cos(math.pi / 6) * bessel_j - math.sin(math.pi / 6) * bessel_y)
    value = jnp.where(size <= _SERIES_UP_TO, series, jnp.where(x < 0, waving, falling))
    return jnp.where(size == math.inf, math.nan, value)
