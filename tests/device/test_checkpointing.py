"""Activation checkpointing in both forms: same gradients, same dropout masks, the caller's random state and autocast."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .against_cpu import assert_agree


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients(reentrant: bool) -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).to(device)
        x = torch.ones(2, 4, device=device, requires_grad=True)
        y = checkpoint(module, x, use_reentrant=reentrant)
        y.sum().backward()
        return y, x.grad, [p.grad for p in module.parameters()], checkpoint_sequential(module, 2, x, use_reentrant=reentrant)

    assert_agree(run, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_dropout_mask_is_drawn_twice_alike_and_the_sequence_goes_on(reentrant: bool) -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, device="tpu", requires_grad=True)
    y = checkpoint(lambda t: F.dropout(t * 2, 0.5), x, use_reentrant=reentrant)
    y.sum().backward()
    assert x.grad is not None and torch.equal((y.detach() != 0).cpu(), (x.grad != 0).cpu()) and 300 < (y != 0).sum().item() < 700
    after = torch.rand(3, device="tpu")
    torch.manual_seed(0)
    F.dropout(torch.ones(1000, device="tpu"), 0.5)
    assert torch.equal(after.cpu(), torch.rand(3, device="tpu").cpu())


@pytest.mark.parametrize("reentrant", [True, False])
def test_autocast_is_in_force_again(reentrant: bool) -> None:
    def run(device: str) -> Any:
        module, seen = nn.Linear(4, 4).to(device), []

        def forward(x: torch.Tensor) -> torch.Tensor:
            out = module(x).exp()
            seen.append(module(x).dtype)
            return out.sin()

        x = torch.ones(2, 4, device=device, requires_grad=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = checkpoint(forward, x, use_reentrant=reentrant)
        y.sum().backward()
        return seen

    assert set(assert_agree(run)) == {torch.bfloat16}
