"""Running sums, products, extremes and log-sums against CPU torch, through every way a scan is walked."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo
from tpu_lab.lowering import scan

SAMPLED = {"cumsum": {"cumsum"}, "cumprod": {"cumprod"}, "cummax": {"cummax"}, "cummin": {"cummin"}, "logcumsumexp": {"logcumsumexp"}}
WALKS = {
    "chunks of one row": ((4099,), 0),
    "chunks of two rows": ((2, 2051), 1),
    "rows side by side, padded": ((19, 7), 1),
    "rows one after another": ((9, 5, 3), 1),
    "short row": ((5,), 0),
    "wide steps": ((3, 20, 17), 1),
    "first dim": ((130, 9), 0),
}
"""A shape and dim for each path of `scan`."""


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.bfloat16, torch.int64, torch.complex64), only=SAMPLED[name], limit=2, grad=False)
    assert checked.keys() == SAMPLED[name]


@pytest.mark.parametrize("walk", WALKS)
def test_walks(walk: str) -> None:
    shape, dim = WALKS[walk]
    values = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 3
    for overload in ("cumsum", "cumprod", "cummax", "logcumsumexp"):
        assert_same(overload, values, dim)
    assert_same("cumsum", values.long(), dim)
    assert_same("cumsum", values.bfloat16(), dim)


@pytest.mark.parametrize("overload", ["cummax", "cummin"])
def test_latest_of_equal_elements_and_nan(overload: str) -> None:
    assert_same(overload, torch.tensor([3.0, 3, 1, 3, math.nan, 5, math.nan, 1]), 0)
    assert_same(overload, torch.tensor([[-0.0, 0.0, -math.inf, math.inf], [0.0, -0.0, -math.inf, math.inf]]), 0)
    assert_same(overload, torch.tensor([True, False, True, False]), 0)
    assert_same(overload, torch.tensor([200, 7, 255, 0, 255, 0], dtype=torch.uint8), 0)
    assert_same(overload, torch.tensor([-(2**63), 5, 2**63 - 1, -(2**63)]), 0)


@pytest.mark.parametrize("overload", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scalars_and_empty(overload: str) -> None:
    assert_same(overload, torch.tensor(4.0), 0)
    assert_same(overload, torch.ones(0, 3), 0)
    assert_same(overload, torch.ones(3, 0), -1)


def test_small_integers_widen() -> None:
    values = torch.full((40,), 100, dtype=torch.int8)
    assert_same("cumsum", values, 0)
    assert_same("cumprod", values[:5], 0)
    assert_same("cumsum", torch.ones(9, dtype=torch.bool), 0)
    assert_same("cumsum", values, 0, dtype=torch.int16)
    assert_same("cumsum", values, 0, dtype=torch.float32)


def test_infinities_stay_where_they_are() -> None:
    assert_same("cumsum", torch.tensor([1.0, math.inf, 2.0, -math.inf, 1.0]), 0)
    assert_same("logcumsumexp", torch.tensor([-math.inf, -math.inf, 2.0, math.inf, 1.0]), 0)
    assert_same("logcumsumexp", torch.tensor([1.0, math.nan, 2.0]), 0)


def test_float32_sum_is_carried_wider() -> None:
    """A million steps of 0.1 in float32 would be off by a percent."""
    values = torch.full((1_000_000,), 0.1)
    assert_same("cumsum", values, 0, rtol=1e-6)


def test_a_part_of_a_product_may_overflow() -> None:
    """The second half alone overflows, the whole does not: products are not cut into chunks."""
    values = torch.cat([torch.full((200,), 0.5), torch.ones(2000), torch.full((200,), 2.0)])
    assert_same("cumprod", values, 0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_other_targets_see_no_loop(name: str) -> None:
    """Lowered for a TPU a scan is the reduction the hardware has, not a loop over elements."""
    function = getattr(scan, name)
    keywords = {"dtype": None} if name in ("cumsum", "cumprod") else {}
    with jax.enable_x64(True):
        traced = jax.jit(lambda x: function(x, 1, **keywords)).trace(jax.ShapeDtypeStruct((4, 600), jnp.float32))
        assert "stablehlo.while" not in traced.lower(lowering_platforms=("tpu",)).as_text()
        assert "stablehlo.while" in traced.lower(lowering_platforms=("cpu",)).as_text()
