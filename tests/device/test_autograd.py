"""Autograd on device tensors: hooks, anomalies, saved tensors, custom functions, inference mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from .against_cpu import assert_agree, assert_error


def test_module_and_tensor_hooks() -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).to(device)
        log: list[Any] = []
        module[0].register_forward_pre_hook(lambda m, given: (given[0] * 2,))
        module[0].register_forward_hook(lambda m, given, out: out + 1)
        module[0].register_full_backward_hook(lambda m, into, out_of: log.append((into[0], out_of[0])))
        module.register_full_backward_pre_hook(lambda m, out_of: (out_of[0] * 3,))
        everywhere = nn.modules.module.register_module_forward_hook(lambda m, given, out: log.append(type(m).__name__))
        x = torch.ones(2, 4, device=device, requires_grad=True)
        x.register_hook(lambda grad: grad * 2)
        try:
            y = module(x)
        finally:
            everywhere.remove()
        y.register_hook(lambda grad: log.append(grad))
        y.retain_grad()
        y.sum().backward()
        return log, x.grad, y.grad

    assert_agree(run)


def test_saved_tensor_hooks_and_saving_on_the_cpu() -> None:
    def run(device: str) -> Any:
        found = []
        for context in (
            torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(device)),
            torch.autograd.graph.save_on_cpu(),
            torch.autograd.graph.save_on_cpu(pin_memory=device == "tpu"),
        ):
            x = torch.ones(3, device=device, requires_grad=True)
            with context:
                y = (x * x * 2).exp()
            y.sum().backward()
            found.append(x.grad)
        return found

    assert_agree(run)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_anomaly_mode_finds_the_operator() -> None:
    def run(device: str) -> None:
        with torch.autograd.detect_anomaly():
            x = torch.zeros(2, device=device, requires_grad=True)
            (x.sqrt() * 0).sum().backward()

    assert_error(run, RuntimeError, "Function 'SqrtBackward0' returned nan values")


def test_custom_functions_and_numeric_checks() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return grad * ctx.factor + x * 0, None

    def run(device: str) -> Any:
        x = torch.ones(3, device=device, requires_grad=True)
        Scaled.apply(x, 3).sum().backward()
        wide = torch.linspace(0.1, 1, 4, dtype=torch.float64, device=device).reshape(2, 2).requires_grad_()
        checks = [torch.autograd.gradcheck(lambda t: Scaled.apply(t, 2), (wide,)), torch.autograd.gradgradcheck(lambda t: (t @ t).tanh(), (wide,))]
        return x.grad, checks

    assert_agree(run)


def test_higher_order_accumulated_and_partial_gradients() -> None:
    def run(device: str) -> Any:
        x = torch.arange(3.0, device=device, requires_grad=True)
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        first.sum().backward()
        second, x.grad = x.grad, None
        z = x * 2
        torch.autograd.backward([z, z * 2], [torch.ones(3, device=device)] * 2)
        for _ in range(2):
            (x * x).sum().backward()
        with torch.no_grad():
            x.add_(1)
        return first, second, x.grad, x.detach(), torch.autograd.grad(x.sum(), x)

    assert_agree(run)


def test_in_place_on_views_within_a_graph() -> None:
    def run(device: str) -> Any:
        x = torch.ones(4, device=device, requires_grad=True)
        y = x * 2
        y[1:].mul_(3)
        y[::2] = y[::2] * torch.tensor([5.0, 7.0], device=device)
        y.view(2, 2)[0].exp_()
        y.sum().backward()
        return y, x.grad

    assert_agree(run)


def test_misuse_is_refused_as_on_the_cpu() -> None:
    def overwritten(device: str) -> None:
        x = torch.ones(3, device=device, requires_grad=True)
        y = (x * 2).exp()
        y.add_(1)
        y.sum().backward()

    def twice(device: str) -> None:
        y = (torch.ones(2, device=device, requires_grad=True) ** 2).sum()
        y.backward()
        y.backward()

    assert_error(overwritten, RuntimeError, "modified by an inplace operation")
    assert_error(twice, RuntimeError, "backward through the graph a second time")
    assert_error(lambda device: torch.ones(3, device=device, requires_grad=True).add_(1), RuntimeError, "leaf Variable")
    assert_error(lambda device: torch.ones(3, device=device, requires_grad=True)[0].add_(1), RuntimeError, "view of a leaf Variable")


def test_inference_mode() -> None:
    def run(device: str) -> Any:
        with torch.inference_mode():
            x = torch.ones(3, device=device)
            y = x.view(3, 1) * 2
            y.add_(1)
            x[1:].mul_(3)
        return y, x, x.is_inference(), x.clone()

    def used_in_a_graph(device: str) -> None:
        with torch.inference_mode():
            x = torch.ones(3, device=device)
        (x * torch.ones(3, device=device, requires_grad=True)).sum().backward()

    assert_agree(run)
    assert_error(used_in_a_graph, RuntimeError, "Inference tensors cannot be saved for backward")
