"""Fused optimizer steps and the gradient scaler's operators against torch's CPU kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tpu_lab.lowering.registry import find

from .replay import call, compare

ATEN = torch.ops.aten


def assert_same(op: Any, *args: Any, **named: Any) -> None:
    name = op.name().removeprefix("aten::")
    expected = op(*args, **named)
    found = find(name)
    assert found is not None
    actual = call(found, op, args, named)
    assert len(actual) == len(expected)
    for mine, wanted in zip(actual, expected, strict=True):
        assert not isinstance(wanted, list) or len(mine) == len(wanted)
        compare(mine, wanted, name)


def values(dtype: torch.dtype, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(3, 4, generator=generator).to(dtype), torch.randn((), generator=generator).to(dtype)]


def state(dtype: torch.dtype) -> tuple[list[torch.Tensor], ...]:
    """Parameters, gradients, first and second averages, their maxima, step counts."""
    squares = [v.abs() for v in values(dtype, 3)]
    return values(dtype, 0), values(dtype, 1), values(dtype, 2), squares, [v * 1.01 for v in squares], [torch.tensor(3.0), torch.tensor(1.0)]


SCALED = {"grad_scale": torch.tensor(4.0), "found_inf": torch.tensor(0.0)}
SKIPPED = {"grad_scale": torch.tensor(4.0), "found_inf": torch.tensor(1.0)}
ADAM = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}


@pytest.mark.parametrize("name", ["_fused_adam", "_fused_adamw"])
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": torch.float32, "weight_decay": 0.0},
        {"dtype": torch.float32, "weight_decay": 0.1, "amsgrad": True},
        {"dtype": torch.bfloat16, "weight_decay": 0.1, "maximize": True},
        {"dtype": torch.float64, "weight_decay": 0.1, **SCALED},
        {"dtype": torch.float32, "weight_decay": 0.1, "amsgrad": True, **SKIPPED},
    ],
)
def test_adam(name: str, options: dict[str, Any]) -> None:
    given = {"amsgrad": False, "maximize": False, **ADAM, **options}
    params, grads, first, second, largest, steps = state(given.pop("dtype"))
    assert_same(getattr(ATEN, name).default, params, grads, first, second, largest if given["amsgrad"] else [], steps, lr=0.01, **given)


@pytest.mark.parametrize("name", ["_fused_adam", "_fused_adamw"])
def test_adam_with_a_tensor_for_the_rate(name: str) -> None:
    params, grads, first, second, _, steps = state(torch.float32)
    options = {"weight_decay": 0.1, "amsgrad": False, "maximize": False, **ADAM}
    assert_same(getattr(ATEN, name).tensor_lr, params, grads, first, second, [], steps, lr=torch.tensor(0.01), **options)


@pytest.mark.parametrize("form", ["default", "tensor_lr"])
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": torch.float32, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "is_first_step": False},
        {"dtype": torch.float32, "momentum": 0.9, "dampening": 0.2, "nesterov": False, "is_first_step": False, "maximize": True},
        {"dtype": torch.bfloat16, "momentum": 0.9, "dampening": 0.0, "nesterov": True, "is_first_step": True},
        {"dtype": torch.float32, "momentum": 0.9, "dampening": 0.2, "nesterov": False, "is_first_step": False, **SCALED},
        {"dtype": torch.float32, "momentum": 0.9, "dampening": 0.2, "nesterov": False, "is_first_step": False, **SKIPPED},
    ],
)
def test_sgd(form: str, options: dict[str, Any]) -> None:
    given = {"maximize": False, "weight_decay": 0.1, **options}
    params, grads, buffers, *_ = state(given.pop("dtype"))
    rate = 0.1 if form == "default" else torch.tensor(0.1)
    assert_same(getattr(ATEN._fused_sgd, form), params, grads, buffers if given["momentum"] else [], lr=rate, **given)


@pytest.mark.parametrize("form", ["default", "tensor_lr"])
@pytest.mark.parametrize("options", [{"maximize": True}, {"maximize": False, **SCALED}, {"maximize": False, **SKIPPED}])
def test_adagrad(form: str, options: dict[str, Any]) -> None:
    params, grads, _, sums, _, steps = state(torch.float32)
    rate = 0.1 if form == "default" else torch.tensor(0.1)
    assert_same(getattr(ATEN._fused_adagrad, form), params, grads, sums, steps, lr=rate, lr_decay=0.01, weight_decay=0.1, eps=1e-10, **options)


@pytest.mark.parametrize("broken", [None, float("inf"), float("nan")])
def test_unscale(broken: float | None) -> None:
    grads = values(torch.float32, 0)
    if broken is not None:
        grads[0][1, 2] = broken
    assert_same(ATEN._amp_foreach_non_finite_check_and_unscale.default, grads, torch.zeros(1), torch.tensor(0.5))


def test_unscale_keeps_an_overflow_found_before() -> None:
    assert_same(ATEN._amp_foreach_non_finite_check_and_unscale.default, values(torch.float32, 0), torch.ones(1), torch.tensor(1.0))


@pytest.mark.parametrize(("scale", "tracker", "found"), [(1024.0, 0, 0.0), (1024.0, 1, 0.0), (1024.0, 1, 1.0), (3e38, 1, 0.0)])
def test_update_scale(scale: float, tracker: int, found: float) -> None:
    count = torch.tensor(tracker, dtype=torch.int32)
    assert_same(ATEN._amp_update_scale.default, torch.tensor(scale), count, torch.tensor([found]), 2.0, 0.5, 2)
