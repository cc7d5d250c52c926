"""Overloads that few programs call by name: the kernels behind other operators, and fused forms."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.direct import assert_same

R = torch.randn


def test_products_with_scales() -> None:
    assert_same("_weight_int8pack_mm", R(4, 32).bfloat16(), torch.randint(-127, 127, (16, 32), dtype=torch.int8), R(16).bfloat16())
    assert_same("_compute_linear_combination", R(3, 2, 4), R(5, 3))
    eight = torch.float8_e4m3fn
    a, b = R(16, 32).to(eight), R(16, 32).to(eight).t()
    assert_same("_scaled_mm", a, b, torch.tensor(2.0), torch.tensor(0.5), out_dtype=torch.bfloat16)
    assert_same("_scaled_mm", a, b, torch.tensor(2.0), torch.tensor(0.5), bias=R(16), out_dtype=torch.float32)
    assert_same("_scaled_mm", a, b, torch.rand(16, 1), torch.rand(1, 16), out_dtype=torch.float32)
    assert_same("_scaled_mm_v2", a, b, [torch.tensor(2.0)], [0], [], [torch.tensor(0.5)], [0], [], None, torch.bfloat16)
    assert_same("_scaled_mm_v2", a, b, [torch.rand(16, 1)], [1], [], [torch.rand(1, 16)], [1], [], R(16), torch.float32)


def test_masked_softmax() -> None:
    x, mask = R(2, 3, 4, 4), torch.rand(2, 3, 4, 4) > 0.5
    mask[0, 0, 0] = True
    assert_same("_masked_softmax", x, mask, 3, 2)
    assert_same("_masked_softmax", x, mask, 1, 2)
    assert_same("_masked_softmax", x, torch.eye(4, dtype=torch.bool), 3, 0)
    assert_same("_masked_softmax", x, torch.tensor([[True, False, False, True], [False, False, True, False]]), 3, 1)
    out = torch._masked_softmax(x, mask, 3, 2)
    assert_same("_masked_softmax_backward", R(2, 3, 4, 4), out, mask, 3)


def test_convolutions_by_their_kernels() -> None:
    x, weight, bias = R(2, 3, 8, 8), R(4, 3, 3, 3), R(4)
    assert_same("_slow_conv2d_forward", x, weight, [3, 3], bias, [2, 1], [1, 0])
    assert_same("slow_conv_dilated2d", x, weight, [3, 3], bias, [2, 1], [1, 0], [2, 1])
    assert_same("slow_conv_dilated2d", x[0], weight, [3, 3], bias, [2, 1], [1, 0], [2, 1])
    assert_same("slow_conv_transpose2d", x, R(3, 4, 3, 3), [3, 3], bias, [2, 1], [1, 0], [1, 0], [1, 1])
    assert_same("_slow_conv2d_backward.output_mask", R(2, 4, 4, 6), x, weight, [3, 3], [2, 1], [1, 0], [True, True, True])
    deep, kernel = R(2, 3, 4, 4, 4), R(4, 3, 3, 3, 2)
    assert_same("slow_conv3d_forward", deep, kernel, [3, 3, 2], bias, [2, 1, 1], [1, 0, 0])
    assert_same("slow_conv_dilated3d", deep, kernel, [3, 3, 2], None, [2, 1, 1], [1, 0, 0], [1, 1, 1])
    assert_same("slow_conv_transpose3d", deep, R(3, 4, 3, 3, 2), [3, 3, 2], bias, [2, 1, 1], [1, 0, 0], [1, 0, 0], [1, 1, 1])


def test_weight_norm_and_statistics() -> None:
    for dim, shape in ((0, (3, 1, 1)), (2, (1, 1, 2))):
        v, g = R(3, 4, 2), R(*shape)
        _, norms = torch._weight_norm_interface(v, g, dim)
        assert_same("_weight_norm_interface", v, g, dim)
        assert_same("_weight_norm_interface_backward", R(3, 4, 2), v, g, norms, dim)
    assert_same("batch_norm_update_stats", R(3, 4, 2), R(4), R(4).abs(), 0.1)


@pytest.mark.parametrize("alpha", [1, 2])
def test_add_relu(alpha: int) -> None:
    assert_same("_add_relu.Tensor", R(3, 4), R(4), alpha=alpha)
    assert_same("_add_relu.Scalar", R(3, 4), 0.5, alpha)


@pytest.mark.parametrize("upper", [False, True])
def test_old_cholesky(upper: bool) -> None:
    a = R(2, 4, 4)
    assert_same("cholesky", a @ a.mT + torch.eye(4), upper)


@pytest.mark.parametrize("name", ["_cummax_helper", "_cummin_helper"])
def test_running_extremes_into_targets(name: str) -> None:
    x = torch.tensor([[1.0, 3.0, 2.0], [torch.nan, 0.0, 5.0]])
    results = []
    for device in ("cpu", "tpu"):
        values, indices = torch.empty(2, 3, device=device), torch.empty(2, 3, dtype=torch.int64, device=device)
        getattr(torch, name)(x.to(device), values, indices, 1)
        results.append((values.cpu(), indices.cpu()))
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)
