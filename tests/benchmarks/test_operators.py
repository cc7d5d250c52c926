"""The benchmark of single operators calls what it names, on both devices alike."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from benchmarks.operator_calls import BESIDES, calls, most_used


@pytest.fixture(scope="module")
def tables() -> list[dict[str, object]]:
    return [calls(device, 32) for device in ("cpu", "tpu")]


@pytest.mark.parametrize("name", [*most_used(), *BESIDES])
def test_both_devices_compute_the_same(name: str, tables: list[dict[str, object]]) -> None:
    expected, actual = (pytree.tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), table[name]()) for table in tables)  # type: ignore[operator]
    close = {"rtol": 1.6e-2, "atol": 1e-2} if "bfloat16" in name else {"rtol": 1e-4, "atol": 1e-3}  # sums in another order
    torch.testing.assert_close(actual, expected, **close)
