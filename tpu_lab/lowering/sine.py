"""Sine and cosine. XLA:CPU calls a scalar library function for each float32, 5 times slower than PyTorch; there they are computed here.

The argument is reduced to [-π/4, π/4] in float64 with π/2 in two parts (Cody and Waite, Software Manual for the Elementary
Functions, 1980); polynomials fitted to that interval (Cephes, `sinf.c`) are within one unit in the last place there. An array with
an element beyond `_REACH` goes to XLA's own function as a whole. Other targets have instructions of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

_HIGH, _LOW = float.fromhex("0x1.921fb50000000p+0"), float.fromhex("0x1.110b4611a6263p-26")
"""π/2 in two parts, the first of 26 bits: its product with a number below 2^27 is exact."""
_REACH = 1e6
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _reduced(x: Array, quarters: int) -> Array:
    """The sine of x + quarters * π/2 for float32 up to `_REACH`; NaN for NaN."""
    wide = x.astype(np.float64)
    turns = lax.round(wide * (2 / math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    rest = jnp.where(turns == 0, x, ((wide - turns * _HIGH) - turns * _LOW).astype(np.float32))
    square = rest * rest
    sine = jnp.where(square == 0, rest, rest + rest * square * _polynomial(_SINE, square))  # -0.0 stays that
    cosine = 1 - square * np.float32(0.5) + square * square * _polynomial(_COSINE, square)
    quadrant = turns.astype(np.int32) + quarters
    value = jnp.where((quadrant & 1) == 1, cosine, sine)
    return jnp.where((quadrant & 2) == 2, -value, value)


def _on_cpu(function: Callable[[Array], Array], quarters: int) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        far = jnp.any(lax.abs(x) > _REACH)
        found: Array = lax.cond(far, function, lambda y: _reduced(y, quarters), x)
        return found

    return evaluate


def _by_platform(function: Callable[[Array], Array], quarters: int) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        if x.dtype != np.float32:
            return function(x)
        found: Array = lax.platform_dependent(x, cpu=_on_cpu(function, quarters), default=function)
        return found

    return evaluate


sine = _by_platform(lax.sin, 0)
cosine = _by_platform(lax.cos, 1)
