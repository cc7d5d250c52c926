"""Activation functions and their gradients against CPU torch."""

from __future__ import annotations

from typing import Any

import jax
import pytest
import torch

from tests.lowering.direct import assert_same, floats
from tests.lowering.replay import assert_opinfo, to_array, to_tensor
from tpu_lab.lowering.promotion import Number
from tpu_lab.lowering.registry import find
from tpu_lab.lowering.rng import Rng

SAMPLED = {
    "celu": {"celu", "elu_backward"},
    "elu": {"elu", "elu_backward"},
    "gelu": {"gelu", "gelu_backward"},
    "glu": {"glu", "glu_backward"},
    "hardshrink": {"hardshrink", "hardshrink_backward"},
    "hardsigmoid": {"hardsigmoid", "hardsigmoid_backward"},
    "hardswish": {"hardswish", "hardswish_backward"},
    "hardtanh": {"hardtanh", "hardtanh_backward"},
    "leaky_relu": {"leaky_relu", "leaky_relu_backward"},
    "logsigmoid": {"log_sigmoid_forward", "log_sigmoid_backward"},
    "mish": {"mish", "mish_backward"},
    "prelu": {"_prelu_kernel", "_prelu_kernel_backward"},
    "relu": {"relu", "threshold_backward"},
    "relu6": {"hardtanh", "hardtanh_backward"},
    "rrelu": {"rrelu_with_noise_backward"},
    "selu": {"elu", "elu_backward"},
    "silu": {"silu", "silu_backward"},
    "softplus": {"softplus", "softplus_backward"},
    "softshrink": {"softshrink", "softshrink_backward"},
    "threshold": {"threshold", "threshold_backward"},
}
FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "celu": [(0.5,)],
    "elu": [(), (0.5, 2.0, 1.5)],
    "hardshrink": [(), (2.0,)],
    "hardsigmoid": [()],
    "hardswish": [()],
    "hardtanh": [(), (-2.0, 3.0)],
    "leaky_relu": [(0.2,)],
    "log_sigmoid_forward": [()],
    "relu": [()],
    "silu": [()],
    "softplus": [(), (2.0, 5.0)],
    "softshrink": [(0.5,)],
    "threshold": [(1.0, 20.0)],
}
GRADIENTS: dict[str, list[tuple[Any, ...]]] = {
    "hardshrink_backward": [(0.5,)],
    "hardsigmoid_backward": [()],
    "hardswish_backward": [()],
    "hardtanh_backward": [(-2.0, 3.0)],
    "leaky_relu_backward": [(0.2, False)],
    "sigmoid_backward": [()],
    "softplus_backward": [(2.0, 5.0)],
    "softshrink_backward": [(0.5,)],
    "tanh_backward": [()],
    "threshold_backward": [(0.5,)],
}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo_samples(name: str) -> None:
    only = SAMPLED[name]
    checked = assert_opinfo(f"nn.functional.{name}", (torch.float32,), only=only, limit=1)
    assert set(checked) == only


@pytest.mark.parametrize("overload", FUNCTIONS)
def test_edge_values(overload: str) -> None:
    for arguments in FUNCTIONS[overload]:
        assert_same(overload, floats(torch.float32), *arguments)
    assert_same(overload, floats(torch.bfloat16), *arguments)


@pytest.mark.parametrize("overload", GRADIENTS)
def test_edge_values_of_gradients(overload: str) -> None:
    for arguments in GRADIENTS[overload]:
        x = floats(torch.float32)
        assert_same(overload, torch.full_like(x, 1.5), x, *arguments)


def test_smooth_gradients_in_the_tails() -> None:
    x = floats(torch.float32, finite=True)
    x = x[x.abs() < 1e9]
    grad = torch.linspace(-2, 2, len(x))
    for approximate in ("none", "tanh"):
        assert_same("gelu", x, approximate=approximate)
        assert_same("gelu_backward", grad, x, approximate=approximate)
    for overload in ("silu_backward", "mish_backward"):
        assert_same(overload, grad, x)
    assert_same("mish", x)
    assert_same("log_sigmoid_backward", grad, x, torch.exp(-x.abs()))
    for is_result in (False, True):
        assert_same("elu_backward", grad, 1.0, 2.0, 0.5, is_result, x.clamp(max=50, min=-2 if is_result else -1e9))
    assert_same("elu_backward", torch.ones(1), 1.0, 2.0, 0.5, False, torch.tensor([float("nan")]))


def test_limits_of_integers_and_of_narrow_floats() -> None:
    x = torch.tensor([-5, -1, 0, 1, 2, 3])
    assert_same("relu", x)
    assert_same("hardtanh", x, -1, 2)
    assert_same("threshold", x, 1, 7)
    assert_same("threshold", x, 1.5, 7.7)
    narrow = torch.tensor([0.1, 0.3], dtype=torch.bfloat16)
    for limit in (0.1, 0.3):
        assert_same("threshold", narrow, limit, 9.0)
        assert_same("threshold_backward", torch.ones_like(narrow), narrow, limit)
        assert_same("hardshrink", narrow, limit)
        assert_same("hardshrink_backward", torch.ones_like(narrow), narrow, limit)


def test_glu_tangents() -> None:
    generator = torch.Generator().manual_seed(0)
    x, dx = (torch.randn(3, 4, generator=generator) for _ in range(2))
    half, dhalf = (torch.randn(3, 2, generator=generator) for _ in range(2))
    assert_same("glu_jvp", torch.nn.functional.glu(x), x, dx, -1)
    assert_same("glu_backward_jvp", torch.ops.aten.glu_backward(half, x, 1), half, x, dhalf, dx, 1)


def _rrelu(x: torch.Tensor, training: bool, functional: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    found = find("rrelu_with_noise_functional" if functional else "rrelu_with_noise")
    assert found is not None and found.random and found.mutates == (() if functional else ("noise",))
    with jax.enable_x64(True):
        state = jax.numpy.asarray([7, 0], dtype=jax.numpy.uint64)
        lower, upper = (Number(jax.numpy.asarray(v, dtype=jax.numpy.float64)) for v in (0.1, 0.3))
        out, noise = found.function(to_array(x), to_array(torch.zeros_like(x)), lower, upper, training, rng=Rng(state))
    return to_tensor(out, x.dtype), to_tensor(noise, x.dtype)


@pytest.mark.parametrize("functional", [False, True])
def test_rrelu_in_training_draws_slopes_and_keeps_them(functional: bool) -> None:
    x = torch.linspace(-3, 3, 4001)
    out, noise = _rrelu(x, training=True, functional=functional)
    assert torch.equal(out, x * noise)
    assert torch.all(noise[x > 0] == 1)
    slopes = noise[x <= 0]
    assert slopes.min() >= 0.1 and slopes.max() < 0.3
    assert abs(slopes.mean().item() - 0.2) < 0.01 and abs(slopes.std().item() - 0.2 / 12**0.5) < 0.005
    assert_same("rrelu_with_noise_backward", torch.full_like(x, 1.5), x, noise, 0.1, 0.3, True, False)


def test_rrelu_outside_training_takes_the_mean_slope() -> None:
    x = floats(torch.float32)
    out, noise = _rrelu(x, training=False)
    torch.testing.assert_close(out, torch.nn.functional.rrelu(x, 0.1, 0.3, training=False), equal_nan=True)
    assert torch.equal(noise, torch.zeros_like(x))
