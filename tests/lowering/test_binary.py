"""Elementwise arithmetic of two and three operands against CPU torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.lowering.direct import assert_same, floats, grid, integers
from tests.lowering.replay import assert_opinfo

SAMPLED = {
    "add": {"add.Tensor"},
    "addcdiv": {"addcdiv"},
    "addcmul": {"addcmul"},
    "atan2": {"atan2"},
    "copysign": {"copysign.Tensor"},
    "div": {"div.Tensor", "div.Tensor_mode"},
    "floor_divide": {"floor_divide"},
    "fmod": {"fmod.Tensor"},
    "gcd": {"gcd"},
    "heaviside": {"heaviside"},
    "hypot": {"hypot"},
    "lcm": {"lcm"},
    "ldexp": {"ldexp.Tensor"},
    "lerp": {"lerp.Scalar", "lerp.Tensor"},
    "logaddexp": {"logaddexp"},
    "logaddexp2": {"logaddexp2"},
    "mul": {"mul.Tensor"},
    "nextafter": {"nextafter"},
    "pow": {"pow.Tensor_Tensor"},
    "remainder": {"remainder.Tensor"},
    "rsub": {"rsub.Tensor"},
    "special.xlog1py": {"special_xlog1py"},
    "sub": {"sub.Tensor"},
    "xlogy": {"xlogy.Tensor"},
}
_EVERYWHERE = """add.Tensor sub.Tensor rsub.Tensor mul.Tensor div.Tensor atan2 hypot copysign.Tensor nextafter logaddexp logaddexp2 xlogy.Tensor
special_xlog1py heaviside pow.Tensor_Tensor"""
WITH_NUMBER = {
    "add.Scalar": (2.5,),
    "sub.Scalar": (2.5, 3),
    "rsub.Scalar": (2.5, 2),
    "mul.Scalar": (0.3,),
    "div.Scalar": (0.3,),
    "floor_divide.Scalar": (-3,),
    "remainder.Scalar": (2.5,),
    "fmod.Scalar": (-2.5,),
    "copysign.Scalar": (-0.0,),
    "xlogy.Scalar_Other": (0.5,),
    "special_xlog1py.other_scalar": (0.5,),
}
NUMBER_FIRST = {"pow.Scalar": 2.5, "remainder.Scalar_Tensor": 7, "xlogy.Scalar_Self": 0, "special_xlog1py.self_scalar": 2}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo_samples(name: str) -> None:
    only = SAMPLED[name]
    limit = {"div": 3, "lerp": 5}.get(name, 1)
    checked = assert_opinfo(name, (torch.float32, torch.int64, torch.bool, torch.complex64), only=only, limit=limit, grad=False)
    assert set(checked) == only


@pytest.mark.parametrize("overload", _EVERYWHERE.split())
def test_edge_pairs(overload: str) -> None:
    assert_same(overload, *grid(floats(torch.float32)))


@pytest.mark.parametrize("overload", ["add.Tensor", "div.Tensor", "copysign.Tensor", "nextafter", "hypot", "pow.Tensor_Tensor"])
def test_edge_pairs_of_bfloat16(overload: str) -> None:
    assert_same(overload, *grid(floats(torch.bfloat16)))


@pytest.mark.parametrize("overload", ["floor_divide", "remainder.Tensor", "fmod.Tensor"])
def test_division_with_remainder_of_edge_pairs(overload: str) -> None:
    x = floats(torch.float32)
    moderate = x[(x.abs() < 1e9) & ((x == 0) | (x.abs() > 1e-9)) | ~x.isfinite()]
    assert_same(overload, *grid(moderate))


def test_remainder_of_huge_numbers_is_exact() -> None:
    """CPU torch's vectorized fmod gives NaN beyond 2**31; its float64 does not."""
    x = torch.tensor([3e30, -3e30, 1e20], dtype=torch.float64)
    for overload in ("fmod.Tensor", "remainder.Tensor"):
        assert_same(overload, x, torch.tensor([7.0, 7.0, -3.0], dtype=torch.float64))


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_rounding_modes(mode: str | None) -> None:
    x = torch.tensor([7.0, -7.0, 1.0, -1.0, 0.0, 5.5, math.inf, -math.inf, math.nan])
    assert_same("div.Tensor_mode", *grid(x), rounding_mode=mode)
    assert_same("div.Tensor_mode", *grid(torch.tensor([7, -7, 8, -8, 0, 1]), torch.tensor([2, -2, 3, -3])), rounding_mode=mode)
    assert_same("div.Tensor_mode", torch.tensor([7, 200], dtype=torch.uint8), torch.tensor([2, 3], dtype=torch.uint8), rounding_mode=mode)
    assert_same("div.Scalar_mode", torch.tensor([7, -7]), 2, rounding_mode=mode)
    assert_same("div.Scalar_mode", torch.tensor([7, -7]), 1.5, rounding_mode=mode)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8])
@pytest.mark.parametrize("overload", ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "copysign.Tensor"])
def test_integer_pairs_wrap(overload: str, dtype: torch.dtype) -> None:
    assert_same(overload, *grid(integers(dtype)))


