"""Symmetric (Hermitian) indefinite matrices: `A = L D L^T` with the pivots of Bunch and Kaufman, D of 1 x 1 and 2 x 2 blocks.

The layout is LAPACK's (`?sytf2`, `?hetf2`, lower triangle; Bunch & Kaufman, Math. Comp. 31, 1977): L below D in one matrix, 0 above,
1-based pivots, negative in pairs for a 2 x 2 block; earlier columns of L are not exchanged.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .linalg import share_batch
from .registry import lowering

_ALPHA = (1 + math.sqrt(17)) / 8


def _size(x: Array) -> Array:
    """LAPACK's cheap size of a number: |re| + |im|."""
    return jnp.abs(jnp.real(x)) + jnp.abs(jnp.imag(x)) if jnp.iscomplexobj(x) else jnp.abs(x)


def _turned(x: Array, hermitian: bool) -> Array:
    return jnp.conj(x) if hermitian else x


def _exchange(n: int, a: Array, b: Array) -> Array:
    """0 .. n-1 with two entries exchanged."""
    places = jnp.arange(n, dtype=np.int32)
    return jnp.where(places == a, b, jnp.where(places == b, a, places))


def _pivot(rest: Array, k: Array) -> tuple[Array, Array, Array]:
    """The row to bring up, whether it takes a 2 x 2 block, and whether the column is zero: from the trailing matrix of step k."""
    n = rest.shape[0]
    places = jnp.arange(n, dtype=np.int32)
    sizes = _size(rest)
    own = sizes[k, k]
    below = jnp.where(places > k, sizes[:, k], -1)
    place = jnp.argmax(below).astype(np.int32)
    greatest = jnp.maximum(jnp.max(below), 0)
    across = jnp.max(jnp.where((places >= k) & (places != place), sizes[:, place], 0))
    stays = (own >= _ALPHA * greatest) | (own * across >= _ALPHA * greatest * greatest)
    single = stays | (sizes[place, place] >= _ALPHA * across)
    zero = (jnp.maximum(own, greatest) == 0) | jnp.isnan(own)
    return jnp.where(stays | zero, k, place), ~single & ~zero, zero


def _factor(matrix: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """One matrix [n, n]: packed factors, pivots, the 1-based place of the first zero block (0: none)."""
    n = matrix.shape[0]
    places = jnp.arange(n, dtype=np.int32)
    whole = jnp.tril(matrix) + _turned(jnp.tril(matrix, -1).T, hermitian)
    if hermitian and jnp.iscomplexobj(whole):
        whole = jnp.where(places[:, None] == places, jnp.real(whole).astype(whole.dtype), whole)

    def step(state: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        k, rest, packed, pivots, info = state
        up, double, zero = _pivot(rest, k)
        last = k + double.astype(np.int32)
        order = _exchange(n, last, up)
        rest = rest[order][:, order]
        follow = jnp.minimum(k + 1, n - 1)
        first, second = rest[:, k], rest[:, follow]
        below = places > last
        a, b, c = rest[k, k], rest[follow, k], rest[follow, follow]
        upper = _turned(b, hermitian)
        scale = jnp.where(double, a * c - b * upper, jnp.where(zero, 1, a))
        left = jnp.where(double, (first * c - second * b) / scale, first / scale)
        right = jnp.where(double, (second * a - first * upper) / scale, 0)
        left, right = jnp.where(below, left, 0), jnp.where(below, right, 0)
        rows = _turned(jnp.where(below, first, 0), hermitian), _turned(jnp.where(below, second, 0), hermitian)
        rest = jnp.where(zero, rest, rest - left[:, None] * rows[0] - right[:, None] * rows[1])
        columns = jnp.where(places == k, a, jnp.where(double & (places == follow), b, left)), jnp.where(places == follow, c, right)
        packed = packed.at[:, k].set(jnp.where(places >= k, columns[0], packed[:, k]))
        packed = packed.at[:, follow].set(jnp.where(double & (places >= follow), columns[1], packed[:, follow]))
        mark = jnp.where(double, -(up + 1), up + 1)
        pivots = jnp.where((places == k) | (places == last), mark, pivots)
        return last + 1, rest, packed, pivots, jnp.where(zero & (info == 0), k + 1, info)

    zero = jnp.zeros((), np.int32)
    start = (zero, whole, matrix, jnp.zeros((n,), np.int32), zero)
    _, _, packed, pivots, info = lax.while_loop(lambda state: state[0] < n, step, start)
    return jnp.tril(packed), pivots, info


@lowering("linalg_ldl_factor_ex")
def ldl_factor(self: Array, *, hermitian: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    """Packed factors, pivots [*, n] (int32) and info of [*, n, n]; only the lower triangle is read."""
    batch, n = self.shape[:-2], self.shape[-1]
    if self.size == 0:
        return self, jnp.zeros((*batch, n), np.int32), jnp.zeros(batch, np.int32)
    packed, pivots, info = jax.vmap(partial(_factor, hermitian=hermitian))(self.reshape(-1, n, n))
    return packed.reshape(self.shape), pivots.reshape(*batch, n), info.reshape(batch)


def _solve(packed: Array, pivots: Array, right: Array, hermitian: bool) -> Array:
    """X of `A X = right` for one matrix."""
    n = packed.shape[0]
    places = jnp.arange(n, dtype=np.int32)
    rows = jnp.where(pivots > 0, pivots, -pivots) - 1

    def down(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, x = state
        double = pivots[k] < 0
        last = k + double.astype(np.int32)
        x = x[_exchange(n, last, rows[k])]
        follow = jnp.minimum(k + 1, n - 1)
        first = jnp.where(places > last, packed[:, k], 0)
        second = jnp.where((places > last) & double, packed[:, follow], 0)
        x = x - first[:, None] * x[k] - second[:, None] * x[follow]
        a, b, c = packed[k, k], packed[follow, k], packed[follow, follow]
        upper = _turned(b, hermitian)
        scale = jnp.where(double, a * c - b * upper, a)
        top = jnp.where(double, c * x[k] - upper * x[follow], x[k]) / scale
        bottom = (a * x[follow] - b * x[k]) / scale
        x = jnp.where((places == follow)[:, None] & double, bottom, x)
        return last + 1, jnp.where((places == k)[:, None], top, x)

    def up(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, x = state
        double = pivots[k] < 0
        before = jnp.maximum(k - 1, 0)
        below = jnp.where((places > k)[:, None], x, 0)
        own = x[k] - _turned(packed[:, k], hermitian) @ below
        other = x[before] - _turned(packed[:, before], hermitian) @ below
        x = jnp.where((places == k)[:, None], own, jnp.where((places == before)[:, None] & double, other, x))
        return k - 1 - double.astype(np.int32), x[_exchange(n, k, rows[k])]

    x = lax.while_loop(lambda state: state[0] < n, down, (jnp.zeros((), np.int32), right))[1]
    solution: Array = lax.while_loop(lambda state: state[0] >= 0, up, (jnp.full((), n - 1, np.int32), x))[1]
    return solution


@lowering("linalg_ldl_solve")
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool) -> Array:
    """X [*, n, m] of `A X = B`, A by `ldl_factor`; batches broadcast."""
    LD, B = share_batch(LD, B)
    if B.size == 0:
        return B
    n, m = B.shape[-2:]
    order = jnp.broadcast_to(pivots, LD.shape[:-1]).reshape(-1, n)
    return jax.vmap(partial(_solve, hermitian=hermitian))(LD.reshape(-1, n, n), order, B.reshape(-1, n, m)).reshape(B.shape)
