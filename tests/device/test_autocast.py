"""`torch.autocast("tpu")`: the lists of operators, nesting, training; and GradScaler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from .against_cpu import assert_agree

HALF, FULL = torch.bfloat16, torch.float32
RULES: dict[str, tuple[torch.dtype, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "matmul": (HALF, lambda x, h: x @ x),
    "linear": (HALF, lambda x, h: F.linear(x, x, x[0])),
    "bmm": (HALF, lambda x, h: torch.bmm(x[None], x[None])),
    "einsum": (HALF, lambda x, h: torch.einsum("ij,jk->ik", x, x)),
    "conv2d": (HALF, lambda x, h: F.conv2d(x[None, None], x[None, None])),
    "attention": (HALF, lambda x, h: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])),
    "softmax": (FULL, lambda x, h: h.softmax(-1)),
    "layer_norm": (FULL, lambda x, h: F.layer_norm(h, (4,))),
    "exp": (FULL, lambda x, h: h.exp()),
    "sum": (FULL, lambda x, h: h.sum()),
    "cumsum": (FULL, lambda x, h: h.cumsum(0)),
    "mse_loss": (FULL, lambda x, h: F.mse_loss(h, h)),
    "cross_entropy": (FULL, lambda x, h: F.cross_entropy(h, torch.zeros(4, dtype=torch.long, device=h.device))),
    "pow": (FULL, lambda x, h: h**2),
    "cat of both": (FULL, lambda x, h: torch.cat([x, h])),
    "stack of halves": (HALF, lambda x, h: torch.stack([h, h])),
    "addcmul of both": (FULL, lambda x, h: torch.addcmul(x, h, h)),
    "relu": (HALF, lambda x, h: h.relu()),
    "add of both": (FULL, lambda x, h: x + h),
}


@pytest.mark.parametrize("name", RULES)
def test_the_dtype_an_operator_runs_in(name: str) -> None:
    """The lists are CUDA's: https://pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior."""
    dtype, compute = RULES[name]
    x = torch.linspace(0, 1, 16, device="tpu").reshape(4, 4)
    with torch.autocast("tpu", dtype=HALF):
        assert compute(x, x.bfloat16()).dtype is dtype
        assert (x.double() @ x.double()).dtype is torch.float64
        assert torch.sum(x.bfloat16(), dtype=torch.float16).dtype is torch.float16
    if name not in ("softmax", "layer_norm", "exp", "sum", "cumsum", "pow", "mse_loss", "cross_entropy"):
        assert compute(x, x).dtype is FULL


def test_nesting_and_decorators() -> None:
    def run(device: str) -> Any:
        x = torch.ones(4, 4, device=device)
        seen = []
        with torch.autocast(device, dtype=torch.bfloat16):
            seen.append((x @ x).dtype)
            with torch.autocast(device, enabled=False):
                seen.append((x @ x).dtype)
            with torch.autocast(device, dtype=torch.float16):
                seen.append((x @ x).dtype)
            seen.append((x @ x).dtype)

            @torch.autocast(device, dtype=torch.bfloat16, enabled=False)
            def without() -> torch.Tensor:
                return x @ x

            seen += [without().dtype, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)]
        return seen, (x @ x).dtype, torch.is_autocast_enabled(device)

    assert_agree(run)


def test_training_under_autocast() -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).to(device)
        x = torch.linspace(-1, 1, 24).sin().reshape(3, 8).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            out = module(x)
            loss = F.cross_entropy(out.float(), torch.tensor([0, 1, 2], device=device))
        loss.backward()
        return out.dtype, loss, [p.grad for p in module.parameters()]

    assert_agree(run, rtol=0.05, atol=0.02)


def test_in_place_and_out_keep_their_targets_dtype() -> None:
    def run(device: str) -> Any:
        x, out = torch.ones(4, 4, device=device), torch.zeros(4, 4, device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            out += x @ x
            torch.add(out, x @ x, out=out)
        return out

    assert_agree(run)


def test_binary_cross_entropy_is_refused() -> None:
    with torch.autocast("tpu"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(torch.full((2,), 0.5, device="tpu"), torch.ones(2, device="tpu"))


def test_autograd_functions_with_casts() -> None:
    def run(device: str) -> Any:
        class Double(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                assert x.dtype is torch.float32 and not torch.is_autocast_enabled(device)
                return x * 2

            @staticmethod
            @torch.amp.custom_bwd(device_type=device)
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                return grad * 2

        x = torch.ones(2, dtype=torch.bfloat16, device=device, requires_grad=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = Double.apply(x)
        y.sum().backward()
        return y, x.grad

    assert_agree(run)


def test_recurrent_networks_under_autocast() -> None:
    with torch.autocast("tpu", dtype=torch.bfloat16):
        out, _ = nn.LSTM(4, 5).to("tpu")(torch.ones(3, 2, 4, device="tpu"))
    assert out.shape == (3, 2, 5) and out.isfinite().all()


@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler(fused: bool) -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        module = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(module.parameters(), 0.1, fused=fused)
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        seen = []
        for i in range(4):
            optimizer.zero_grad()
            x = torch.ones(2, 4, device=device) * (float("inf") if i == 2 else 1)
            scaler.scale(module(x).square().mean()).backward()
            if i == 1:
                scaler.unscale_(optimizer)
                seen.append(nn.utils.clip_grad_norm_(module.parameters(), 1.0))
            scaler.step(optimizer)
            scaler.update()
            seen.append((scaler.get_scale(), [p.detach().clone() for p in module.parameters()]))
        return seen, scaler.state_dict()

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_the_modules_own_names() -> None:
    x = torch.ones(2, 2, device="tpu")
    with torch.tpu.amp.autocast():  # type: ignore[attr-defined]
        assert (x @ x).dtype is torch.bfloat16
    assert torch.tpu.amp.GradScaler(init_scale=4.0).get_scale() == 4.0  # type: ignore[attr-defined]
    assert torch.bfloat16 in torch.tpu.get_amp_supported_dtype()  # type: ignore[attr-defined]
