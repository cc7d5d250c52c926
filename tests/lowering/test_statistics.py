"""`histc` against torch on the CPU."""

from __future__ import annotations

import jax
import pytest
import torch

from tpu_lab.lowering.registry import find

from .replay import assert_opinfo, call, compare

HISTC = torch.ops.aten.histc.default


def test_opinfo() -> None:
    assert assert_opinfo("histc", (torch.float32,), only={"histc"}, limit=8)["histc"] == 8


@pytest.mark.parametrize(
    "args",
    [
        (torch.full((5,), 2.0), 4),
        (torch.tensor([1.0, float("nan"), 2.0, 3.0, -1.0, 9.0]), 4, 0, 3),
        (torch.arange(20.0), 5, 0, 19),
        (torch.linspace(0, 1, 101, dtype=torch.float64), 10, 0.1, 0.9),
    ],
)
def test_edges(args: tuple[object, ...]) -> None:
    found = find("histc")
    assert found is not None
    compare(call(found, HISTC, args, {}), HISTC(*args), "histc")


def test_integers_as_expert_counts() -> None:
    """Transformers counts int32 expert numbers this way; the CPU kernel knows floats only, so the golden is bincount."""
    ids = torch.randint(0, 7, (200,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    found = find("histc")
    assert found is not None
    out = call(found, HISTC, (ids,), {"bins": 7, "min": 0, "max": 6})
    assert out.dtype == jax.numpy.int32
    compare(out, torch.bincount(ids, minlength=7).to(torch.int32), "histc")
