"""`torch.func` on device tensors: vmap, grad, jvp, Jacobians, per-sample gradients, ensembles."""

from __future__ import annotations

from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from torch import nn
from torch.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

from .against_cpu import assert_agree


def test_grad_and_vjp() -> None:
    def run(device: str) -> Any:
        x = torch.arange(3.0, device=device)

        def f(t: torch.Tensor) -> torch.Tensor:
            return (t.sin() * t).sum()

        out, pull = vjp(f, x)
        return grad(f)(x), grad(grad(torch.sin))(x[1]), out, pull(torch.ones_like(out)), grad_and_value(f)(x)

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_vmap() -> None:
    def run(device: str) -> Any:
        x, w = torch.arange(12.0, device=device).reshape(3, 4), torch.ones(4, 2, device=device)
        return [
            vmap(lambda row: row @ w)(x),
            vmap(torch.dot)(x, x),
            vmap(lambda a, b: a * b, in_dims=(0, None))(x, x[0]),
            vmap(vmap(lambda s: s * 2))(x),
            vmap(lambda column: column.sum(), in_dims=1)(x),
            vmap(lambda row: row.softmax(0), out_dims=1)(x),
            vmap(lambda row, i: row[i])(x, torch.tensor([0, 1, 2], device=device)),
            vmap(lambda row: torch.where(row > 5, row, -row))(x),
            vmap(F.layer_norm, in_dims=(0, None))(x.reshape(3, 2, 2), (2,)),
        ]

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_vmap_of_random_operators() -> None:
    different = vmap(lambda x: x + torch.rand(2, device="tpu"), randomness="different")(torch.zeros(3, 2, device="tpu"))
    same = vmap(lambda x: x + torch.rand(2, device="tpu"), randomness="same")(torch.zeros(3, 2, device="tpu"))
    assert len(different.unique()) == 6 and len(same.unique()) == 2


def test_forward_mode() -> None:
    def run(device: str) -> Any:
        x, one = torch.arange(3.0, device=device), torch.ones(3, device=device)
        with forward_ad.dual_level():
            dual = forward_ad.unpack_dual(forward_ad.make_dual(x, one).exp().view(3, 1))
        out, push = linearize(lambda t: t**2, x)
        return [
            jvp(lambda t: t.sin() * t, (x,), (one,)),
            jvp(F.gelu, (x,), (one,)),
            jvp(lambda t: t.softmax(0), (x,), (x,)),
            jvp(lambda t: t @ t.T, (x[None],), (x[None],)),
            tuple(dual),
            (out, push(one)),
        ]

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_jacobians() -> None:
    def run(device: str) -> Any:
        x = torch.arange(3.0, device=device)
        old = torch.autograd.functional
        return [
            jacrev(torch.sin)(x),
            jacfwd(lambda t: t**2)(x),
            hessian(lambda t: (t**3).sum())(x),
            vmap(jacrev(lambda t: t**2))(x.expand(2, 3)),
            old.jacobian(lambda t: t**2, x),
            old.hessian(lambda t: (t**3).sum(), x),
        ]

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_per_sample_gradients_and_ensembles() -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).to(device)
        x, y = torch.linspace(0, 1, 20).reshape(5, 4).to(device), torch.tensor([0, 1, 0, 1, 0], device=device)

        def loss(params: Any, one: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(functional_call(module, params, (one[None],)), label[None])

        per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(dict(module.named_parameters()), x, y)
        models = [nn.Linear(4, 3).to(device) for _ in range(3)]
        params, _ = stack_module_state(models)
        together = vmap(lambda p, t: functional_call(models[0], p, (t,)), in_dims=(0, None))(params, x)
        return per_sample, together

    assert_agree(run, rtol=1e-5, atol=1e-6)


def test_functionalize() -> None:
    def write(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = 5
        y.view(3, 1).add_(1)
        return y

    assert_agree(lambda device: functionalize(write)(torch.arange(3.0, device=device)))
