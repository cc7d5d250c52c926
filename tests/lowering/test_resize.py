"""Interpolation lowerings against torch on the CPU: every overload, scale factors, gradients."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay

DIMENSIONS = {"1d": (7,), "2d": (7, 5), "3d": (4, 5, 3)}
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "upsample_nearest1d": ("nearest", {}),
    "upsample_nearest2d": ("nearest", {}),
    "upsample_nearest3d": ("nearest", {}),
    "_upsample_nearest_exact1d": ("nearest-exact", {}),
    "_upsample_nearest_exact2d": ("nearest-exact", {}),
    "_upsample_nearest_exact3d": ("nearest-exact", {}),
    "upsample_linear1d": ("linear", {}),
    "upsample_bilinear2d": ("bilinear", {}),
    "upsample_trilinear3d": ("trilinear", {}),
    "upsample_bicubic2d": ("bicubic", {}),
    "_upsample_bilinear2d_aa": ("bilinear", {"antialias": True}),
    "_upsample_bicubic2d_aa": ("bicubic", {"antialias": True}),
    "_upsample_lanczos2d_aa": ("lanczos", {"antialias": True}),
}


def assert_same(overload: str, x: torch.Tensor, **how: Any) -> None:
    """Forward and backward of `interpolate`, replayed."""
    x = x.requires_grad_(x.is_floating_point())
    tolerance = (1.6e-2, 3e-2) if x.dtype == torch.bfloat16 else (None, None)  # torch rounds to bfloat16 on the way
    wanted = {overload, f"{overload}_backward"} if x.requires_grad else {overload}
    with Replay(wanted, *tolerance) as replay:
        y = F.interpolate(x, mode=MODES[overload][0], **MODES[overload][1], **how)
        if x.requires_grad:
            y.backward(torch.randn(y.shape).to(y.dtype))
    assert replay.checked == dict.fromkeys(wanted, 1)


def spatial(overload: str) -> tuple[int, ...]:
    return next(shape for name, shape in DIMENSIONS.items() if name in overload)


def sizes(overload: str) -> list[tuple[int, ...]]:
    """Larger, smaller, and one dimension kept while another becomes one element; the nearest ones have a rule of their own for twice the size."""
    shape = spatial(overload)
    twice = [tuple(2 * n for n in shape)] if "nearest" in overload else []
    return [tuple(2 * n + 3 for n in shape), tuple(max(n // 2, 1) for n in shape), (*shape[:-1], 1), *twice]


@pytest.mark.parametrize("overload", MODES)
def test_sizes(overload: str) -> None:
    for i, size in enumerate(sizes(overload)):
        dtype = torch.bfloat16 if i == 0 and "_aa" not in overload else torch.float32
        assert_same(overload, torch.randn(2, 3, *spatial(overload)).to(dtype), size=size)


@pytest.mark.parametrize("overload", MODES)
def test_scale_factor_overrides_the_ratio_of_sizes(overload: str) -> None:
    x = torch.randn(2, 3, *spatial(overload))
    assert_same(overload, x, scale_factor=1.7, recompute_scale_factor=False)


@pytest.mark.parametrize("overload", [name for name, (mode, _) in MODES.items() if "linear" in mode or "cubic" in mode])
def test_align_corners(overload: str) -> None:
    x = torch.randn(2, 3, *spatial(overload))
    for size in (sizes(overload)[0], sizes(overload)[2]):
        assert_same(overload, x, size=size, align_corners=True)


@pytest.mark.parametrize("overload", ["upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bicubic2d_aa"])
def test_float64(overload: str) -> None:
    assert_same(overload, torch.randn(1, 2, 9, 10, dtype=torch.float64), size=(13, 4))


@pytest.mark.parametrize(("overload", "out"), list(itertools.product(["upsample_nearest1d", "_upsample_nearest_exact1d"], [30, 37, 61, 100])))
def test_nearest_picks_the_element_float32_rounding_gives(overload: str, out: int) -> None:
    assert_same(overload, torch.arange(49.0).reshape(1, 1, 49), size=(out,))


def test_nearest_bytes() -> None:
    assert_same("upsample_nearest2d", torch.randint(0, 255, (1, 2, 5, 6), dtype=torch.uint8), size=(8, 9))


def test_strong_upscaling_of_one_element() -> None:
    assert_same("upsample_bilinear2d", torch.randn(1, 1, 1, 2), size=(20, 21))


def test_infinity_stays_where_it_is_seen() -> None:
    x = torch.randn(1, 1, 6, 6)
    x[0, 0, 2, 3] = float("inf")
    with Replay({"upsample_bilinear2d"}) as replay:
        F.interpolate(x, size=(9, 11), mode="bilinear")
    assert replay.checked == {"upsample_bilinear2d": 1}
