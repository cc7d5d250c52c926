"""Division by a number that is known when the program is built, rounded as a division is.

XLA multiplies by the reciprocal of a constant divisor, which is off by one unit in the last place for most divisors: the
mean of a thousand sevens would not be seven. It divides by what it only learns at run time.
"""

from __future__ import annotations

from jax import Array, lax


def divided(value: Array, divisor: float) -> Array:
    """`value / divisor` for a floating or complex array; NaN stays NaN."""
    known = lax.full_like(value, divisor)
    return lax.div(value, lax.select(lax.eq(value, value), known, lax.full_like(value, 0)))
