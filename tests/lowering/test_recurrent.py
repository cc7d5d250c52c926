"""Fused recurrent cells. The CPU has none: the reference are `torch.lstm_cell` / `gru_cell` and their autograd gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.replay import call, compare, to_tensor
from tpu_lab.lowering.registry import find

aten = torch.ops.aten
N, INPUT, H = 3, 5, 4


def run(overload: str, *args: Any) -> Any:
    found = find(overload)
    assert found is not None
    return call(found, getattr(aten, overload).default, args, {})


def cell_arguments(gates: int, biased: bool, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """x, hx, w_ih, w_hh, b_ih, b_hh; without bias the last two are zeros that the lowering does not get."""
    shapes = [(N, INPUT), (N, H), (gates * H, INPUT), (gates * H, H), (gates * H,), (gates * H,)]
    made = [torch.randn(shape).to(dtype) for shape in shapes]
    if not biased:
        made[4:] = [torch.zeros_like(b) for b in made[4:]]
    return tuple(t.requires_grad_() for t in made)


TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.bfloat16: (3e-2, 5e-2)}


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_lstm_cell(biased: bool, dtype: torch.dtype) -> None:
    x, hx, w_ih, w_hh, b_ih, b_hh = cell_arguments(4, biased, dtype)
    cx = torch.randn(N, H).to(dtype).requires_grad_()
    hy, cy = torch.lstm_cell(x, (hx, cx), w_ih, w_hh, b_ih, b_hh)
    gates = [(a @ w.T).detach() for a, w in ((x, w_ih), (hx, w_hh))]
    biases = [b_ih, b_hh] if biased else [None, None]
    out = run("_thnn_fused_lstm_cell", *gates, cx, *biases)
    compare(out[:2], (hy, cy), "_thnn_fused_lstm_cell", *TOLERANCE[dtype])
    grad_hy, grad_cy = torch.randn(N, H).to(dtype), torch.randn(N, H).to(dtype)
    workspace = to_tensor(out[2], dtype)
    for given in ((grad_hy, grad_cy), (grad_hy, None), (None, grad_cy)):
        loss = sum((g * y).sum() for g, y in zip(given, (hy, cy), strict=True) if g is not None)
        expected = torch.autograd.grad(loss, [x, cx, b_ih], retain_graph=True)
        grad_gates, grad_cx, grad_bias = run("_thnn_fused_lstm_cell_backward_impl", *given, cx, cy, workspace, biased)
        compare(grad_cx, expected[1], "grad cx", *TOLERANCE[dtype])
        torch.testing.assert_close(
            to_tensor(grad_gates, torch.float32) @ w_ih.float(), expected[0].float(), rtol=TOLERANCE[dtype][0], atol=4 * TOLERANCE[dtype][1]
        )
        if biased:
            compare(grad_bias, expected[2], "grad bias", *TOLERANCE[dtype])
        else:
            assert grad_bias is None


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_gru_cell(biased: bool, dtype: torch.dtype) -> None:
    x, hx, w_ih, w_hh, b_ih, b_hh = cell_arguments(3, biased, dtype)
    hy = torch.gru_cell(x, hx, w_ih, w_hh, b_ih, b_hh)
    input_gates, hidden_gates = (x @ w_ih.T).detach().requires_grad_(), (hx @ w_hh.T).detach().requires_grad_()
    biases = [b_ih, b_hh] if biased else [None, None]
    out, workspace = run("_thnn_fused_gru_cell", input_gates, hidden_gates, hx, *biases)
    compare(out, hy, "_thnn_fused_gru_cell", *TOLERANCE[dtype])
    grad = torch.randn(N, H).to(dtype)
    actual = run("_thnn_fused_gru_cell_backward", grad, to_tensor(workspace, dtype), biased)
    expected = gru_gradients(grad, input_gates, hidden_gates, hx, b_ih, b_hh)
    compare(actual[:3], expected[:3], "grads", *TOLERANCE[dtype])
    if biased:
        compare(actual[3:], expected[3:], "bias grads", *TOLERANCE[dtype])
    else:
        assert actual[3] is None and actual[4] is None


def gru_gradients(grad: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Autograd's gradients of the cell's textbook form (`torch.nn.GRUCell`'s documentation) by gates, state and biases, in float32."""
    wide = [t.detach().float().requires_grad_() for t in inputs]
    input_gates, hidden_gates, hx, b_ih, b_hh = wide
    i_r, i_z, i_n = (input_gates + b_ih).chunk(3, 1)
    h_r, h_z, h_n = (hidden_gates + b_hh).chunk(3, 1)
    r, z = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
    hy = (1 - z) * torch.tanh(i_n + r * h_n) + z * hx
    return tuple(g.to(grad.dtype) for g in torch.autograd.grad((hy * grad.float()).sum(), wide))
