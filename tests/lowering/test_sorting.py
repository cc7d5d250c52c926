"""Sorting, top-k, order statistics and binary search against CPU torch.

Where PyTorch leaves open which of equal elements is named, the values have to agree and the positions have to lead to them.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.lowering.direct import assert_same
from tests.lowering.replay import Replay, assert_opinfo, call, compare, overload_name, to_tensor
from tpu_lab.lowering.registry import find

NAN, INF = math.nan, math.inf
FLOATS = torch.tensor([3.0, -0.0, 0.0, NAN, -INF, INF, -0.0, 3.0, -NAN, 0.5, -0.5, -INF, 0.0])
SELECTIONS = {
    "sort": {"sort"},
    "topk": {"topk"},
    "kthvalue": {"kthvalue"},
    "median": {"median.dim"},
    "nanmedian": {"nanmedian.dim"},
    "mode": {"mode"},
}


class PositionReplay(Replay):
    """A `Replay` of operators that return (values, positions): compares the values, and follows the positions."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, expected = overload_name(func), func(*args, **kwargs)
        if name in (self.only or ()):
            assert_positions(name, func, args, kwargs, expected)
            self.checked[name] = self.checked.get(name, 0) + 1
        return expected


def assert_positions(name: str, func: Any, args: Any, kwargs: Any, expected: Any) -> None:
    values, positions = call(find(name), func, args, kwargs)  # type: ignore[arg-type]
    note = f"{name} of {args[0].dtype}{list(args[0].shape)} {args[1:]} {kwargs}"
    compare(values, expected[0], note)
    places = to_tensor(positions, torch.int64)
    assert places.shape == expected[1].shape, note
    names = [a.name for a in func._schema.arguments]
    dim = kwargs.get("dim", args[names.index("dim")] if len(args) > names.index("dim") else -1)
    source = args[0].reshape(1) if args[0].ndim == 0 else args[0]
    whole = places.reshape(1) if args[0].ndim == 0 else places if places.ndim == source.ndim else places.unsqueeze(dim)
    torch.testing.assert_close(source.gather(dim, whole).reshape(expected[0].shape), expected[0], equal_nan=True, msg=lambda m: f"{note}: {m}")


def select(overload: str, *args: Any, **kwargs: Any) -> None:
    packet, _, name = overload.partition(".")
    func = getattr(getattr(torch.ops.aten, packet), name or "default")
    assert_positions(overload, func, args, kwargs, func(*args, **kwargs))


@pytest.mark.parametrize("name", SELECTIONS)
def test_opinfo(name: str) -> None:
    checked: dict[str, int] = {}
    for op in (op for op in op_db if op.name == name):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            for i, sample in enumerate(op.sample_inputs("cpu", dtype)):
                if i >= 4:
                    break
                with PositionReplay(SELECTIONS[name]) as replay:
                    op(sample.input, *sample.args, **sample.kwargs)
                checked |= replay.checked
    assert checked.keys() == SELECTIONS[name]


@pytest.mark.parametrize("name", ["searchsorted", "bucketize"])
def test_search_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.int64), limit=6)
    assert f"{name}.Tensor" in checked


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_stable_sort_of_ties_zeros_and_nan(dtype: torch.dtype) -> None:
    for descending in (False, True):
        assert_same("sort.stable", FLOATS.to(dtype), stable=True, dim=0, descending=descending)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64, torch.uint16])
def test_stable_sort_of_integers(dtype: torch.dtype) -> None:
    top = 1 if dtype == torch.bool else torch.iinfo(dtype).max
    low = 0 if dtype == torch.bool else torch.iinfo(dtype).min
    values = torch.tensor([[1, top, 0, low, 1], [low, 0, 1, 0, top]], dtype=dtype)
    for descending in (False, True):
        assert_same("sort.stable", values, stable=True, dim=1, descending=descending)
    assert_same("sort.stable", values, stable=True, dim=0)


def test_long_stable_sort_of_64_bit_elements() -> None:
    """More elements than one pass of pairs serves; keys that differ in the high half only, the low half only, and not at all."""
    g = torch.Generator().manual_seed(4)
    high, low = (torch.randint(-3, 3, (6000,), generator=g) for _ in range(2))
    values = high * 2**40 + low * 2**31 + low
    for descending in (False, True):
        assert_same("sort.stable", values, stable=True, descending=descending)
    assert_same("sort.stable", values.double(), stable=True)


