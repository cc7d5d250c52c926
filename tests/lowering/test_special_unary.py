"""Special functions against CPU torch, and against mpmath where torch itself has few digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch

from tests.lowering.direct import assert_same, floats
from tests.lowering.replay import assert_opinfo, call, to_tensor
from tpu_lab.lowering.registry import find

_SPECIAL = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 zeta"""
_EDGES = """digamma erf erfc erfinv i0 lgamma special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_ndtri
special_spherical_bessel_j0"""
SAMPLED = {
    "digamma": {"digamma", "polygamma"},
    "erf": {"erf"},
    "erfc": {"erfc"},
    "erfinv": {"erfinv"},
    "i0": {"i0", "special_i1"},
    "igamma": {"igamma"},
    "igammac": {"igammac"},
    "lgamma": {"lgamma", "digamma"},
    "mvlgamma": {"mvlgamma"},
} | {f"special.{name}": {f"special_{name}"} for name in _SPECIAL.split()}
POLYNOMIALS = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
MPMATH: dict[str, Callable[[Any], Any]] = {
    "special_bessel_j0": lambda x: mpmath.besselj(0, x),
    "special_bessel_j1": lambda x: mpmath.besselj(1, x),
    "special_bessel_y0": lambda x: mpmath.bessely(0, x),
    "special_bessel_y1": lambda x: mpmath.bessely(1, x),
    "special_modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "special_modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "special_scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "special_scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "special_airy_ai": mpmath.airyai,
    "special_erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo_samples(name: str) -> None:
    only = SAMPLED[name]
    checked = assert_opinfo(name, (torch.float32,), only=only, limit=1, rtol=1e-4, atol=2e-5)
    assert set(checked) == only


@pytest.mark.parametrize("overload", _EDGES.split())
def test_edge_values(overload: str) -> None:
    assert_same(overload, floats(torch.float32), rtol=1e-5)


@pytest.mark.parametrize("overload", MPMATH)
def test_digits_of_float64(overload: str) -> None:
    points = [1e-5, 0.1, 0.5, 1.0, 1.9, 2.0, 2.1, 3.0, 5.25, 7.9, 8.1, 12.5, 25.0, 60.0] + ([-1.5, -2.5, -4.2, -30.0] if "airy" in overload else [])
    x = torch.tensor(points, dtype=torch.float64)
    found = find(overload)
    assert found is not None
    got = to_tensor(call(found, getattr(torch.ops.aten, overload).default, (x,), {}), torch.float64)
    expected = torch.tensor([float(MPMATH[overload](mpmath.mpf(v))) for v in points], dtype=torch.float64)
    torch.testing.assert_close(got, expected, rtol=2e-13, atol=1e-15)


@pytest.mark.parametrize("overload", [name for name in MPMATH if "erfcx" not in name])
def test_bessel_at_the_ends(overload: str) -> None:
    x = torch.tensor([0.0, math.inf, math.nan] + ([] if "k" in overload.split("_")[-1] else [1000.0]))
    assert_same(overload, x, atol=1e-5)
    assert_same(overload, torch.tensor([-1.0, -3.0, 1.0, 3.0]), atol=1e-4 if "airy" in overload else 1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_on_both_sides(n: int) -> None:
    x = torch.tensor([0.3, 1.0, 2.5, 30.0, 1e4, -0.4, -1.3, -2.7, -8.2, math.nan], dtype=torch.float64)
    assert_same("polygamma", n, x, rtol=1e-9)
    found = find("polygamma")
    assert found is not None
    poles = to_tensor(call(found, torch.ops.aten.polygamma.default, (n, torch.tensor([0.0, -1.0, -2.0])), {}), torch.float32)
    assert torch.equal(poles, torch.full((3,), math.inf if n % 2 else -math.inf))


def test_gamma_functions_of_two_variables() -> None:
    values = torch.tensor([0.0, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, -1.0])
    for overload in ("igamma", "igammac", "special_zeta"):
        assert_same(overload, values[:, None], values, rtol=1e-4)
    assert_same("special_zeta.self_scalar", 2.5, values[1:-1], rtol=1e-5)
    assert_same("special_zeta.other_scalar", values, 3, rtol=1e-5)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str) -> None:
    x = torch.tensor([-2.5, -1.0, -0.9, 0.0, 0.2, 0.5, 0.99, 1.0, 1.3, math.nan])
    n = torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 9.0, 12.0, 2.7, 140.0])
    assert_same(f"special_{name}", x[:, None], n, rtol=1e-4, atol=2e-4)
    assert_same(f"special_{name}.n_scalar", x[:-1], 4, rtol=1e-5)
    assert_same(f"special_{name}.x_scalar", 0.3, n[:-1], rtol=1e-4)


@pytest.mark.parametrize("overload", ["erf", "lgamma", "special_bessel_j0", "special_entr"])
def test_integers_become_floats(overload: str) -> None:
    assert_same(overload, torch.tensor([1, 2, 3, 10]), rtol=1e-5)


def test_polynomials_take_integers() -> None:
    assert_same("special_legendre_polynomial_p", torch.tensor([2, 0, -1]), torch.tensor([0, 1, 5]))
