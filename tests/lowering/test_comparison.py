"""Comparisons, logic, bits, choices and limits against CPU torch; and that no elementwise operator was forgotten."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.direct import assert_same, floats, grid, integers
from tests.lowering.replay import assert_opinfo, overload_name
from tpu_lab.lowering.registry import find

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
EXTREMES = ("maximum", "minimum", "fmax", "fmin", "clamp_min.Tensor", "clamp_max.Tensor")
_PLAIN = "isinf isnan isneginf isposinf logical_and logical_not logical_or logical_xor maximum minimum fmax fmin bitwise_not"
SAMPLED = {name: {name} for name in _PLAIN.split()} | {
    name: {f"{name}.Tensor"}
    for name in (*COMPARISONS, "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "clamp_min", "clamp_max")
}
SAMPLED |= {"where": {"where.self"}, "clamp": {"clamp.Tensor"}}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo_samples(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.int64, torch.bool), only=SAMPLED[name], limit=2, grad=False)
    assert set(checked) == SAMPLED[name]


@pytest.mark.parametrize("overload", [*(f"{name}.Tensor" for name in COMPARISONS), *EXTREMES, "logical_and", "logical_or", "logical_xor"])
def test_edge_pairs(overload: str) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        assert_same(overload, *grid(integers(dtype) if dtype == torch.int64 else floats(dtype)))
    assert_same(overload, *grid(torch.tensor([True, False])))


@pytest.mark.parametrize("name", COMPARISONS)
def test_number_is_rounded_to_the_tensor_before_comparing(name: str) -> None:
    assert_same(f"{name}.Scalar", torch.tensor([0.1, 0.2], dtype=torch.bfloat16), 0.1)
    assert_same(f"{name}.Scalar", torch.tensor([0.1, 0.2]), 0.1)
    assert_same(f"{name}.Scalar", torch.tensor([2, 3]), 2.5)
    assert_same(f"{name}.Scalar", torch.tensor([2**53 + 1, 2**53]), 2**53 + 1)
    assert_same(f"{name}.Scalar", torch.tensor([True, False]), 1)


@pytest.mark.parametrize("overload", ["isnan", "isinf", "isposinf", "isneginf", "logical_not"])
def test_kinds_of_numbers(overload: str) -> None:
    assert_same(overload, floats(torch.bfloat16))
    assert_same(overload, integers(torch.int64))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8])
def test_shifts_out_of_range(dtype: torch.dtype) -> None:
    for overload in ("bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "__lshift__.Tensor", "__rshift__.Tensor"):
        assert_same(overload, *grid(integers(dtype)))


@pytest.mark.parametrize("overload", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_with_numbers(overload: str) -> None:
    assert_same(f"{overload}.Scalar", integers(torch.int16), -6)
    assert_same(f"{overload}.Scalar_Tensor", 5, integers(torch.uint8))
    assert_same(f"{overload}.Tensor", torch.tensor([True, False]), torch.tensor([3, 4]))


def test_shifts_with_numbers() -> None:
    x = integers(torch.int32)
    for overload in ("__lshift__.Scalar", "__rshift__.Scalar", "bitwise_left_shift.Tensor_Scalar", "bitwise_right_shift.Tensor_Scalar"):
        assert_same(overload, x, 3)
    for overload in ("bitwise_left_shift.Scalar_Tensor", "bitwise_right_shift.Scalar_Tensor"):
        assert_same(overload, 1000, torch.tensor([0, 1, 5, 40]))
    for dtype in (torch.int32, torch.bool):
        assert_same("bitwise_not", integers(dtype) if dtype != torch.bool else torch.tensor([True, False]))


@pytest.mark.parametrize("low, high", [(None, 1.0), (-1.0, None), (-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (-1, 1)])
def test_clamp_with_numbers(low: float | None, high: float | None) -> None:
    assert_same("clamp", floats(torch.float32), low, high)
    if low == low:
        assert_same("clamp", torch.tensor([-5, 0, 5]), low, high)


def test_clamp_with_tensors_and_one_limit() -> None:
    x, limit = floats(torch.float32), torch.tensor([math.nan, -1.0, 2.0])
    assert_same("clamp.Tensor", x[:, None], limit, torch.tensor([1.0, 1.0, 1.0]))
    assert_same("clamp.Tensor", x[:, None], None, limit)
    assert_same("clamp_min", x, 0.5)
    assert_same("clamp_max", x.bfloat16(), 0.1)
    assert_same("clamp_min", torch.tensor([1, 2, 3]), 1.5)


def test_where_promotes() -> None:
    condition = torch.tensor([True, False, True])
    assert_same("where.self", condition, torch.tensor([1.5, 2.5, math.nan]), torch.tensor(7))
    assert_same("where.self", condition, torch.tensor([1, 2, 3]), torch.tensor([0.5], dtype=torch.bfloat16))
    assert_same("where.self", condition[:, None], torch.tensor([1, 2, 3], dtype=torch.int8), torch.tensor([4, 5, 6]))
    assert_same("where.ScalarSelf", condition, 1.5, torch.tensor([1, 2, 3]))
    assert_same("where.ScalarOther", condition, torch.tensor([1, 2, 3]), 2)
    assert_same("where.Scalar", condition, 1, 0.5)


def test_every_elementwise_operator_has_a_lowering() -> None:
    elementwise = set()
    for name in torch._C._dispatch_get_all_op_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::") or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
            continue
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        if torch.Tag.pointwise in op.tags and not any(a.alias_info for a in (*op._schema.arguments, *op._schema.returns)):
            elementwise.add(overload_name(op))
    assert len(elementwise) > 200
    assert {name for name in elementwise if find(name) is None} == {"equal"}, "equal answers the host, so the device has it"
