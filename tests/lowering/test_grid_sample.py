"""Grid sampling lowerings against torch on the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay

PADDINGS = ["zeros", "border", "reflection"]


def assert_same(rank: int, mode: str, padding: str, align_corners: bool, dtype: torch.dtype = torch.float32) -> None:
    """A third of the places lies outside the image, some far outside."""
    size = (5, 6, 4)[:rank]
    x = torch.randn(2, 3, *size).to(dtype).requires_grad_()
    grid = (torch.randn(2, *(3, 4, 2)[:rank], rank) * 1.3).to(dtype).requires_grad_()
    overload = f"grid_sampler_{rank}d"
    tolerance = 3e-2 if dtype == torch.bfloat16 else 2e-4
    with Replay({overload, f"{overload}_backward"}, rtol=tolerance, atol=tolerance) as replay:
        y = F.grid_sample(x, grid, mode, padding, align_corners)
        y.backward(torch.randn(y.shape).to(dtype))
    assert replay.checked == {overload: 1, f"{overload}_backward": 1}


CASES_2D = [
    *itertools.product(["bilinear"], PADDINGS, [False, True]),
    *itertools.product(["nearest"], PADDINGS, [False]),
    ("bicubic", "zeros", False),
    ("bicubic", "border", True),
    ("bicubic", "reflection", False),
]


@pytest.mark.parametrize(("mode", "padding", "align_corners"), CASES_2D)
def test_2d(mode: str, padding: str, align_corners: bool) -> None:
    assert_same(2, mode, padding, align_corners)


@pytest.mark.parametrize(("mode", "padding"), [("bilinear", "zeros"), ("bilinear", "reflection"), ("nearest", "border")])
def test_3d(mode: str, padding: str) -> None:
    assert_same(3, mode, padding, mode == "nearest")


def test_places_on_the_border_and_not_a_number() -> None:
    x = torch.randn(1, 2, 4, 5, requires_grad=True)
    grid = torch.tensor([[[[-1.0, 1.0], [1.0, -1.0], [0.0, 0.0], [float("nan"), 0.1], [float("inf"), 0.0]]]])
    with Replay({"grid_sampler_2d"}) as replay:
        F.grid_sample(x, grid, align_corners=True)
        F.grid_sample(x, grid[:, :, :3], padding_mode="border", align_corners=True)
    assert replay.checked == {"grid_sampler_2d": 2}


def test_gradient_of_the_grid_alone() -> None:
    x, grid = torch.randn(1, 2, 4, 5), torch.rand(1, 2, 2, 2, requires_grad=True)
    with Replay({"grid_sampler_2d_backward"}, rtol=1e-4, atol=1e-4) as replay:
        F.grid_sample(x, grid, align_corners=False).square().sum().backward()
    assert replay.checked == {"grid_sampler_2d_backward": 1}


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 1, 3), (2, 3, 4, 2, 3)], ids=str)
def test_affine_grid(size: tuple[int, ...], align_corners: bool) -> None:
    rank = len(size) - 2
    with Replay({"affine_grid_generator"}) as replay:
        F.affine_grid(torch.randn(size[0], rank, rank + 1), list(size), align_corners=align_corners)
    assert replay.checked == {"affine_grid_generator": 1}
