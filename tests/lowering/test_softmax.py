"""Softmax, log-softmax and their gradients against CPU torch."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo

SAMPLED = {
    "softmax": {"_softmax", "_softmax_backward_data"},
    "log_softmax": {"_log_softmax", "_log_softmax_backward_data"},
}


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opinfo(name: str, dtype: torch.dtype) -> None:
    loose = 2e-2 if dtype == torch.bfloat16 else None  # torch rounds the parts of bfloat16's log-softmax, here only the result is rounded
    checked = assert_opinfo(name, (dtype,), only=SAMPLED[name], limit=3, rtol=loose, atol=loose)
    assert checked.keys() == SAMPLED[name]


@pytest.mark.parametrize("overload", ["_softmax", "_log_softmax"])
def test_extreme_rows(overload: str) -> None:
    rows = torch.tensor([[1e4, 0.0, -1e4], [-math.inf, -math.inf, -math.inf], [math.inf, 0.0, 1.0], [math.nan, 0.0, 1.0], [-math.inf, 2.0, 2.0]])
    for dim in (0, 1, -1):
        assert_same(overload, rows, dim, False)
    assert_same(overload, torch.tensor(3.0), 0, False)
    assert_same(overload, torch.ones(2, 0), 0, False)


def test_safe_softmax_of_fully_masked_rows() -> None:
    rows = torch.tensor([[-math.inf, -math.inf], [-math.inf, 1.0], [0.0, 1.0]])
    assert_same("_safe_softmax", rows, -1)
    assert_same("_safe_softmax", rows.bfloat16(), 1, torch.float32)


def test_gradient_in_another_dtype() -> None:
    out = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    assert_same("_softmax_backward_data", torch.ones(3, 4), out, 1, torch.float32)
    assert_same("_log_softmax_backward_data", torch.ones(3, 4), out.log(), -1, torch.float32)
