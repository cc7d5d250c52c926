"""Linear algebra against LAPACK through torch: OpInfo samples where results are unique, defining properties where they are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tpu_lab.device.graph.linalg_decompositions import DECOMPOSITIONS
from tpu_lab.lowering.registry import find

from .replay import assert_opinfo, call, compare, to_tensor

ATEN = torch.ops.aten
UNIQUE = {
    "linalg.cholesky_ex": {"linalg_cholesky_ex"},
    "cholesky_inverse": {"cholesky_inverse"},
    "cholesky_solve": {"cholesky_solve"},
    "linalg.solve_triangular": {"linalg_solve_triangular"},
    "triangular_solve": {"triangular_solve"},
    "linalg.lu_factor_ex": {"linalg_lu_factor_ex"},
    "linalg.lu": {"linalg_lu"},
    "lu_unpack": {"lu_unpack"},
    "linalg.lu_solve": {"linalg_lu_solve"},
    "linalg.solve": {"_linalg_solve_ex", "linalg_lu_solve"},
    "linalg.inv_ex": {"linalg_inv_ex"},
    "linalg.cross": {"linalg_cross"},
    "linalg.qr": {"linalg_qr"},
    "geqrf": {"geqrf"},
    "linalg.householder_product": {"linalg_householder_product"},
    "ormqr": {"ormqr"},
    "linalg.eig": {"linalg_eig"},
    "trace": {"trace"},
}


@pytest.mark.filterwarnings("ignore:torch.triangular_solve")
@pytest.mark.parametrize("name", UNIQUE)
def test_opinfo(name: str) -> None:
    grad = name == "linalg.solve"
    checked = assert_opinfo(name, (torch.float32, torch.complex64), only=UNIQUE[name], limit=4, grad=grad, rtol=1e-3, atol=1e-4)
    assert set(checked) == UNIQUE[name]


def run(op: Any, *args: Any, **named: Any) -> list[torch.Tensor]:
    """A lowering's results as tensors of the dtypes torch gives them, with the shapes checked."""
    found = find(op.name().removeprefix("aten::"))
    assert found is not None
    expected = op(*args, **named)
    actual = call(found, op, args, named)
    expected, actual = ([expected], [actual]) if isinstance(expected, torch.Tensor) else (expected, actual)
    out = [to_tensor(a, e.dtype) for a, e in zip(actual, expected, strict=True)]
    assert [tuple(o.shape) for o in out] == [tuple(e.shape) for e in expected]
    return out


