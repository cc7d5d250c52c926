"""Linear algebra operators whose meaning depends on strides, or whose result sizes torch states nowhere, in operators that are lowered.

PyTorch's derivatives of `det` and `slogdet` take the LU factors from the forward operator, which holds those of the
transpose where the matrix is contiguous and real. The choice is made here, on the tensors of the call, as ATen makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _factor(A: Tensor) -> tuple[Tensor, Tensor]:
    """LU and pivots of A, or of its transpose where A is contiguous and real."""
    turned = A.is_contiguous() and not A.is_complex()
    LU, pivots, _ = aten.linalg_lu_factor_ex.default(A.mT if turned else A)
    return LU, pivots


def _parity(pivots: Tensor) -> Tensor:
    """True where the row exchanges are an odd number."""
    places = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return (pivots != places).sum(-1) % 2 == 1


def _det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`_linalg_det`: the determinant and the factors."""
    LU, pivots = _factor(A)
    product = LU.diagonal(dim1=-2, dim2=-1).prod(-1)
    return torch.where(_parity(pivots), -product, product), LU, pivots


def _slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`_linalg_slogdet`: the determinant's sign (phase) and the logarithm of its size, and the factors."""
    LU, pivots = _factor(A)
    diagonal = LU.diagonal(dim1=-2, dim2=-1)
    phase = diagonal.sgn().prod(-1)
    return torch.where(_parity(pivots), -phase, phase), diagonal.abs().log().sum(-1), LU, pivots


def _lstsq(self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`linalg_lstsq` by singular values: the solution of least norm, residuals, rank, singular values as `driver` states them.

    The default driver is the CPU's, `gelsy`. Raises NotImplementedError for `gelss` and `gelsd`, whose residuals exist or not
    depending on values.
    """
    if self.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy"):
        raise NotImplementedError(f"linalg.lstsq with driver={driver!r} has results whose size depends on values; use driver='gelsy' or 'gels'")
    m, n = self.shape[-2:]
    vector = b.ndim == 1 or (self.ndim - 1 == b.ndim and b.shape == self.shape[:-1])
    right = b.unsqueeze(-1) if vector else b
    U, S, Vh = aten._linalg_svd.default(self, False, True)
    limit = torch.finfo(S.dtype).eps * max(m, n) if rcond is None else rcond
    kept = limit * S.amax(-1, keepdim=True) < S
    inverse = torch.where(kept, 1 / S, torch.zeros_like(S)).to(self.dtype)
    solution = Vh.mH @ (inverse.unsqueeze(-1) * (U.mH @ right))
    nothing = S.new_empty((0,))
    if driver == "gels":
        rest = self @ solution - right
        residuals = (rest * rest.conj()).real.sum(-2) if m > n else nothing
        return solution.squeeze(-1) if vector else solution, residuals, S.new_empty((0,), dtype=torch.int64), nothing
    return solution.squeeze(-1) if vector else solution, nothing, kept.sum(-1), nothing


def _pinv(self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """`linalg_pinv.atol_rtol_tensor`: singular values (of a Hermitian matrix: eigenvalues) up to `max(atol, rtol * largest)` count as zero.

    Where neither is given, or `atol` is zero, `rtol` is the dtype's eps times the longer side.
    """
    m, n = self.shape[-2:]
    if self.numel() == 0:
        return self.new_empty((*self.shape[:-2], n, m))
    if hermitian:
        values, V = aten._linalg_eigh.default(self, "L", True)
        sizes, U = values.abs(), V
    else:
        U, values, Vh = aten._linalg_svd.default(self, False, True)
        sizes, V = values, Vh.mH
    usual = torch.finfo(values.dtype).eps * max(m, n)
    limit = sizes.amax(-1, keepdim=True)
    if rtol is not None:
        limit = limit * rtol.unsqueeze(-1)
    elif atol is not None:
        limit = limit * torch.where(atol > 0, 0.0, usual).unsqueeze(-1)
    else:
        limit = limit * usual
    if atol is not None:
        limit = torch.maximum(limit, atol.unsqueeze(-1).to(limit.dtype))
    inverse = torch.where(sizes > limit, 1 / values, torch.zeros_like(values)).to(self.dtype)
    found: Tensor = V @ (inverse.unsqueeze(-1) * U.mH)
    return found


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._linalg_det.default: _det,
    aten._linalg_slogdet.default: _slogdet,
    aten.linalg_lstsq.default: _lstsq,
    aten.linalg_pinv.atol_rtol_tensor: _pinv,
}
"""Overload, then what it is in other operators; for `decompose.decomposition_table`."""
