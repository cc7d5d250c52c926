"""Writing by index against CPU torch."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo

SAMPLED = {
    "scatter": {"scatter.src", "scatter.reduce"},
    "scatter_add": {"scatter_add"},
    "scatter_reduce": {"scatter_reduce.two"},
    "index_add": {"index_add"},
    "index_copy": {"index_copy"},
    "index_fill": {"index_fill.int_Scalar", "index_fill.int_Tensor"},
    "index_reduce": {"index_reduce"},
    "index_put": {"index_put"},
    "put": {"put"},
    "masked_fill": {"masked_fill.Scalar", "masked_fill.Tensor"},
}
TABLE = torch.arange(12.0).reshape(3, 4)


def at(*values: int) -> torch.Tensor:
    return torch.tensor(values)


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    dtypes = (torch.float32, torch.int64) if name in ("scatter_reduce", "index_reduce") else (torch.float32, torch.int64, torch.bool)
    checked = assert_opinfo(name, dtypes, only=SAMPLED[name], limit=6 if name == "scatter" else 3, grad=False)
    assert checked.keys() == SAMPLED[name]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("overload", ["index_put", "_unsafe_index_put"])
def test_index_put_by_positions(overload: str, accumulate: bool) -> None:
    assert_same(overload, TABLE, [at(0, -1)], torch.tensor([[1.0], [2.0]]), accumulate)
    assert_same(overload, TABLE, [None, at(1, -4)], torch.tensor(5.0), accumulate)
    assert_same(overload, TABLE, [at(0, 2), at(1, 3)], torch.tensor([7.0, 8.0]), accumulate)
    assert_same(overload, TABLE, [at(2, 0).reshape(2, 1), at(1, 3)], torch.ones(2, 2), accumulate)
    assert_same(overload, TABLE, [torch.zeros(0, dtype=torch.int64)], torch.ones(0, 4), accumulate)


def test_index_put_adds_up_repeated_positions() -> None:
    assert_same("index_put", TABLE, [at(1, 1, 1, -2)], torch.ones(4, 4), True)
    assert_same("index_put", torch.zeros(3, dtype=torch.bool), [at(1, 1)], torch.tensor([True, True]), True)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_by_one_mask(accumulate: bool) -> None:
    """However many elements a mask chooses, the program stays the same."""
    cube = torch.arange(24.0).reshape(2, 3, 4)
    rows = torch.tensor([[True, False, True], [False, True, False]])
    assert_same("index_put", cube, [cube > 10], torch.tensor(-1.0), accumulate)
    assert_same("index_put", cube, [cube > 10], -torch.arange(13.0), accumulate)
    assert_same("index_put", cube, [rows], torch.arange(12.0).reshape(3, 4) * 100, accumulate)
    assert_same("index_put", cube, [rows], torch.arange(4.0) * 100, accumulate)
    assert_same("index_put", cube, [None, torch.tensor([True, False, True])], torch.tensor([[[1.0], [2.0]]]), accumulate)
    assert_same("index_put", cube, [None, torch.tensor([False, True, False]), None], torch.ones(2, 1, 4), accumulate)
    assert_same("index_put", cube, [None, torch.zeros(3, dtype=torch.bool)], torch.ones(2, 0, 4), accumulate)
    assert_same("index_put", cube, [torch.zeros(2, dtype=torch.bool)], torch.tensor(3.0), accumulate)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_with_and_without_the_old_value(reduce: str, include_self: bool) -> None:
    index = torch.tensor([[0, 0, 2], [2, 0, 0]])
    for dtype in (torch.float32, torch.int64):
        src = torch.tensor([[5, -3, 2], [-8, 4, 1]]).to(dtype)
        assert_same("scatter_reduce.two", (TABLE - 5).to(dtype), 1, index, src, reduce, include_self=include_self)
        if reduce != "sum":
            assert_same("index_reduce", (TABLE - 5).to(dtype), 0, at(1, 1), (TABLE[:2] * 2 - 7).to(dtype), reduce, include_self=include_self)


def test_extremes_let_nan_through() -> None:
    src = torch.tensor([math.nan, 2.0, math.inf])
    for reduce in ("amax", "amin"):
        assert_same("scatter_reduce.two", torch.tensor([1.0, 2.0]), 0, at(1, 1, 0), src, reduce)


def test_scatter_values_and_reduce_names() -> None:
    index = torch.tensor([[0, 1, 3]])
    assert_same("scatter.value", TABLE, 1, index, 2.5)
    assert_same("scatter.value", TABLE.long(), 1, index, 7)
    for reduce in ("add", "multiply"):
        assert_same("scatter.value_reduce", TABLE, 1, index, 3, reduce=reduce)
        assert_same("scatter.reduce", TABLE, 0, torch.tensor([[1, 1, 2], [1, 0, 0]]), TABLE, reduce=reduce)
    assert_same("scatter_add", torch.tensor(1.0), 0, torch.tensor(0), torch.tensor(2.0))
    assert_same("scatter.src", TABLE, 0, torch.zeros(0, 4, dtype=torch.int64), TABLE)


def test_bfloat16_updates_are_added_in_float32() -> None:
    """256 steps of 1 from 256 on: bfloat16 alone would not move."""
    ones = torch.ones(256, dtype=torch.bfloat16)
    assert_same("index_add", torch.tensor([256.0]).float(), 0, torch.zeros(256, dtype=torch.int64), ones.float())
    assert_same("scatter_add", torch.tensor([0.0], dtype=torch.bfloat16), 0, torch.zeros(256, dtype=torch.int64), ones)


def test_index_add_and_fill_edges() -> None:
    assert_same("index_add", TABLE, 1, at(3, 3, 0), torch.ones(3, 3), alpha=-2)
    assert_same("index_add", torch.tensor(1.0), 0, at(0), torch.tensor(2.0))
    assert_same("index_copy", TABLE, -1, at(2), torch.ones(3, 1))
    assert_same("index_fill.int_Scalar", TABLE, 1, at(-1, 0), 9.0)
    assert_same("index_fill.int_Scalar", TABLE.long(), 0, torch.zeros(0, dtype=torch.int64), 9)
    assert_same("put", TABLE, at(-1, 0), torch.tensor([5.0, 6.0]))
    assert_same("put", TABLE, at(3, 3, -9), torch.ones(3), True)
    assert_same("_unsafe_masked_index_put_accumulate", TABLE, torch.tensor([True, False, True]), [at(0, 99, 0), at(1, 1, 1)], torch.ones(3))


def test_masked_fill_broadcasts_and_casts() -> None:
    assert_same("masked_fill.Scalar", TABLE, torch.tensor([True, False, True, False]), -math.inf)
    assert_same("masked_fill.Scalar", TABLE.bfloat16(), TABLE > 3, torch.finfo(torch.bfloat16).min)
    assert_same("masked_fill.Scalar", TABLE[:, :1], TABLE > 3, 1.0)
    assert_same("masked_fill.Tensor", TABLE.long(), TABLE > 3, torch.tensor(7))
