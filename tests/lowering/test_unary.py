"""Elementwise functions of one tensor against CPU torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.lowering.direct import assert_same, floats, integers
from tests.lowering.replay import assert_opinfo, call
from tpu_lab.lowering.registry import find

_FLOATING = """acos acosh asin asinh atan atanh cos cosh deg2rad exp exp2 expm1 log log10 log1p log2 logit rad2deg reciprocal rsqrt sigmoid sin sinc
sinh sqrt tan tanh"""
_ANY_REAL = "abs ceil floor neg nan_to_num round sgn sign signbit trunc"
FLOATING, ANY_REAL = _FLOATING.split(), _ANY_REAL.split()
SAMPLED = {name: {name} for name in (*FLOATING, *ANY_REAL, "frac")} | {
    "frexp": {"frexp.Tensor"},
    "logit": {"logit", "logit_backward"},
    "round": {"round", "round.decimals"},
    "sigmoid": {"sigmoid", "sigmoid_backward"},
    "tanh": {"tanh", "tanh_backward"},
}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo_samples(name: str) -> None:
    only = SAMPLED[name]
    checked = assert_opinfo(name, (torch.float32, torch.complex64, torch.bool), only=only, limit=1 if len(only) == 1 else 6)
    assert set(checked) == only


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("overload", [*FLOATING, *ANY_REAL, "frac", "frexp.Tensor"])
def test_edge_values(overload: str, dtype: torch.dtype) -> None:
    assert_same(overload, floats(dtype))


@pytest.mark.parametrize("overload", FLOATING)
def test_integers_become_floats(overload: str) -> None:
    assert_same(overload, torch.tensor([-2, -1, 0, 1, 2, 10]))


@pytest.mark.parametrize("overload", ANY_REAL)
def test_integers_stay_integers(overload: str) -> None:
    assert_same(overload, integers(torch.int64))
    if overload in ("abs", "neg", "sgn"):
        assert_same(overload, integers(torch.int8))
        assert_same(overload, integers(torch.uint8))


@pytest.mark.parametrize("overload", ["neg", "trunc", "ceil", "round", "sgn", "abs"])
def test_sign_of_zero(overload: str) -> None:
    x = torch.tensor([0.0, -0.0, -0.3])
    op = getattr(torch.ops.aten, overload).default
    found = find(overload)
    assert found is not None
    got = torch.tensor([math.copysign(1, v) for v in call(found, op, (x,), {}).tolist()])
    assert torch.equal(got, torch.copysign(torch.ones(3), op(x)))


@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2])
def test_round_decimals_is_exact(decimals: int) -> None:
    x = torch.cat([torch.arange(-50, 50) / 8, torch.tensor([0.3, 0.7, 12345.678, -25.0, 35.0, 1e20, math.nan])])
    assert_same("round.decimals", x, decimals=decimals, atol=0)


def test_exp2_and_log2_are_exact_at_powers_of_two() -> None:
    exponent = torch.arange(-126, 128, dtype=torch.float32)
    assert_same("exp2", exponent, atol=0)
    for dtype in (torch.float32, torch.float64):
        assert_same("log2", torch.exp2(exponent.double()).to(dtype), atol=0)


def test_nan_to_num_replacements() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert_same("nan_to_num", floats(dtype), 1.5, 2.5, -3.5, atol=0)
        assert_same("nan_to_num", floats(dtype), atol=0)
    assert_same("nan_to_num", torch.complex(floats(torch.float32), floats(torch.float32).flip(0)), 1.0, None, 7.0)


@pytest.mark.parametrize("eps", [None, 0.1, -1.0])
def test_logit_limits(eps: float | None) -> None:
    x = torch.tensor([-0.5, 0.0, 0.05, 0.3, 0.5, 0.95, 1.0, 1.5, math.nan])
    assert_same("logit", x, eps)
    assert_same("logit_backward", torch.full_like(x, 1.5), x, eps)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("reach", [1.0, 1e3, 9e5, 1e30])
def test_sine_and_cosine_are_within_two_units_in_the_last_place(name: str, reach: float) -> None:
    x = torch.cat([torch.linspace(-reach, reach, 10_001), torch.tensor([0.0, -0.0, math.pi / 2, math.pi])])
    found = getattr(torch, name)(x.to("tpu")).cpu()
    exact = getattr(torch, name)(x.double())
    unit = torch.from_numpy(np.spacing(np.maximum(np.abs(exact.numpy()), 1e-30).astype(np.float32))).double()
    assert ((found.double() - exact).abs() <= 2 * unit).all()
    assert torch.equal(found[-4:-2].signbit(), exact[-4:-2].signbit())
    assert getattr(torch, name)(torch.tensor([torch.inf, torch.nan], device="tpu")).isnan().all()