@pytest.mark.parametrize("overload", ["floor_divide", "remainder.Tensor", "fmod.Tensor", "gcd", "lcm"])
def test_integer_division(overload: str) -> None:
    x = integers(torch.int16)
    x = x[x > torch.iinfo(torch.int16).min]
    assert_same(overload, *grid(x, x[x != 0] if "cm" not in overload and "gcd" not in overload else x))
    assert_same(overload, torch.tensor([0, 7, 255, 12], dtype=torch.uint8), torch.tensor([1, 3, 10, 18], dtype=torch.uint8))


@pytest.mark.parametrize("overload", WITH_NUMBER)
def test_number_as_second_operand(overload: str) -> None:
    for tensor in (floats(torch.float32, finite=True)[:-4], torch.tensor([2.0, -1.5, 0.25], dtype=torch.bfloat16), torch.tensor([3, -4, 0])):
        assert_same(overload, tensor, *WITH_NUMBER[overload])


@pytest.mark.parametrize("overload", NUMBER_FIRST)
def test_number_as_first_operand(overload: str) -> None:
    for tensor in (torch.tensor([0.5, 2.0, -1.5]), torch.tensor([0.5, 3.0], dtype=torch.bfloat16), torch.tensor([3, 4])):
        assert_same(overload, NUMBER_FIRST[overload], tensor)


@pytest.mark.parametrize("overload", ["fmod.Scalar", "remainder.Scalar", "floor_divide.Scalar"])
def test_number_is_rounded_to_the_tensor_before_a_remainder(overload: str) -> None:
    assert_same(overload, torch.tensor([1.0, 7.0, -3.0], dtype=torch.bfloat16), 0.1)


EXPONENTS: tuple[Any, ...] = (0, 1, 2, 3, 4, 8, 9, -1, -2, -3, 0.5, -0.5, 1.5, 2.0, math.inf, -math.inf, math.nan, True)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_power_with_known_exponent(exponent: Any) -> None:
    assert_same("pow.Tensor_Scalar", floats(torch.float32), exponent)
    if isinstance(exponent, int) and exponent >= 0:
        assert_same("pow.Tensor_Scalar", integers(torch.int8), exponent)
    if exponent in (1.5, 2.0):
        assert_same("pow.Tensor_Scalar", integers(torch.int64), exponent)
        assert_same("pow.Tensor_Scalar", torch.tensor([0.5, 3.0, -2.0], dtype=torch.bfloat16), exponent)


def test_power_of_bool() -> None:
    assert_same("pow.Tensor_Scalar", torch.tensor([True, False]), 3)
    assert_same("pow.Tensor_Tensor", torch.tensor([True, False]), torch.tensor([0, 2]))


def test_promotion_of_zero_dimensions_and_numbers() -> None:
    bf16, i64, zero_dim = torch.tensor([1.5, 2.0], dtype=torch.bfloat16), torch.tensor([3, 4]), torch.tensor(2.5, dtype=torch.float64)
    for a, b in ((bf16, zero_dim), (i64, zero_dim), (bf16, i64), (torch.tensor(True), i64), (i64, torch.tensor(2, dtype=torch.int8))):
        assert_same("add.Tensor", a, b, alpha=2)
        assert_same("mul.Tensor", a, b)
    assert_same("add.Tensor", torch.tensor([True, False, False]), torch.tensor([True, True, False]))
    assert_same("mul.Tensor", torch.tensor([True, False, False]), torch.tensor([True, True, False]))


def test_ldexp_of_far_exponents() -> None:
    x = torch.tensor([1e-30, 1.0, -3.0, 0.0, math.inf, math.nan])
    assert_same("ldexp.Tensor", *grid(x, torch.tensor([150, -90, 3, 0])))
    assert_same("ldexp.Tensor", torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, -1.25, math.nan]))


@pytest.mark.parametrize("weight", [0.3, 0.7, 1.0, math.nan])
def test_lerp(weight: float) -> None:
    x = torch.tensor([1.0, -2.0, 1e30, math.inf])
    assert_same("lerp.Scalar", *grid(x), weight)
    assert_same("lerp.Tensor", *grid(x), torch.tensor(weight))


def test_three_operands() -> None:
    x = torch.tensor([2.0, -3.0, 0.5])
    assert_same("addcmul", x, x[:, None], x, value=2.5)
    assert_same("addcdiv", x, x[:, None], x, value=-0.5)
    assert_same("addcmul", torch.tensor([1, 2]), torch.tensor([3, 4]), torch.tensor([5, 6]), value=3)
    assert_same("addcmul", x.bfloat16(), x.bfloat16(), x.bfloat16(), value=2.5)


@pytest.mark.parametrize("overload", ["mul.Tensor", "div.Tensor", "addcmul"])
def test_a_mask_does_not_swallow_nan(overload: str) -> None:
    """XLA takes `mask * x` for a choice between x and 0; False * nan is nan."""
    mask, x = torch.tensor([False, True, False, False]), torch.tensor([math.nan, math.inf, math.inf, 0.0])
    assert_same(overload, *((mask.float(), mask, x) if overload == "addcmul" else (mask, x)))
