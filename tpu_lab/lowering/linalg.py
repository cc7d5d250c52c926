"""Triangular factorizations and the solves that use them: Cholesky, LU, inverse, triangular systems.

All take batches [*, n, n]. `info` results are LAPACK's numbers (0: fine), from which PyTorch's composite operators make
their errors; `check_errors` is therefore not looked at here. `_linalg_det` and `_linalg_slogdet` are not lowered: PyTorch's
derivatives expect them to factor the transpose of a contiguous matrix, and a lowering sees no strides.
`tpu_lab.device.graph.linalg_decompositions` writes them in the operators of this file.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import matmul_precision
from .registry import lowering


def adjoint(matrix: Array) -> Array:
    """The conjugate transpose of [*, m, n]."""
    return jnp.conj(jnp.swapaxes(matrix, -1, -2))


def multiply(a: Array, b: Array) -> Array:
    """`a @ b` with broadcast batches, at full precision."""
    return jnp.matmul(a, b, precision=matmul_precision(a.dtype))


def share_batch(a: Array, b: Array) -> tuple[Array, Array]:
    """Both matrices with the batch dimensions they broadcast to."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, (*batch, *a.shape[-2:])), jnp.broadcast_to(b, (*batch, *b.shape[-2:]))


def solve_triangle(
    a: Array, b: Array, *, lower: bool, left: bool = True, transpose: bool = False, conjugate: bool = False, unit: bool = False
) -> Array:
    """X of `op(a) X = b` (`left`) or `X op(a) = b`; op transposes and conjugates as asked. Batches broadcast; only one triangle of `a` is read."""
    a, b = share_batch(a, b)
    if b.size == 0:
        return b
    return lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=transpose or conjugate, conjugate_a=conjugate, unit_diagonal=unit
    )


@lowering("linalg_cholesky_ex")
def cholesky_ex(self: Array, *, upper: bool, check_errors: bool) -> tuple[Array, Array]:
    """L of `self = L L^H` (U of `U^H U` with `upper`) and the order of the first leading minor that is not positive."""
    matrix = adjoint(self) if upper else self
    if self.size == 0:
        return self, jnp.zeros(self.shape[:-2], np.int32)
    factor = lax.linalg.cholesky(matrix, symmetrize_input=False)
    failed = jnp.any(jnp.isnan(factor), axis=(-2, -1))
    info = lax.cond(jnp.any(failed), _first_bad_minor, lambda m: jnp.zeros(m.shape[:-2], np.int32), matrix)
    return adjoint(factor) if upper else factor, jnp.where(failed, info, np.int32(0))


@lowering("cholesky")
def cholesky(self: Array, upper: bool) -> Array:
    """The factor alone (the older operator); a matrix that has none is found by its check in `bounds`."""
    return cholesky_ex(self, upper=upper, check_errors=False)[0]


def _first_bad_minor(matrix: Array) -> Array:
    """The 1-based number of the first pivot that is not positive in a column-by-column factorization; runs only after a failure."""
    n = matrix.shape[-1]
    below = jnp.arange(n, dtype=np.int32)

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, info = state
        column = lax.dynamic_index_in_dim(rest, k, -1, keepdims=False)
        pivot = jnp.real(lax.dynamic_index_in_dim(column, k, -1, keepdims=True))
        bad = ~(pivot[..., 0] > 0) & (info == 0)
        scaled = jnp.where(below > k, column / jnp.sqrt(jnp.where(pivot > 0, pivot, 1)).astype(column.dtype), 0)
        return rest - scaled[..., :, None] * jnp.conj(scaled)[..., None, :], jnp.where(bad, k.astype(np.int32) + 1, info)

    start = (matrix, jnp.zeros(matrix.shape[:-2], np.int32))
    info: Array = lax.fori_loop(jnp.int32(0), jnp.int32(n), eliminate, start)[1]
    return info


@lowering("cholesky_inverse")
def cholesky_inverse(self: Array, upper: bool) -> Array:
    """The inverse of the matrix whose Cholesky factor is `self`."""
    identity = jnp.broadcast_to(jnp.eye(self.shape[-1], dtype=self.dtype), self.shape)
    half = solve_triangle(self, identity, lower=not upper)
    return multiply(half, adjoint(half)) if upper else multiply(adjoint(half), half)


@lowering("cholesky_solve", "_cholesky_solve_helper")
def cholesky_solve(self: Array, factor: Array, upper: bool) -> Array:
    """X of `A X = self`, A given by its Cholesky factor."""
    half = solve_triangle(factor, self, lower=not upper, conjugate=upper)
    return solve_triangle(factor, half, lower=not upper, conjugate=not upper)


@lowering("linalg_solve_triangular")
def linalg_solve_triangular(self: Array, B: Array, *, upper: bool, left: bool, unitriangular: bool) -> Array:
    return solve_triangle(self, B, lower=not upper, left=left, unit=unitriangular)


@lowering("triangular_solve")
def triangular_solve(self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, Array]:
    """X of `A X = self` (`A^T X` with `transpose`) and a copy of A, both with the shared batch."""
    matrix, right = share_batch(A, self)
    return solve_triangle(matrix, right, lower=not upper, transpose=transpose, unit=unitriangular), matrix


