"""What a compiled function may do besides computing: hooks, checkpoints, autocast, writes, views, random numbers. Goldens: eager, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import tpu_lab  # noqa: F401


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Use = Callable[[str, Compile], list[Any]]


def linear(device: str) -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 4).to(device)


def checkpointed(device: str, compiled: Compile) -> list[Any]:
    layer, x = linear(device), torch.ones(2, 4, device=device, requires_grad=True)
    compiled(lambda x: checkpoint(lambda t: layer(t).tanh().sin(), x, use_reentrant=False).sum())(x).backward()
    return [x.grad, layer.weight.grad]


def hooks(device: str, compiled: Compile) -> list[Any]:
    layer, x = linear(device), torch.ones(2, 4, device=device, requires_grad=True)
    layer.register_forward_hook(lambda module, given, result: result * 2)

    def target(x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        y.register_hook(lambda gradient: gradient * 3)
        return (y * x).sum()

    compiled(target)(x).backward()
    return [x.grad, layer.weight.grad]


def autocast(device: str, compiled: Compile) -> list[Any]:
    layer, x = linear(device), torch.ones(2, 4, device=device)

    def target(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            return layer(x).float().sum() + torch.softmax(x, -1).sum()

    compiled(target)(x).backward()
    return [layer.weight.grad]


def written_slices(device: str, compiled: Compile) -> list[Any]:
    def target(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x[1].mul_(2)
        x[:, 0] = 7
        return x, x.t(), x.view(-1)

    x = torch.arange(6.0, device=device).view(2, 3)
    results = compiled(target)(x)
    results[2].add_(1)
    return [*results, x]


def same_twice(device: str, compiled: Compile) -> list[Any]:
    def target(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + y

    x = torch.ones(3, device=device)
    return [compiled(target)(x, x), x]


def returned_input(device: str, compiled: Compile) -> list[Any]:
    x = torch.ones(3, device=device, requires_grad=True)
    same, detached, more = compiled(lambda x: (x, x.detach(), x + 1))(x)
    (same.sum() * 2 + more.sum()).backward()
    return [x.grad, same is x, detached.requires_grad]


def branches(device: str, compiled: Compile) -> list[Any]:
    run = compiled(lambda x: torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,)))
    return [run(torch.ones(3, device=device)), run(-torch.ones(3, device=device))]


def out_argument(device: str, compiled: Compile) -> list[Any]:
    def target(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        torch.add(x, 1, out=out)
        return out * 2

    out = torch.zeros(3, device=device)
    return [compiled(target)(torch.ones(3, device=device), out), out]


def grad_modes(device: str, compiled: Compile) -> list[Any]:
    layer, x = linear(device), torch.ones(2, 4, device=device)
    run = compiled(lambda x: layer(x))
    with_gradient = run(x)
    with torch.no_grad():
        without = run(x)
    return [with_gradient.detach(), without, with_gradient.requires_grad, without.requires_grad]


def own_function(device: str, compiled: Compile) -> list[Any]:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            context.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(context: Any, *gradients: torch.Tensor) -> Any:
            (x,) = context.saved_tensors
            return gradients[0] * 5 * x

    x = torch.ones(3, device=device, requires_grad=True)
    compiled(lambda x: Scaled.apply(x).sum())(x).backward()  # type: ignore[no-untyped-call]
    return [x.grad]


def layouts(device: str, compiled: Compile) -> list[Any]:
    run, x = compiled(lambda x: x.t().reshape(-1) + 1), torch.arange(12.0, device=device).view(3, 4)
    return [run(x), run(x.t()), run(x[1:, 1:]), run(x[:, ::2])]


USES: list[Use] = [
    checkpointed,
    hooks,
    autocast,
    written_slices,
    same_twice,
    returned_input,
    branches,
    out_argument,
    grad_modes,
    own_function,
    layouts,
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_equals_eager_on_the_cpu(use: Use) -> None:
    found, right = use("tpu", lambda f: torch.compile(f, backend="tpu")), use("cpu", lambda f: f)
    torch.testing.assert_close(found, right, check_device=False, rtol=1e-3, atol=1e-4)


def test_random_numbers_are_eager_s() -> None:
    def drawn(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)

    x = torch.ones(50, device="tpu")
    torch.manual_seed(3)
    found = torch.compile(drawn, backend="tpu")(x)
    torch.manual_seed(3)
    assert torch.equal(found, drawn(x))
