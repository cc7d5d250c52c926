"""Comparisons, logic, bits, choices and limits against CPU torch; and that no elementwise operator was forgotten."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.direct import check, floats, grid, integers
from tests.lowering.replay import check_opinfo, overload_name
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
    checked = check_opinfo(name, (torch.float32, torch.int64, torch.bool), only=SAMPLED[name], limit=2, grad=False)
    assert set(checked) == SAMPLED[name]


@pytest.mark.parametrize("overload", [*(f"{name}.Tensor" for name in COMPARISONS), *EXTREMES, "logical_and", "logical_or", "logical_xor"])
def test_edge_pairs(overload: str) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        check(overload, *grid(integers(dtype) if dtype == torch.int64 else floats(dtype)))
    check(overload, *grid(torch.tensor([True, False])))


@pytest.mark.parametrize("name", COMPARISONS)
def test_number_is_rounded_to_the_tensor_before_comparing(name: str) -> None:
    check(f"{name}.Scalar", torch.tensor([0.1, 0.2], dtype=torch.bfloat16), 0.1)
    check(f"{name}.Scalar", torch.tensor([0.1, 0.2]), 0.1)
    check(f"{name}.Scalar", torch.tensor([2, 3]), 2.5)
    check(f"{name}.Scalar", torch.tensor([2**53 + 1, 2**53]), 2**53 + 1)
    check(f"{name}.Scalar", torch.tensor([True, False]), 1)


@pytest.mark.parametrize("overload", ["isnan", "isinf", "isposinf", "isneginf", "logical_not"])
def test_kinds_of_numbers(overload: str) -> None:
    check(overload, floats(torch.bfloat16))
    check(overload, integers(torch.int64))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8])
def test_shifts_out_of_range(dtype: torch.dtype) -> None:
    for overload in ("bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "__lshift__.Tensor", "__rshift__.Tensor"):
        check(overload, *grid(integers(dtype)))


@pytest.mark.parametrize("overload", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_with_numbers(overload: str) -> None:
    check(f"{overload}.Scalar", integers(torch.int16), -6)
    check(f"{overload}.Scalar_Tensor", 5, integers(torch.uint8))
    check(f"{overload}.Tensor", torch.tensor([True, False]), torch.tensor([3, 4]))


def test_shifts_with_numbers() -> None:
    x = integers(torch.int32)
    for overload in ("__lshift__.Scalar", "__rshift__.Scalar", "bitwise_left_shift.Tensor_Scalar", "bitwise_right_shift.Tensor_Scalar"):
        check(overload, x, 3)
    for overload in ("bitwise_left_shift.Scalar_Tensor", "bitwise_right_shift.Scalar_Tensor"):
        check(overload, 1000, torch.tensor([0, 1, 5, 40]))
    for dtype in (torch.int32, torch.bool):
        check("bitwise_not", integers(dtype) if dtype != torch.bool else torch.tensor([True, False]))


@pytest.mark.parametrize("low, high", [(None, 1.0), (-1.0, None), (-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (-1, 1)])
def test_clamp_with_numbers(low: float | None, high: float | None) -> None:
    check("clamp", floats(torch.float32), low, high)
    if low == low:
        check("clamp", torch.tensor([-5, 0, 5]), low, high)


def test_clamp_with_tensors_and_one_limit() -> None:
    x, limit = floats(torch.float32), torch.tensor([math.nan, -1.0, 2.0])
    check("clamp.Tensor", x[:, None], limit, torch.tensor([1.0, 1.0, 1.0]))
    check("clamp.Tensor", x[:, None], None, limit)
    check("clamp_min", x, 0.5)
    check("clamp_max", x.bfloat16(), 0.1)
    check("clamp_min", torch.tensor([1, 2, 3]), 1.5)


def test_where_promotes() -> None:
    condition = torch.tensor([True, False, True])
    check("where.self", condition, torch.tensor([1.5, 2.5, math.nan]), torch.tensor(7))
    check("where.self", condition, torch.tensor([1, 2, 3]), torch.tensor([0.5], dtype=torch.bfloat16))
    check("where.self", condition[:, None], torch.tensor([1, 2, 3], dtype=torch.int8), torch.tensor([4, 5, 6]))
    check("where.ScalarSelf", condition, 1.5, torch.tensor([1, 2, 3]))
    check("where.ScalarOther", condition, torch.tensor([1, 2, 3]), 2)
    check("where.Scalar", condition, 1, 0.5)


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
