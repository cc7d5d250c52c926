"""Reductions, extremes with positions and vector norms against CPU torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo, call, to_tensor
from tpu_lab.lowering.registry import find

SAMPLED = {
    "sum": {"sum", "sum.dim_IntList"},
    "nansum": {"nansum"},
    "mean": {"mean", "mean.dim"},
    "prod": {"prod", "prod.dim_int"},
    "amax": {"amax"},
    "amin": {"amin"},
    "aminmax": {"aminmax"},
    "any": {"any", "any.dim", "any.dims"},
    "all": {"all", "all.dim", "all.dims"},
    "count_nonzero": {"count_nonzero", "count_nonzero.dim_IntList"},
    "var": {"var.correction"},
    "std_mean": {"std_mean.correction"},
    "logsumexp": {"logsumexp"},
    "hash_tensor": {"hash_tensor"},
    "argmax": {"argmax"},
    "argmin": {"argmin"},
    "linalg.vector_norm": {"linalg_vector_norm"},
}
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
NAN, INF = math.nan, math.inf
ODD = torch.tensor([[1.0, NAN, 3.0, -2.0], [INF, -INF, 0.0, 0.0], [-0.0, 0.0, -0.0, 0.0], [5.0, 5.0, -7.0, -7.0]])


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = assert_opinfo(name, DTYPES, only=SAMPLED[name], limit=2, grad=False)
    assert checked.keys() & SAMPLED[name], checked


@pytest.mark.parametrize("overload", ["amax", "amin", "sum.dim_IntList", "nansum", "logsumexp", "argmax", "argmin", "any.dim", "max.dim", "min.dim"])
def test_nan_infinity_and_signed_zero(overload: str) -> None:
    for dim in (0, 1):
        assert_same(overload, ODD, [dim] if overload in ("amax", "amin", "sum.dim_IntList", "nansum", "logsumexp") else dim, True)


@pytest.mark.parametrize("overload", ["max", "min", "argmax", "argmin", "_aminmax", "sum", "prod", "any", "all", "mean"])
def test_whole_tensor(overload: str) -> None:
    assert_same(overload, ODD)
    assert_same(overload, ODD[3:])
    assert_same(overload, torch.tensor(2.5))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.bool])
def test_small_integers_do_not_overflow(dtype: torch.dtype) -> None:
    values = torch.tensor([[100, 7, 101], [100, 7, 102]]).to(dtype)
    for overload in ("sum", "prod"):
        assert_same(overload, values)
        assert_same(overload, values, dtype=torch.int16)
        assert_same(overload, values, dtype=torch.float32)
    assert_same("sum.dim_IntList", values, [1], False, dtype=torch.uint8)


@pytest.mark.parametrize("dims", [None, [], [0], [-1, 0], [2, 1, 0]])
def test_dims_none_and_empty_mean_all(dims: list[int] | None) -> None:
    values = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    for keepdim in (False, True):
        assert_same("sum.dim_IntList", values, dims, keepdim)
        assert_same("mean.dim", values, dims, keepdim)
        assert_same("var.correction", values, dims, keepdim=keepdim)
        assert_same("any.dims", values > 0.5, dims, keepdim)
        assert_same("linalg_vector_norm", values, 2, dims, keepdim)
    assert_same("amax", values, dims or [], True)


def test_empty_reductions() -> None:
    empty = torch.ones(0, 3)
    for overload, args in (("sum", ()), ("prod", ()), ("mean", ()), ("any", ()), ("all", ()), ("nansum", ())):
        assert_same(overload, empty, *args)
    assert_same("mean.dim", empty, [0])
    assert_same("sum.dim_IntList", empty.to(torch.int8), [1], True)
    assert_same("logsumexp", empty, [0])
    assert_same("var.correction", empty, [0])
    assert_same("linalg_vector_norm", empty, 3.0, [0])
    assert_same("amax", empty, [1])
    assert_same("count_nonzero.dim_IntList", empty, [0])


@pytest.mark.parametrize("correction", [None, 0, 1, 1.5, 2, 5])
def test_variance_corrections(correction: float | None) -> None:
    values = torch.tensor([[1.0, 4.0], [2.0, 2.0]])
    for overload in ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"):
        assert_same(overload, values, [1], correction=correction)
    assert_same("var_mean.correction", torch.tensor([1 + 2j, 3 - 1j]), correction=correction)


def test_variance_far_from_zero() -> None:
    values = 1e4 + torch.randn(1000, generator=torch.Generator().manual_seed(2))
    assert_same("var.correction", values, rtol=1e-4)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, INF, -INF])
def test_norm_orders(order: float) -> None:
    assert_same("linalg_vector_norm", torch.tensor([[3.0, -4.0, 0.5], [1.0, -1.0, 2.0]]), order, [1])
    assert_same("linalg_vector_norm", torch.tensor([3 + 4j, 1j]), order)
    assert_same("linalg_vector_norm", torch.tensor([3.0, -4.0]).bfloat16(), order, dtype=torch.float32)
    assert_same("linalg_vector_norm", torch.tensor([1.0, NAN]), order)


def test_norm_overloads() -> None:
    values = torch.tensor([[3.0, -4.0], [1.0, 2.0]])
    assert_same("norm.Scalar", values, 1)
    assert_same("norm.ScalarOpt_dim", values, None, [0], True)
    assert_same("norm.ScalarOpt_dtype", values.bfloat16(), 2, dtype=torch.float32)
    assert_same("norm.ScalarOpt_dim_dtype", values.bfloat16(), 3, [1], False, dtype=torch.float32)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool, torch.float16, torch.float64])
def test_first_of_equal_elements(dtype: torch.dtype) -> None:
    values = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0]]).to(dtype)
    for dim in (0, 1, -1):
        assert_same("max.dim", values, dim)
        assert_same("min.dim", values, dim, True)
    if dtype != torch.bool:
        assert_same("argmax", values)
        assert_same("argmin", values, None, True)


def test_positions_of_scalars_and_nothing() -> None:
    assert_same("max.dim", torch.tensor(3.0), 0)
    assert_same("argmin", torch.tensor(3), 0, True)
    assert_same("min.dim", torch.ones(0, 2), 1)


def test_long_float_sum_keeps_its_digits() -> None:
    """A running float32 sum of ones stops at 2**24; PyTorch's does not."""
    ones = torch.ones(2**24 + 16)
    total: Any = call(find("sum"), torch.ops.aten.sum.default, (ones,), {})  # type: ignore[arg-type]
    assert to_tensor(total, torch.float32).item() == ones.sum().item() == 2**24 + 16


def test_bfloat16_sums_in_float32() -> None:
    assert_same("sum", torch.full((4000,), 0.25, dtype=torch.bfloat16))


@pytest.mark.parametrize("n", [3, 7, 49, 99, 1000])
def test_means_are_divisions(n: int) -> None:
    """XLA would multiply by the rounded reciprocal of a constant."""
    for dtype in (torch.float32, torch.float64):
        sevens = torch.full((n,), 7.0, dtype=dtype)
        assert_same("mean", sevens, rtol=0.0, atol=0.0)
        assert_same("var_mean.correction", sevens * torch.arange(n), correction=1)


def test_truth_helpers() -> None:
    assert_same("_is_all_true", torch.tensor([True, False]))
    assert_same("_is_any_true", torch.tensor([True, False]))
    assert_same("_aminmax.dim", ODD[2:], 1, True)
