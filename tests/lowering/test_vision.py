"""Sliding blocks of images and distances between rows against torch on the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay, assert_opinfo

aten = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16)


def test_unfold_opinfo() -> None:
    assert set(assert_opinfo("nn.functional.unfold", FLOATS, {"im2col", "col2im"}, limit=5)) == {"im2col", "col2im"}


def test_fold_of_one_image_and_its_gradient() -> None:
    columns = torch.randn(12, 20, requires_grad=True)
    with Replay({"im2col", "col2im"}) as replay:
        F.fold(columns, (5, 6), (2, 2)).square().sum().backward()
    assert replay.checked == {"im2col": 1, "col2im": 1}


def test_unfold_with_every_kind_of_window() -> None:
    x = torch.randn(2, 3, 9, 8, requires_grad=True)
    with Replay({"im2col", "col2im"}) as replay:
        F.unfold(x, (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3)).square().sum().backward()
    assert replay.checked == {"im2col": 1, "col2im": 1}


NORMS = [0.0, 0.7, 1.0, 1.5, 2.0, 3.0, float("inf")]


@pytest.mark.parametrize("p", NORMS)
def test_pdist(p: float) -> None:
    x = torch.randn(6, 3)
    x[4] = x[1]
    x[2, 0] = x[3, 0]
    x.requires_grad_()
    with Replay({"_pdist_forward", "_pdist_backward"}, rtol=1e-5, atol=1e-5) as replay:
        y = F.pdist(x, p)
        y.backward(torch.randn(y.shape))
    assert replay.checked == {"_pdist_forward": 1, "_pdist_backward": 1}


@pytest.mark.parametrize("p", NORMS)
def test_cdist(p: float) -> None:
    a, b = torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    b[0, 1] = a[0, 2]
    a.requires_grad_(), b.requires_grad_()
    with Replay({"_cdist_forward", "_cdist_backward"}, rtol=1e-5, atol=1e-5) as replay:
        y = torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist")
        y.backward(torch.randn(y.shape))
    assert replay.checked == {"_cdist_forward": 1, "_cdist_backward": 2}


@pytest.mark.parametrize(("dtype", "rows"), itertools.product([torch.float32, torch.float64], [4, 30]))
def test_cdist_by_matmul(dtype: torch.dtype, rows: int) -> None:
    a, b = torch.randn(rows, 6, dtype=dtype), torch.randn(3, 6, dtype=dtype)
    with Replay({"_cdist_forward", "_euclidean_dist"}, rtol=1e-4, atol=1e-4) as replay:
        aten._cdist_forward(a, b, 2.0, None)
        aten._cdist_forward(a, b, 2.0, 1)
        aten._euclidean_dist(a, b)
    assert replay.checked["_cdist_forward"] == 2 and replay.checked["_euclidean_dist"] >= 1
