"""Fake quantization and `quantized_decomposed` operators against torch's CPU kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed

from tpu_lab.lowering.registry import all_lowerings, find

from .replay import call, compare

ATEN = torch.ops.aten
QD = torch.ops.quantized_decomposed


def assert_same(op: Any, *args: Any, **named: Any) -> None:
    name = op.name().removeprefix("aten::")
    found = find(name)
    assert found is not None
    expected, actual = op(*args, **named), call(found, op, args, named)
    expected, actual = ([expected], [actual]) if isinstance(expected, torch.Tensor) else (expected, actual)
    for mine, wanted in zip(actual, expected, strict=True):
        assert mine.shape == tuple(wanted.shape), name
        compare(mine, wanted, name)


def normal(*shape: int) -> torch.Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


X = normal(4, 6)
X[1, 1] = 100.0
SCALES = torch.tensor([0.1, 0.7, 0.33, 1.2, 0.05, 0.5])
ORIGINS = torch.tensor([0, 1, -3, 4, 2, -1], dtype=torch.int32)
INT8 = (-128, 127, torch.int8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fake_quantize(dtype: torch.dtype) -> None:
    x = X.clone()
    x[0, 0] = float("nan")
    assert_same(ATEN.fake_quantize_per_tensor_affine_cachemask.default, x.to(dtype), 0.1, 3, -128, 127)
    assert_same(ATEN.fake_quantize_per_channel_affine_cachemask.default, x.to(dtype), SCALES, ORIGINS, 1, -8, 7)


def test_fake_quantize_with_a_floating_zero_point() -> None:
    assert_same(ATEN.fake_quantize_per_channel_affine_cachemask.default, X, SCALES, ORIGINS + 0.3, 1, -8, 7)


@pytest.mark.parametrize("enabled", [0, 1])
def test_fake_quantize_of_tensors(enabled: int) -> None:
    op = ATEN._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default
    assert_same(op, X, torch.tensor([0.1]), torch.tensor([2], dtype=torch.int32), torch.tensor([enabled]), -8, 7)


@pytest.mark.parametrize("origin", [1.5, -2.7, 20.0])
def test_learnable(origin: float) -> None:
    scale, zero_point = torch.tensor([0.2]), torch.tensor([origin])
    assert_same(ATEN._fake_quantize_learnable_per_tensor_affine.default, X, scale, zero_point, -8, 7, 1.0)
    assert_same(ATEN._fake_quantize_learnable_per_tensor_affine_backward.default, normal(4, 6), X, scale, zero_point, -8, 7, 0.5)


def test_learnable_per_channel() -> None:
    origins = ORIGINS + 0.3
    assert_same(ATEN._fake_quantize_learnable_per_channel_affine.default, X, SCALES, origins, 1, -8, 7, 1.0)
    assert_same(ATEN._fake_quantize_learnable_per_channel_affine_backward.default, normal(4, 6), X, SCALES, origins, 1, -8, 7, 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_quantize(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    assert_same(QD.quantize_per_tensor.default, x, 0.1, 3, *INT8)
    assert_same(QD.quantize_per_channel.default, x, SCALES, ORIGINS, 1, -8, 7, torch.int8)
    assert_same(QD.quantize_per_channel.default, x, SCALES.double(), ORIGINS.long(), 1, 0, 255, torch.uint8)


def test_parameters_as_tensors() -> None:
    q = QD.quantize_per_tensor(X, 0.1, 3, *INT8)
    scale, origin, low, high = torch.tensor(0.1), torch.tensor(3), torch.tensor(-128), torch.tensor(127)
    assert_same(QD.quantize_per_tensor.tensor, X, scale.double(), origin, *INT8)
    assert_same(QD.quantize_per_tensor.tensor2, X, scale, origin, low, high, torch.int8)
    assert_same(QD.dequantize_per_tensor.tensor, q, scale, origin, *INT8)
    assert_same(QD.dequantize_per_tensor.tensor2, q, scale, origin, low, high, torch.int8)


def test_dequantize() -> None:
    q = QD.quantize_per_tensor(X, 0.1, 3, *INT8)
    assert_same(QD.dequantize_per_tensor.default, q, 0.1, 3, *INT8)
    assert_same(QD.dequantize_per_tensor.default, q, 0.1, 3, *INT8, out_dtype=torch.float64)
    for origins in (None, ORIGINS, ORIGINS.to(torch.int8)):
        assert_same(QD.dequantize_per_channel.default, q, SCALES, origins, 1, *INT8)


@pytest.mark.parametrize("x", [X, X.abs() + 1, X * 0, X.bfloat16(), torch.tensor([1.0, float("inf")])])
def test_choosing_parameters(x: torch.Tensor) -> None:
    assert_same(QD.choose_qparams.tensor, x, -128, 127, 1e-6, torch.int8)
    assert_same(QD.choose_qparams_symmetric.tensor, x, -128, 127, 1e-6, torch.int8)
    assert_same(QD.choose_qparams_symmetric.tensor, x, 0, 255, 1e-6, torch.uint8)


@pytest.mark.parametrize("x", [X, X.abs() + 3, X.bfloat16()])
def test_choosing_parameters_per_token(x: torch.Tensor) -> None:
    assert_same(QD.choose_qparams_per_token.default, x, torch.int8)
    assert_same(QD.choose_qparams_per_token_asymmetric.default, x, torch.int8)


def test_per_token_and_per_group() -> None:
    scales, origins = QD.choose_qparams_per_token_asymmetric(X, torch.int8)
    assert_same(QD.quantize_per_token.default, X, scales, origins, *INT8)
    assert_same(QD.dequantize_per_token.default, QD.quantize_per_token(X, scales, origins, *INT8), scales, origins, *INT8, torch.float32)
    steps, zeros = torch.rand(4, 2) + 0.1, torch.randint(-2, 3, (4, 2), dtype=torch.int32)
    assert_same(QD.quantize_per_channel_group.default, X, steps, zeros, -8, 7, torch.int8, 3)
    q = QD.quantize_per_channel_group(X, steps, zeros, -8, 7, torch.int8, 3)
    for given in (zeros, None):
        assert_same(QD.dequantize_per_channel_group.default, q, steps, given, -8, 7, torch.int8, 3, torch.float32)


def test_every_operator_of_the_namespace_is_served() -> None:
    """But for a composite, an autograd function and a marker without arithmetic, which run in other operators."""
    names = {
        s.name + (f".{s.overload_name}" if s.overload_name else "") for s in torch._C._jit_get_all_schemas() if s.name.startswith("quantized_dec")
    }
    missing = {n.removeprefix("quantized_decomposed::") for n in names if n not in all_lowerings()}
    assert missing == {"_choose_qparams_per_token_asymmetric_impl", "fake_quant_per_channel", "convert_element_type.no_fuse"}


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("limits", [(0, 255), (-128, 127)])
@pytest.mark.parametrize("observed", [0, 1])
def test_moving_average_observer(per_row: bool, symmetric: bool, limits: tuple[int, int], observed: int) -> None:
    def steps(device: str) -> list[torch.Tensor]:
        count = 3 if per_row else 1
        x = torch.linspace(-4, 9, 12).reshape(3, 4)
        fresh = torch.full((count,), torch.inf), torch.full((count,), -torch.inf), torch.ones(count), torch.zeros(count, dtype=torch.int32)
        state = [t.to(device) for t in fresh]
        flags = torch.tensor([observed], device=device), torch.tensor([1], device=device)
        for factor in (1, 3):
            value, mask = torch._fused_moving_avg_obs_fq_helper((x * factor).to(device), *flags, *state, 0.1, *limits, 0, per_row, symmetric)
        return [t.cpu() for t in (value, mask, *state)]

    for actual, expected in zip(steps("tpu"), steps("cpu"), strict=True):
        torch.testing.assert_close(actual, expected)
