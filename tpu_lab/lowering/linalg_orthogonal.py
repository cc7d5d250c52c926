"""Orthogonal and spectral factorizations: QR and its Householder vectors, eigenvalues, singular values.

They are LAPACK's on the CPU, so signs and phases of the factors are PyTorch's too. Results that a mode does not ask for
have shape [0].
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from .registry import lowering


@lowering("linalg_qr")
def linalg_qr(A: Array, mode: str) -> tuple[Array, Array]:
    """Q and R; `mode` is `reduced`, `complete` or `r` (no Q)."""
    m, n = A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    if A.size == 0:
        identity = jnp.broadcast_to(jnp.eye(m, k, dtype=A.dtype), (*A.shape[:-2], m, k))
        return (jnp.zeros((0,), A.dtype) if mode == "r" else identity), jnp.zeros((*A.shape[:-2], k, n), A.dtype)
    if mode == "r":
        return jnp.zeros((0,), A.dtype), jnp.linalg.qr(A, mode="r")
    q, r = lax.linalg.qr(A, full_matrices=mode == "complete")
    return q, r


@lowering("geqrf")
def geqrf(self: Array) -> tuple[Array, Array]:
    """R with the Householder vectors below it, and their factors tau."""
    if self.size == 0:
        return self, jnp.zeros((*self.shape[:-2], min(self.shape[-2:])), self.dtype)
    vectors, tau = jnp.linalg.qr(self, mode="raw")
    return jnp.swapaxes(vectors, -1, -2), tau


@lowering("linalg_householder_product")
def householder_product(input: Array, tau: Array) -> Array:
    """The first columns of the product of Householder reflections."""
    if input.size == 0:
        return input
    return lax.linalg.householder_product(input, tau)


@lowering("ormqr")
def ormqr(self: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """`Q other` (`left`) or `other Q`; Q^H for Q with `transpose`. Q comes as Householder vectors."""
    return other if other.size == 0 else lax.linalg.ormqr(self, tau, other, left=left, transpose=transpose)


@lowering("_linalg_eigh")
def linalg_eigh(A: Array, UPLO: str, compute_v: bool) -> tuple[Array, Array]:
    """Ascending eigenvalues (real) and eigenvectors (columns) of the Hermitian matrix in one triangle of `A`."""
    real = jnp.real(A).dtype
    if A.size == 0:
        return jnp.zeros(A.shape[:-1], real), A if compute_v else jnp.zeros((0,), A.dtype)
    vectors, values = lax.linalg.eigh(A, lower=UPLO.upper() == "L", symmetrize_input=False)
    return values, vectors if compute_v else jnp.zeros((0,), A.dtype)


@lowering("linalg_eig")
def linalg_eig(self: Array) -> tuple[Array, Array]:
    """Complex eigenvalues and right eigenvectors of norm 1. XLA has this for the CPU only."""
    target = jnp.result_type(self.dtype, jnp.complex64)
    if self.size == 0:
        return jnp.zeros(self.shape[:-1], target), jnp.zeros(self.shape, target)
    values, vectors = lax.linalg.eig(self, compute_left_eigenvectors=False)
    return values, vectors


@lowering("_linalg_eigvals")
def linalg_eigvals(self: Array) -> Array:
    """Complex eigenvalues."""
    if self.size == 0:
        return jnp.zeros(self.shape[:-1], jnp.result_type(self.dtype, jnp.complex64))
    return lax.linalg.eig(self, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@lowering("_linalg_svd")
def linalg_svd(A: Array, full_matrices: bool, compute_uv: bool, *, driver: str | None) -> tuple[Array, Array, Array]:
    """U, descending singular values, V^H. `driver` chooses an algorithm of CUDA and changes nothing here."""
    m, n = A.shape[-2:]
    batch, k, real = A.shape[:-2], min(m, n), jnp.real(A).dtype
    nothing = jnp.zeros((0,), A.dtype)
    if A.size == 0:
        values = jnp.zeros((*batch, k), real)
        if not compute_uv:
            return nothing, values, nothing
        rows, columns = (m, n) if full_matrices else (k, k)
        u, v = (jnp.broadcast_to(jnp.eye(*shape, dtype=A.dtype), (*batch, *shape)) for shape in ((m, rows), (columns, n)))
        return u, values, v
    if not compute_uv:
        return nothing, lax.linalg.svd(A, full_matrices=False, compute_uv=False), nothing
    u, values, v = lax.linalg.svd(A, full_matrices=full_matrices)
    return u, values, v
