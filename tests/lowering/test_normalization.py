"""Normalisation lowerings against torch on the CPU, running statistics and SyncBatchNorm's parts included."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay, assert_opinfo, call, compare, lowering_of, to_tensor

aten = torch.ops.aten


OPINFO: list[tuple[str, set[str], int]] = [
    ("nn.functional.layer_norm", {"native_layer_norm", "native_layer_norm_backward"}, 6),
    ("nn.functional.group_norm", {"native_group_norm", "native_group_norm_backward"}, 6),
]


@pytest.mark.parametrize(("name", "overloads", "limit"), OPINFO)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_opinfo(name: str, overloads: set[str], limit: int, dtype: torch.dtype) -> None:
    rough = (1.6e-2, 1e-2) if dtype == torch.bfloat16 else (1e-5, 1e-4)
    assert set(assert_opinfo(name, (dtype,), overloads, limit=limit, rtol=rough[0], atol=rough[1])) == overloads


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_layer_norm_of_values_far_from_zero(dtype: torch.dtype) -> None:
    """A one-pass variance would lose everything here."""
    x = (torch.randn(4, 6, 5) + 1000).to(dtype).requires_grad_()
    with Replay({"native_layer_norm"}, rtol=1e-3, atol=1e-3) as replay:
        F.layer_norm(x, (6, 5))
    assert replay.checked == {"native_layer_norm": 1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("with_weight", [True, False])
@pytest.mark.parametrize("eps", [None, 1e-3])
def test_rms_norm(dtype: torch.dtype, with_weight: bool, eps: float | None) -> None:
    """`_fused_rms_norm` is a composite on the CPU: its result and its autograd gradients are the reference."""
    x = torch.randn(3, 4, 6).to(dtype).requires_grad_()
    w = torch.rand(4, 6).to(dtype).requires_grad_() if with_weight else None
    y = F.rms_norm(x, (4, 6), w, eps)
    grad = torch.randn(y.shape).to(dtype)
    y.backward(grad)
    tolerance = (1.6e-2, 2e-2) if dtype == torch.bfloat16 else (1e-5, 1e-5)
    out, rstd = call(lowering_of("_fused_rms_norm"), aten._fused_rms_norm.default, (x, [4, 6], w, eps), {})
    compare(out, y, "_fused_rms_norm", *tolerance)
    back = (grad, x, [4, 6], to_tensor(rstd, torch.float32), w, [True, True])
    grad_x, grad_w = call(lowering_of("_fused_rms_norm_backward"), aten._fused_rms_norm_backward.default, back, {})
    compare(grad_x, x.grad, "grad input", *tolerance)
    compare(grad_w, None if w is None else w.grad, "grad weight", *tolerance)


def batch_arguments(shape: tuple[int, ...], dtype: torch.dtype, parameters: torch.dtype) -> tuple[torch.Tensor, ...]:
    c = shape[1]
    x = (torch.randn(shape) * 3 + 1).to(dtype)
    return x, torch.rand(c).to(parameters), torch.randn(c).to(parameters), torch.randn(c).to(parameters), torch.rand(c).to(parameters) + 0.5


MIXES = [(torch.float32, torch.float32), (torch.bfloat16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.float64, torch.float64)]


@pytest.mark.parametrize(("dtype", "parameters"), MIXES)
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 6), (2, 3, 4, 5)], ids=lambda s: f"{len(s)}d")
def test_batch_norm_training(shape: tuple[int, ...], dtype: torch.dtype, parameters: torch.dtype) -> None:
    x, w, b, mean, var = batch_arguments(shape, dtype, parameters)
    running = mean.clone(), var.clone()
    expected = aten.native_batch_norm(x, w, b, *running, True, 0.3, 1e-3)
    actual = call(lowering_of("native_batch_norm"), aten.native_batch_norm.default, (x, w, b, mean, var, True, 0.3, 1e-3), {})
    rough = (1.6e-2, 1e-2) if dtype == torch.bfloat16 else (None, None)
    compare(actual, (*expected, *running), "native_batch_norm", *rough)


@pytest.mark.parametrize(("dtype", "parameters"), MIXES)
def test_batch_norm_inference(dtype: torch.dtype, parameters: torch.dtype) -> None:
    args = (*batch_arguments((2, 3, 4, 5), dtype, parameters), False, 0.3, 1e-3)
    expected = aten.native_batch_norm(*args)[0]
    for overload in ("native_batch_norm", "_native_batch_norm_legit"):
        out, *_, mean, var = call(lowering_of(overload), aten.native_batch_norm.default, args, {})
        compare([out, mean, var], (expected, args[3], args[4]), overload)


def test_batch_norm_without_affine_and_statistics() -> None:
    x = torch.randn(4, 3, 6)
    with Replay({"_native_batch_norm_legit.no_stats"}) as replay:
        aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)
    assert replay.checked == {"_native_batch_norm_legit.no_stats": 1}
    out = call(lowering_of("native_batch_norm"), aten.native_batch_norm.default, (x, None, None, None, None, True, 0.1, 1e-5), {})
    compare(out[0], F.batch_norm(x, None, None, training=True), "native_batch_norm")
    assert out[3] is None and out[4] is None


def test_functional_batch_norms() -> None:
    x, w, b, mean, var = batch_arguments((4, 3, 6), torch.float32, torch.float32)
    functional = {"_native_batch_norm_legit_functional", "_batch_norm_with_update_functional"}
    with Replay(functional) as replay:
        aten._native_batch_norm_legit_functional(x, w, b, mean, var, True, 0.3, 1e-3)
        aten._batch_norm_with_update_functional(x, w, b, mean, var, 0.3, 1e-3)
    assert set(replay.checked) == functional
    updated = mean.clone(), var.clone()
    expected = aten._batch_norm_with_update(x, w, b, *updated, 0.3, 1e-3)
    actual = call(lowering_of("_batch_norm_with_update"), aten._batch_norm_with_update.default, (x, w, b, mean, var, 0.3, 1e-3), {})
    compare(actual, (*expected, *updated), "_batch_norm_with_update")
    for overload in ("_native_batch_norm_legit_no_training", "_batch_norm_no_update"):
        op = getattr(aten, overload).default
        args = (x, w, b, mean, var, 0.3, 1e-3)
        compare(call(lowering_of(overload), op, args, {})[0], op(*args)[0], overload)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_batch_norm_backward(train: bool, dtype: torch.dtype) -> None:
    x, w, b, mean, var = batch_arguments((4, 3, 5, 2), dtype, torch.float32)
    y, save_mean, save_rstd = aten.native_batch_norm(x, w, b, mean, var, train, 0.3, 1e-3)
    grad = torch.randn(y.shape).to(dtype)
    reserve = torch.empty(0, dtype=torch.uint8)
    tolerance = (1.6e-2, 2e-2) if dtype == torch.bfloat16 else (1e-4, 1e-4)
    with Replay({"native_batch_norm_backward", "batch_norm_backward"}, *tolerance) as replay:
        aten.native_batch_norm_backward(grad, x, w, mean, var, save_mean, save_rstd, train, 1e-3, [True, True, True])
        aten.native_batch_norm_backward(grad, x, None, mean, var, save_mean, save_rstd, train, 1e-3, [True, False, False])
        aten.batch_norm_backward(grad, x, w, mean, var, save_mean, save_rstd, train, 1e-3, [True, True, True], reserve)
    assert replay.checked == {"native_batch_norm_backward": 2, "batch_norm_backward": 1}


def test_instance_norm_is_a_batch_norm() -> None:
    x = torch.randn(2, 3, 6, requires_grad=True)
    with Replay({"native_batch_norm_backward"}, rtol=1e-4, atol=1e-5) as replay:
        F.instance_norm(x, weight=torch.rand(3)).square().sum().backward()
    assert replay.checked == {"native_batch_norm_backward": 1}


def run(overload: str, *args: Any) -> Any:
    return call(lowering_of(overload), getattr(aten, overload).default, args, {})


def test_sync_batch_norm_of_shares_is_batch_norm_of_the_whole() -> None:
    x, w, b, mean, var = batch_arguments((7, 3, 4), torch.float32, torch.float32)
    whole = x.clone().requires_grad_(), w.clone().requires_grad_(), b.clone().requires_grad_()
    running = mean.clone(), var.clone()
    y = F.batch_norm(whole[0], *running, *whole[1:], training=True, momentum=0.3, eps=1e-3)
    grad = torch.randn_like(y)
    y.backward(grad)
    shares, grads = x.split([2, 5]), grad.split([2, 5])
    stats = [[to_tensor(s, torch.float32) for s in run("batch_norm_stats", share, 1e-3)] for share in shares]
    means, rstds = (torch.stack(column) for column in zip(*stats, strict=True))
    counts = torch.tensor([8.0, 20.0])
    joined = run("batch_norm_gather_stats_with_counts", x, means, rstds, mean, var, 0.3, 1e-3, counts)
    compare(joined[2:], running, "running statistics", 1e-4, 1e-5)
    m, r = (to_tensor(j, torch.float32) for j in joined[:2])
    out = torch.cat([to_tensor(run("batch_norm_elemt", share, w, b, m, r, 1e-3), torch.float32) for share in shares])
    torch.testing.assert_close(out, y.detach(), rtol=1e-4, atol=1e-5)
    reduced = [run("batch_norm_backward_reduce", g, s, m, r, w, True, True, True) for g, s in zip(grads, shares, strict=True)]
    sums = [sum(to_tensor(part[i], torch.float32) for part in reduced) for i in range(4)]
    torch.testing.assert_close(sums[2], whole[1].grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sums[3], whole[2].grad, rtol=1e-4, atol=1e-4)
    parts = [run("batch_norm_backward_elemt", g, s, m, r, w, sums[0], sums[1], counts.int()) for g, s in zip(grads, shares, strict=True)]
    torch.testing.assert_close(torch.cat([to_tensor(p, torch.float32) for p in parts]), whole[0].grad, rtol=1e-3, atol=1e-4)


def test_gather_stats_with_equal_counts() -> None:
    x = torch.randn(6, 3, 4)
    stats = [[to_tensor(s, torch.float32) for s in run("batch_norm_stats", share, 1e-3)] for share in x.chunk(2)]
    means, rstds = (torch.stack(column) for column in zip(*stats, strict=True))
    joined = run("batch_norm_gather_stats", x, means, rstds, None, None, 0.1, 1e-3, 12)
    compare(joined[0], x.mean((0, 2)), "mean", 1e-4, 1e-5)
    compare(joined[1], (x.var((0, 2), correction=0) + 1e-3).rsqrt(), "rstd", 1e-4, 1e-5)
