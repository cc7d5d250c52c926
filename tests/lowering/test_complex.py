"""Complex numbers against CPU torch."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.direct import assert_same, floats
from tests.lowering.replay import assert_opinfo, call, to_tensor
from tpu_lab.lowering.registry import find


def plane(signed_zeros: bool) -> torch.Tensor:
    """Points on and off the axes; on the axes with both signs of zero."""
    parts = (0.0, 1.0, -2.0, 0.3, 3.0, -3.0) + ((-0.0,) if signed_zeros else ())
    return torch.tensor([complex(a, b) for a in parts for b in parts], dtype=torch.complex64)


@pytest.mark.parametrize("name, only", [("complex", "complex"), ("polar", "polar"), ("angle", "angle"), ("conj_physical", "_conj_physical")])
def test_opinfo_samples(name: str, only: str) -> None:
    dtypes = (torch.float32, torch.float64, torch.complex64) if name != "angle" else (torch.float32, torch.int64, torch.bool, torch.complex64)
    assert assert_opinfo(name, dtypes, only={only}, limit=3)


@pytest.mark.parametrize("overload", ["sqrt", "log", "acos", "acosh", "asin", "asinh", "angle"])
def test_sides_of_branch_cuts(overload: str) -> None:
    assert_same(overload, plane(signed_zeros=True))


@pytest.mark.parametrize(
    "overload",
    ["abs", "angle", "atan", "atanh", "exp", "neg", "reciprocal", "rsqrt", "sgn", "sigmoid", "sin", "sinc", "tan", "tanh", "isnan", "isinf"],
)
def test_complex_functions(overload: str) -> None:
    z = plane(signed_zeros=False)
    z = z[(z != 0) | torch.tensor(overload in ("abs", "angle", "sgn", "exp", "sin", "sinc"))]
    z = z[(z != torch.tensor(1.0)) & (z.abs() != 1)] if overload in ("atan", "atanh") else z
    assert_same(overload, z)


@pytest.mark.parametrize("overload", ["add.Tensor", "sub.Tensor", "mul.Tensor", "pow.Tensor_Tensor", "eq.Tensor", "logical_and", "logaddexp"])
def test_complex_pairs(overload: str) -> None:
    z = plane(signed_zeros=False)
    z = z[z != 0] if overload == "pow.Tensor_Tensor" else z
    assert_same(overload, z[:, None], z, rtol=1e-5)


def test_complex_division_and_powers() -> None:
    z = plane(signed_zeros=False)
    z = z[z != 0]
    assert_same("div.Tensor", z[:, None], z)
    for exponent in (0, 1, 2, 3, -1, 0.5, 1.5, 2 - 1j):
        assert_same("pow.Tensor_Scalar", z, exponent, rtol=1e-5)
    assert_same("pow.Scalar", 2 + 1j, z, rtol=1e-5)
    zero = torch.zeros(1, dtype=torch.complex64)
    assert_same("pow.Tensor_Tensor", zero, torch.tensor([1 + 0j, 2 - 1j, 0.5 + 3j]))


def test_angle_of_reals() -> None:
    assert_same("angle", floats(torch.float32))
    assert_same("angle", torch.tensor([-2, 0, 3]))


def test_copies_of_views() -> None:
    z = plane(signed_zeros=True)
    assert_same("view_as_real_copy", z)
    assert_same("view_as_complex_copy", torch.view_as_real(z).contiguous())
    assert_same("_conj_copy", z)
    assert_same("_conj_physical", z)


def test_real_alpha_keeps_infinities() -> None:
    """Where torch multiplies by 2 + 0i and gets inf + NaN i."""
    op, found = torch.ops.aten.add.Tensor, find("add.Tensor")
    assert found is not None
    got = to_tensor(call(found, op, (torch.tensor([1j]), torch.tensor([complex(math.inf, 0)])), {"alpha": 2}), torch.complex64)
    assert got.item() == complex(math.inf, 1)


def test_complex_factors() -> None:
    z = torch.tensor([2 + 1j, -1j])
    assert_same("add.Tensor", z, z[:, None], alpha=2 + 1j)
    assert_same("addcmul", z, z[:, None], torch.tensor([1 - 3j]), value=2 + 1j)
    assert_same("addcdiv", z, z[:, None], torch.tensor([1 - 3j]), value=2)