def test_sort_of_scalars_and_nothing() -> None:
    for values in (torch.tensor(2.0), torch.ones(0, 3), torch.ones(3, 0)):
        assert_same("sort", values, 0)
        assert_same("sort.stable", values, stable=True, dim=-1)


@pytest.mark.parametrize("largest", [True, False])
def test_topk_places_nan_as_the_greatest(largest: bool) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for k in (1, 4, 13):
            select("topk", FLOATS.to(dtype), k, 0, largest, True)
    select("topk", torch.tensor([[5, 2**60, -(2**62)], [2**60 + 1, 2**60, 0]]), 2, 1, largest, True)
    select("topk", torch.arange(12).reshape(4, 3) % 5, 2, 0, largest, True)
    select("topk", torch.arange(1200.0).flip(0), 700, 0, largest, True)
    select("topk", torch.tensor(3.0), 1, -1, largest, True)
    select("topk", torch.ones(2, 3), 0, 1, largest, True)


def test_order_statistics_with_nan() -> None:
    rows = torch.stack([FLOATS, torch.arange(13.0), torch.full((13,), NAN), -FLOATS])
    for keepdim in (False, True):
        assert_same("median.dim", rows[1:3], 1, keepdim)
        select("median.dim", rows, 1, keepdim)
        select("nanmedian.dim", rows, 1, keepdim)
        for k in (1, 7, 13):
            select("kthvalue", rows, k, 1, keepdim)


@pytest.mark.parametrize("overload", ["median", "nanmedian"])
def test_median_of_all(overload: str) -> None:
    for values in (
        FLOATS,
        FLOATS[9:],
        torch.tensor([2**62, 1, -(2**62), 2**62 - 1]),
        torch.tensor([]),
        torch.tensor([], dtype=torch.int32),
        torch.tensor(3.0),
    ):
        assert_same(overload, values)


def test_mode_takes_the_least_of_the_most_frequent() -> None:
    assert_same("mode", torch.tensor([3.0, 1, 1, 2, 2]), 0)
    assert_same("mode", torch.tensor([[2, 1, 1], [2, 2, 5]]), 1, True)
    assert_same("mode", torch.tensor([[2, 1, 1], [2, 2, 5], [7, 1, 5]]), 0)
    assert_same("mode", torch.tensor(4), 0)


@pytest.mark.parametrize("right", [False, True])
def test_search_with_nan_sorter_and_sides(right: bool) -> None:
    sequence = torch.tensor([1.0, 2.0, 2.0, 5.0, NAN])
    values = torch.tensor([[NAN, 2.0], [0.0, 9.0]])
    assert_same("searchsorted.Tensor", sequence, values, right=right)
    assert_same("searchsorted.Tensor", sequence[[4, 2, 0, 3, 1]], values, right=right, sorter=torch.tensor([2, 4, 1, 3, 0]))
    assert_same("searchsorted.Tensor", torch.tensor([[1, 3, 5], [2, 4, 6]]), torch.tensor([[3, 6], [1, 4]]), side="right" if right else "left")
    assert_same("searchsorted.Scalar", sequence[:4], 2, right=right)
    assert_same("searchsorted.Tensor", torch.tensor([]), values, right=right)
    assert_same("bucketize.Tensor", torch.tensor([1, 2, 6]), sequence[:4], out_int32=True, right=right)
    assert_same("bucketize.Scalar", 2.5, sequence[:4], right=right)


@pytest.mark.parametrize("invert", [False, True])
def test_membership(invert: bool) -> None:
    few, many = torch.tensor([NAN, 2.0, -0.0]), torch.arange(-40.0, 40.0, 2)
    for tests in (few, many, torch.cat([many, few]), torch.tensor([])):
        assert_same("isin.Tensor_Tensor", torch.cat([FLOATS, torch.arange(6.0)]).reshape(1, -1), tests, invert=invert)
    assert_same("isin.Tensor_Tensor", torch.arange(100), torch.arange(50) * 3, invert=invert)
    assert_same("isin.Tensor_Scalar", torch.arange(5), 3, invert=invert)
    assert_same("isin.Scalar_Tensor", 3, torch.arange(5), invert=invert)