def matrices(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("side", ["L", "U"])
def test_eigh(dtype: torch.dtype, side: str) -> None:
    """Vectors are free in sign, phase and within a degenerate space; what they build is not. Only one triangle is read."""
    a = matrices(2, 4, 4, dtype=dtype)
    whole = a.tril() if side == "L" else a.triu()
    hermitian = whole + whole.mH - torch.diag_embed(whole.diagonal(dim1=-2, dim2=-1).real).to(dtype)
    hermitian = hermitian - 1j * torch.diag_embed(hermitian.diagonal(dim1=-2, dim2=-1).imag) if dtype.is_complex else hermitian
    values, vectors = run(ATEN._linalg_eigh.default, a, side)
    assert_close(values, torch.linalg.eigvalsh(a, UPLO=side))
    assert_close(vectors @ torch.diag_embed(values).to(dtype) @ vectors.mH, hermitian)
    alone, nothing = run(ATEN._linalg_eigh.default, a, side, False)
    assert_close(alone, values)
    assert nothing.numel() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("shape", [(2, 4, 3), (3, 5), (4, 4)])
def test_svd(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    a = matrices(*shape, dtype=dtype)
    for full in (False, True):
        u, values, vh = run(ATEN._linalg_svd.default, a, full)
        k = values.shape[-1]
        assert_close(values, torch.linalg.svdvals(a))
        assert_close(u[..., :k] * values.unsqueeze(-2).to(dtype) @ vh[..., :k, :], a)
        assert_close(u.mH @ u, torch.eye(u.shape[-1], dtype=dtype).expand(u.mH.shape[:-1] + u.shape[-1:]))
    _, values, _ = run(ATEN._linalg_svd.default, a, False, False)
    assert_close(values, torch.linalg.svdvals(a))


def test_eigenvalues_alone() -> None:
    a = matrices(2, 3, 3)
    (values,) = run(ATEN._linalg_eigvals.default, a)
    assert_close(torch.view_as_real(values).sort(-2)[0], torch.view_as_real(torch.linalg.eigvals(a)).sort(-2)[0])


def test_empty_matrices() -> None:
    for op, args in (
        (ATEN._linalg_svd.default, (torch.zeros(2, 0, 3), True)),
        (ATEN._linalg_eigh.default, (torch.zeros(2, 0, 0),)),
        (ATEN.linalg_eig.default, (torch.zeros(0, 3, 3),)),
        (ATEN.linalg_qr.default, (torch.zeros(0, 3), "complete")),
        (ATEN.linalg_lu_factor_ex.default, (torch.zeros(2, 3, 0),)),
        (ATEN._linalg_solve_ex.default, (torch.zeros(0, 0), torch.zeros(0, 2))),
    ):
        run(op, *args)


def test_cholesky_says_which_minor_failed() -> None:
    good = torch.eye(4)
    batch = torch.stack([good, torch.diag(torch.tensor([1.0, -1, 1, 1])), torch.ones(4, 4), torch.diag(torch.tensor([1.0, 1, float("nan"), 1]))])
    for upper in (False, True):
        found = find("linalg_cholesky_ex")
        assert found is not None
        _, info = call(found, ATEN.linalg_cholesky_ex.default, (batch,), {"upper": upper})
        compare(info, ATEN.linalg_cholesky_ex.default(batch, upper=upper)[1], "info")


def test_singular_matrices_are_reported() -> None:
    singular = torch.tensor([[[1.0, 2], [2, 4]], [[1, 0], [0, 1]], [[0, 0], [0, 0]]])
    for op in (ATEN.linalg_inv_ex.default, ATEN.linalg_lu_factor_ex.default):
        found = find(op.name().removeprefix("aten::"))
        assert found is not None
        compare(call(found, op, (singular,), {})[-1], op(singular)[-1], "info")


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("kind", ["full", "zero diagonal", "zero"])
def test_ldl(dtype: torch.dtype, hermitian: bool, kind: str) -> None:
    """A zero diagonal needs 2 x 2 blocks; a matrix of zeros is reported by info."""
    a = matrices(3, 6, 6, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    if kind == "zero diagonal":
        a.diagonal(dim1=-2, dim2=-1).zero_()
    elif kind == "zero":
        a[0] = 0
    expected = ATEN.linalg_ldl_factor_ex.default(a, hermitian=hermitian)
    assert kind != "zero diagonal" or (expected[1] < 0).any()
    found, solver = find("linalg_ldl_factor_ex"), find("linalg_ldl_solve")
    assert found is not None and solver is not None
    compare(call(found, ATEN.linalg_ldl_factor_ex.default, (a,), {"hermitian": hermitian}), expected, "factor", 1e-3, 1e-3)
    if kind != "zero":
        args = (expected[0], expected[1], matrices(6, 2, dtype=dtype, seed=1).expand(3, 6, 2))
        compare(
            call(solver, ATEN.linalg_ldl_solve.default, args, {"hermitian": hermitian}),
            ATEN.linalg_ldl_solve.default(*args, hermitian=hermitian),
            "solve",
            1e-3,
            1e-3,
        )


def test_no_pivoting_is_refused() -> None:
    found = find("linalg_lu_factor_ex")
    assert found is not None
    with pytest.raises(RuntimeError, match="pivot=True"):
        call(found, ATEN.linalg_lu_factor_ex.default, (torch.eye(2),), {"pivot": False})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_matrix_exp(dtype: torch.dtype) -> None:
    """Relative to the matrix's size, from norms near 0 (no squaring) to 60; the golden is torch's in double precision."""
    scales = torch.tensor([1e-3, 1.0, 5.0, 12.0]).reshape(4, 1, 1)
    a = (matrices(4, 5, 5, dtype=dtype) * scales).to(dtype)
    (actual,) = run(ATEN.linalg_matrix_exp.default, a)
    exact = torch.linalg.matrix_exp(a.to(torch.complex128 if dtype.is_complex else torch.float64))
    error = (actual.to(exact.dtype) - exact).flatten(1).norm(dim=1) / exact.flatten(1).norm(dim=1)
    assert error.max() < (1e-12 if dtype == torch.float64 else 2e-5)


def test_trace_of_integers() -> None:
    (out,) = run(ATEN.trace.default, torch.full((3, 4), 100, dtype=torch.int8))
    assert out.item() == 300


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("contiguous", [True, False])
def test_determinant_decompositions_choose_the_factors_torch_saves(dtype: torch.dtype, contiguous: bool) -> None:
    a = matrices(2, 4, 4, dtype=dtype) if contiguous else matrices(2, 4, 4, dtype=dtype).mT
    for op in (ATEN._linalg_det.default, ATEN._linalg_slogdet.default):
        for mine, wanted in zip(DECOMPOSITIONS[op](a), op(a), strict=True):
            assert_close(mine, wanted)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy"])
@pytest.mark.parametrize(("shape", "right"), [((5, 3), (5, 2)), ((3, 5), (3,)), ((2, 4, 4), (2, 4, 1)), ((2, 5, 3), (2, 5))])
def test_least_squares_decomposition(driver: str | None, shape: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = matrices(*shape), matrices(*right, seed=1)
    expected = ATEN.linalg_lstsq.default(a, b, None, driver=driver)
    for mine, wanted in zip(DECOMPOSITIONS[ATEN.linalg_lstsq.default](a, b, None, driver=driver), expected, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-3, atol=1e-3)


def test_least_squares_without_full_rank() -> None:
    a = torch.tensor([[1.0, 1], [1, 1], [2, 2]])
    expected = ATEN.linalg_lstsq.default(a, torch.ones(3, 1))
    solution, _, rank, _ = DECOMPOSITIONS[ATEN.linalg_lstsq.default](a, torch.ones(3, 1))
    assert_close(solution, expected[0])
    assert rank.item() == expected[2].item() == 1