def lu_factor(matrix: Array) -> tuple[Array, Array, Array]:
    """Packed LU [*, m, n], pivots [*, min(m, n)] (1-based, int32), and the 1-based place of the first zero on U's diagonal (0: none)."""
    batch, (m, n) = matrix.shape[:-2], matrix.shape[-2:]
    if matrix.size == 0:
        empty = jnp.broadcast_to(jnp.arange(1, min(m, n) + 1, dtype=np.int32), (*batch, min(m, n)))
        return matrix, empty, jnp.zeros(batch, np.int32)
    packed, pivots, _ = lax.linalg.lu(matrix)
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    first = jnp.argmax(zero, axis=-1).astype(np.int32) + 1
    return packed, pivots.astype(np.int32) + 1, jnp.where(jnp.any(zero, axis=-1), first, np.int32(0))


def _refuse_without_pivoting(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("LU without pivoting (pivot=False) is not implemented on the device tpu, as it is not on the CPU; use pivot=True")


@lowering("linalg_lu_factor_ex")
def linalg_lu_factor_ex(A: Array, *, pivot: bool, check_errors: bool) -> tuple[Array, Array, Array]:
    """See `lu_factor`. Raises RuntimeError for `pivot=False`."""
    _refuse_without_pivoting(pivot)
    return lu_factor(A)


def permutation_matrix(pivots: Array, size: int, dtype: np.dtype) -> Array:
    """P [*, size, size] of `A = P L U` from 1-based row exchanges."""
    if pivots.shape[-1] == 0:
        return jnp.broadcast_to(jnp.eye(size, dtype=dtype), (*pivots.shape[:-1], size, size))
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, size)
    return (order[..., None, :] == jnp.arange(size, dtype=order.dtype)[:, None]).astype(dtype)


@lowering("lu_unpack")
def lu_unpack(LU_data: Array, LU_pivots: Array, unpack_data: bool, unpack_pivots: bool) -> tuple[Array, Array, Array]:
    """P, L, U; those not asked for have shape [0]."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    nothing = jnp.zeros((0,), LU_data.dtype)
    p = permutation_matrix(LU_pivots, m, np.dtype(LU_data.dtype)) if unpack_pivots else nothing
    if not unpack_data:
        return p, nothing, nothing
    lower = jnp.tril(LU_data[..., :, :k], -1) + jnp.eye(m, k, dtype=LU_data.dtype)
    return p, lower, jnp.triu(LU_data[..., :k, :])


@lowering("linalg_lu")
def linalg_lu(A: Array, *, pivot: bool) -> tuple[Array, Array, Array]:
    """P, L, U of `A = P L U`. Raises RuntimeError for `pivot=False`."""
    _refuse_without_pivoting(pivot)
    packed, pivots, _ = lu_factor(A)
    return lu_unpack(packed, pivots, True, True)


@lowering("linalg_lu_solve")
def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool, adjoint: bool) -> Array:
    """X of `A X = B` (`left`) or `X A = B`, with A^H for A if `adjoint`; A by `lu_factor`. Batches broadcast."""
    if not left:
        # X A = B is A^H X^H = B^H.
        turned = linalg_lu_solve(LU, pivots, jnp.conj(jnp.swapaxes(B, -1, -2)), left=True, adjoint=not adjoint)
        return jnp.conj(jnp.swapaxes(turned, -1, -2))
    LU, B = share_batch(LU, B)
    if B.size == 0:
        return B
    order = jnp.broadcast_to(lax.linalg.lu_pivots_to_permutation(pivots - 1, LU.shape[-1]), (*LU.shape[:-2], LU.shape[-1]))
    if not adjoint:
        rows = jnp.take_along_axis(B, order[..., :, None], axis=-2)
        return solve_triangle(LU, solve_triangle(LU, rows, lower=True, unit=True), lower=False)
    half = solve_triangle(LU, B, lower=False, conjugate=True)
    found = solve_triangle(LU, half, lower=True, unit=True, conjugate=True)
    return jnp.take_along_axis(found, jnp.argsort(order, axis=-1)[..., :, None], axis=-2)


@lowering("_linalg_solve_ex")
def linalg_solve_ex(A: Array, B: Array, *, left: bool, check_errors: bool) -> tuple[Array, Array, Array, Array]:
    """X of `A X = B` (`left`) or `X A = B` and the factors of A with their info. `B` is a matrix, or a vector (for each A)."""
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    packed, pivots, info = lu_factor(A)
    found = linalg_lu_solve(packed, pivots, B[..., None] if vector else B, left=left, adjoint=False)
    return found[..., 0] if vector else found, packed, pivots, info


@lowering("linalg_inv_ex")
def linalg_inv_ex(A: Array, *, check_errors: bool) -> tuple[Array, Array]:
    """The inverse, and the place of the first zero pivot."""
    packed, pivots, info = lu_factor(A)
    identity = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    return linalg_lu_solve(packed, pivots, identity, left=True, adjoint=False), info


@lowering("trace")
def trace(self: Array) -> Array:
    """The sum of the diagonal; of integers and bools in int64."""
    diagonal = jnp.diagonal(self)
    whole = not jnp.issubdtype(self.dtype, jnp.inexact)
    return jnp.sum(diagonal, dtype=np.int64 if whole else self.dtype)


@lowering("linalg_cross")
def linalg_cross(self: Array, other: Array, *, dim: int) -> Array:
    """The vector product along `dim` (length 3) of broadcast operands."""
    a, b = jnp.broadcast_arrays(self, other)
    a0, a1, a2 = (lax.index_in_dim(a, i, dim % a.ndim, keepdims=False) for i in range(3))
    b0, b1, b2 = (lax.index_in_dim(b, i, dim % a.ndim, keepdims=False) for i in range(3))
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=dim)
