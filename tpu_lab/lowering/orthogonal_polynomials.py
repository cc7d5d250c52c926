"""Chebyshev, Hermite, Laguerre and Legendre polynomials of a degree that is a tensor.

All by their three-term recurrences (DLMF 18.9), walked for all elements at once up to the highest degree; Chebyshev's
between -1 and 1 from a certain degree on by their trigonometric form (DLMF 18.5.1-4), as PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import pointwise
from .unary import truncated

Step = Callable[[Array, Array, Array, Array], Array]
"""(k, x, P of degree k, P of degree k - 1) -> P of degree k + 1."""


def _walk(x: Array, degree: Array, first: Array, step: Step) -> Array:
    """P of `degree` (0 below degree 0), from P0 = 1, P1 = `first`. Stops early where nothing but NaN is left."""

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, before, now = state
        going = k < degree
        return k + 1, lax.select(going, now, before), lax.select(going, step(k, x, now, before), now)

    def any_left(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any((state[0] < degree) & (state[2] == state[2]))

    _, _, value = lax.while_loop(any_left, body, (jnp.ones((), x.dtype), jnp.ones_like(x), first))
    return jnp.where(degree < 0, 0, jnp.where(degree == 0, 1, value))


def _chebyshev_step(_k: Array, x: Array, now: Array, before: Array) -> Array:
    return (x + x) * now - before


_CHEBYSHEV: dict[str, tuple[Callable[[Array], Array], int, Callable[[Array, Array], Array]]] = {
    "t": (lambda x: x, 6, lambda n, angle: lax.cos(n * angle)),
    "u": (lambda x: x + x, 8, lambda n, angle: lax.sin((n + 1) * angle) / lax.sin(angle)),
    "v": (lambda x: x + x - 1, 8, lambda n, angle: lax.cos((n + 0.5) * angle) / lax.cos(angle / 2)),
    "w": (lambda x: x + x + 1, 8, lambda n, angle: lax.sin((n + 0.5) * angle) / lax.sin(angle / 2)),
}
"""By kind: the polynomial of degree 1, the degree above which the trigonometric form is used, that form."""

_OTHERS: dict[str, tuple[Callable[[Array], Array], Step]] = {
    "hermite_polynomial_h": (lambda x: x + x, lambda k, x, now, before: (x + x) * now - (k + k) * before),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, now, before: x * now - k * before),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda k, x, now, before: ((k + k + 1 - x) * now - k * before) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, now, before: ((k + k + 1) * x * now - k * before) / (k + 1)),
}
"""By name: the polynomial of degree 1 and the recurrence."""


def _register(name: str, function: Callable[[Array, Array], Array]) -> None:
    def apply(x: Array, n: Array) -> Array:
        x, n = jnp.broadcast_arrays(x, n)
        return function(x, truncated(n))

    pointwise(f"special_{name}", f"special_{name}.x_scalar", f"special_{name}.n_scalar", kind="int_to_float")(apply)


def _chebyshev(kind: str, shifted: bool) -> Callable[[Array, Array], Array]:
    first, walked, trigonometric = _CHEBYSHEV[kind]

    def function(x: Array, n: Array) -> Array:
        x = x + x - 1 if shifted else x
        direct = (n > walked) & (lax.abs(x) < 1)
        value = _walk(x, jnp.where(direct, 0, n), first(x), _chebyshev_step)
        return jnp.where(direct, trigonometric(n, lax.acos(lax.clamp(x.dtype.type(-1), x, x.dtype.type(1)))), value)

    return function


def _by_recurrence(name: str) -> Callable[[Array, Array], Array]:
    first, step = _OTHERS[name]
    limit = {np.dtype(np.float32): 128, np.dtype(np.float64): 512}

    def function(x: Array, n: Array) -> Array:
        value = _walk(x, n, first(x), step)
        return jnp.where(n > limit[np.dtype(x.dtype)], math.nan, value) if name.startswith("hermite") else value

    return function


for _kind in _CHEBYSHEV:
    _register(f"chebyshev_polynomial_{_kind}", _chebyshev(_kind, shifted=False))
    _register(f"shifted_chebyshev_polynomial_{_kind}", _chebyshev(_kind, shifted=True))
for _name in _OTHERS:
    _register(_name, _by_recurrence(_name))
