"""Pooling lowerings against torch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay, assert_opinfo

aten = torch.ops.aten


OPINFO: list[tuple[str, set[str], int]] = [
    ("nn.functional.max_pool2d", {"max_pool2d_with_indices", "max_pool2d_with_indices_backward"}, 4),
    ("nn.functional.max_pool3d", {"max_pool3d_with_indices", "max_pool3d_with_indices_backward"}, 3),
    ("nn.functional.avg_pool1d", {"avg_pool2d", "avg_pool2d_backward"}, 3),
    ("nn.functional.avg_pool2d", {"avg_pool2d", "avg_pool2d_backward"}, 5),
    ("nn.functional.avg_pool3d", {"avg_pool3d", "avg_pool3d_backward"}, 5),
    ("nn.functional.adaptive_avg_pool2d", {"_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"}, 3),
    ("nn.functional.adaptive_avg_pool3d", {"_adaptive_avg_pool3d", "_adaptive_avg_pool3d_backward"}, 3),
    ("nn.functional.adaptive_max_pool1d", {"adaptive_max_pool2d", "adaptive_max_pool2d_backward"}, 3),
    ("nn.functional.adaptive_max_pool2d", {"adaptive_max_pool2d", "adaptive_max_pool2d_backward"}, 3),
    ("nn.functional.adaptive_max_pool3d", {"adaptive_max_pool3d", "adaptive_max_pool3d_backward"}, 3),
    ("nn.functional.fractional_max_pool2d", {"fractional_max_pool2d", "fractional_max_pool2d_backward"}, 2),
    ("nn.functional.fractional_max_pool3d", {"fractional_max_pool3d", "fractional_max_pool3d_backward"}, 2),
    ("nn.functional.max_unpool2d", {"max_unpool2d"}, 2),
    ("nn.functional.max_unpool3d", {"max_unpool3d"}, 2),
]


@pytest.mark.parametrize(("name", "overloads", "limit"), OPINFO, ids=[name.rsplit(".", 1)[-1] for name, _, _ in OPINFO])
def test_opinfo(name: str, overloads: set[str], limit: int) -> None:
    """In bfloat16 torch rounds averages on the way, so they agree only up to a few of its steps."""
    assert set(assert_opinfo(name, (torch.float32,), overloads, limit=limit)) == overloads
    if name == "nn.functional.avg_pool3d":
        return  # torch has no bfloat16 one on the CPU
    rough = "avg" in name
    assert set(assert_opinfo(name, (torch.bfloat16,), overloads, limit=2, atol=3e-2 if rough else None, rtol=1.6e-2 if rough else None)) == overloads


def replay(overload: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    with Replay({overload}) as watching:
        out = function(*args, **kwargs)
    assert watching.checked == {overload: 1}
    return out


WINDOWS = [
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": (2, 3), "stride": (3, 1), "padding": (1, 0), "dilation": (2, 1)},
    {"kernel_size": (1, 40), "stride": 1, "padding": (0, 20)},
    {"kernel_size": (5, 35), "stride": (5, 35), "padding": (0, 17), "ceil_mode": True},
]


@pytest.mark.parametrize("window", WINDOWS, ids=["ceil", "dilated", "long", "long-ceil"])
def test_max_pool_windows(window: dict[str, Any]) -> None:
    x = torch.randn(2, 3, 11, 47)
    y, indices = replay("max_pool2d_with_indices", F.max_pool2d, x, return_indices=True, **window)
    pairs = [window.get(k, d) for k, d in (("kernel_size", 0), ("stride", 0), ("padding", 0), ("dilation", 1))]
    geometry = [[p, p] if isinstance(p, int) else list(p) for p in pairs]
    arguments = (torch.randn_like(y), x, *geometry, window.get("ceil_mode", False), indices)
    replay("max_pool2d_with_indices_backward", aten.max_pool2d_with_indices_backward, *arguments)


@pytest.mark.parametrize("kernel", [3, 33])
def test_max_pool_of_nan_ties_and_infinities(kernel: int) -> None:
    """The first of equal values, the last of several NaN, the first real element of a window of -inf (never the padding)."""
    x = torch.randint(0, 3, (1, 2, 40, 41)).float()
    x[0, 0, 5:9, 3:8] = float("nan")
    x[0, 0, 20:, 30:] = -float("inf")
    x[0, 1] = -float("inf")
    replay("max_pool2d_with_indices", F.max_pool2d, x, kernel, stride=2, padding=1, return_indices=True)
    replay("adaptive_max_pool2d", F.adaptive_max_pool2d, x, (7, 9), return_indices=True)
    replay("adaptive_max_pool2d", F.adaptive_max_pool2d, x, (20, 1), return_indices=True)


def test_max_pool_integers_and_single_length_arguments() -> None:
    x = torch.randint(-128, 127, (2, 6, 7), dtype=torch.int8)
    replay("max_pool2d_with_indices", aten.max_pool2d_with_indices, x, [3], [2], [1], [1], False)
    replay("max_pool2d_with_indices", aten.max_pool2d_with_indices, x.long(), [2, 2])


def test_avg_pool_integers_truncate() -> None:
    replay("avg_pool2d", aten.avg_pool2d, torch.randint(-50, 50, (1, 2, 6, 7)), [3, 2], [2, 2], [1, 1])


@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("divisor", [None, 5])
def test_avg_pool_ceil_mode(count_include_pad: bool, divisor: int | None) -> None:
    x = torch.randn(2, 3, 8, 9, dtype=torch.float64)
    geometry = ([3, 2], [2, 2], [1, 0], True, count_include_pad, divisor)
    y = replay("avg_pool2d", aten.avg_pool2d, x, *geometry)
    replay("avg_pool2d_backward", aten.avg_pool2d_backward, torch.randn_like(y), x, *geometry)


def test_averages_keep_infinities_local() -> None:
    x = torch.randn(1, 1, 9, 9)
    x[0, 0, 4, 4] = float("inf")
    replay("_adaptive_avg_pool2d", F.adaptive_avg_pool2d, x, (4, 5))
    replay("avg_pool2d", F.avg_pool2d, x, 3, stride=2)


def test_empty_batch() -> None:
    x = torch.randn(0, 2, 6, 6)
    replay("max_pool2d_with_indices", F.max_pool2d, x, 2, return_indices=True)
    replay("avg_pool2d", F.avg_pool2d, x, 2)
    replay("_adaptive_avg_pool2d", F.adaptive_avg_pool2d, x, 4)
