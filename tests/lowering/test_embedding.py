"""Embedding lowerings against torch on the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay, assert_opinfo, call, compare, to_tensor
from tpu_lab.lowering.registry import find

aten = torch.ops.aten


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_embedding_opinfo(dtype: torch.dtype) -> None:
    overloads = {"embedding", "embedding_dense_backward"}
    assert set(assert_opinfo("nn.functional.embedding", (dtype,), overloads, limit=8)) == overloads


@pytest.mark.parametrize("scale_grad_by_freq", [False, True])
@pytest.mark.parametrize("index", [torch.int64, torch.int32], ids=str)
def test_embedding_gradient_of_repeated_rows_and_padding(scale_grad_by_freq: bool, index: torch.dtype) -> None:
    weight = torch.randn(6, 4, requires_grad=True)
    indices = torch.tensor([[1, 2, 2], [5, 0, 2]], dtype=index)
    with Replay({"embedding_dense_backward"}) as replay:
        F.embedding(indices, weight, padding_idx=5, scale_grad_by_freq=scale_grad_by_freq).square().sum().backward()
    assert replay.checked == {"embedding_dense_backward": 1}


def test_embedding_gradient_of_no_indices() -> None:
    with Replay({"embedding_dense_backward"}) as replay:
        aten.embedding_dense_backward(torch.randn(0, 4), torch.zeros(0, dtype=torch.int64), 6, -1, False)
    assert replay.checked == {"embedding_dense_backward": 1}


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.5, float("inf")])
def test_embedding_renorm(norm_type: float) -> None:
    weight, indices = torch.randn(7, 5), torch.tensor([[1, 1], [4, 6]])
    with Replay({"embedding_renorm"}) as replay:
        aten.embedding_renorm(weight, indices, 1.3, norm_type)
    assert replay.checked == {"embedding_renorm": 1}


SUM, MEAN, MAX = 0, 1, 2
INDICES = torch.tensor([3, 1, 1, 4, 0, 2, 5, 1, 3])
OFFSETS = torch.tensor([0, 3, 3, 4, 8])


def run_bag(*args: Any) -> list[torch.Tensor]:
    found = find("_embedding_bag")
    assert found is not None
    parts = call(found, aten._embedding_bag.default, args, {})
    return [to_tensor(parts[0], args[0].dtype), *(to_tensor(p, torch.int64) for p in parts[1:])]


@pytest.mark.parametrize(("mode", "include_last", "padding_idx"), itertools.product([SUM, MEAN, MAX], [False, True], [-1, 1]))
def test_embedding_bag_and_its_gradient(mode: int, include_last: bool, padding_idx: int) -> None:
    """The auxiliary results differ between ATen's devices: ours are checked by the gradient they give."""
    offsets = torch.cat([OFFSETS, torch.tensor([9])]) if include_last else OFFSETS
    weight = torch.randn(6, 4)
    args = (weight, INDICES, offsets, False, mode, False, None, include_last, padding_idx)
    reference = aten._embedding_bag(*args)
    out, bag, size, largest = run_bag(*args)
    torch.testing.assert_close(out, reference[0])
    grad = torch.randn(5, 4)
    expected = aten._embedding_bag_backward(grad, INDICES, offsets, *reference[1:], 6, False, mode, False, None, padding_idx)
    for overload in ("_embedding_bag_backward", "_embedding_bag_dense_backward"):
        found = find(overload)
        assert found is not None
        op = getattr(aten, overload).default
        rest = (6, False, mode, False, None, padding_idx) if overload == "_embedding_bag_backward" else (6, False, mode, None, padding_idx)
        places = (offsets, bag) if overload == "_embedding_bag_backward" else (bag,)
        compare(call(found, op, (grad, INDICES, *places, size, largest, *rest), {}), expected, overload)


def test_embedding_bag_with_weights_of_samples() -> None:
    weight, samples, grad = torch.randn(6, 4), torch.rand(9), torch.randn(5, 4)
    args = (weight, INDICES, OFFSETS, False, SUM, False, samples, False, 2)
    reference = aten._embedding_bag(*args)
    out, bag, size, largest = run_bag(*args)
    torch.testing.assert_close(out, reference[0])
    found = find("_embedding_bag_backward")
    assert found is not None
    back = (grad, INDICES, OFFSETS, bag, size, largest, 6)
    expected = aten._embedding_bag_backward(grad, INDICES, OFFSETS, *reference[1:], 6, False, SUM, False, samples, 2)
    compare(call(found, aten._embedding_bag_backward.default, (*back, False, SUM, False, samples, 2), {}), expected, "_embedding_bag_backward")
    # torch's CPU kernel divides by the frequency of another row; what is meant is plain (and what CUDA does)
    by_frequency = expected / INDICES.bincount(minlength=6).clamp(min=1)[:, None]
    compare(call(found, aten._embedding_bag_backward.default, (*back, True, SUM, False, samples, 2), {}), by_frequency, "scale_grad_by_freq")
    with Replay({"_embedding_bag_per_sample_weights_backward"}) as replay:
        aten._embedding_bag_per_sample_weights_backward(grad, weight, INDICES, OFFSETS, bag, SUM, 2)
    assert replay.checked == {"_embedding_bag_per_sample_weights_backward": 1}


@pytest.mark.parametrize("mode", [SUM, MEAN, MAX])
def test_embedding_bag_bfloat16(mode: int) -> None:
    weight = torch.randn(6, 4).bfloat16()
    out = run_bag(weight, INDICES, OFFSETS, False, mode, False, None, False, -1)[0]
    wide = aten._embedding_bag(weight.float(), INDICES, OFFSETS, False, mode)[0]
    torch.testing.assert_close(out, wide.bfloat16())
