"""Layers that need special care on a device made in Python: recurrent cells, running statistics, attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from .against_cpu import assert_agree


def seeded(make: Callable[[], nn.Module], device: str) -> nn.Module:
    torch.manual_seed(0)
    return make().to(device)


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}], ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_networks(kind: type[nn.RNNBase], options: dict[str, Any]) -> None:
    def run(device: str) -> Any:
        module = seeded(lambda: kind(4, 5, **options), device)
        x = torch.linspace(-1, 1, 24).reshape(3, 2, 4).to(device).requires_grad_()
        out, hidden = module(x)
        out.sum().backward()
        return out, hidden, x.grad, [p.grad for p in module.parameters()]

    assert_agree(run, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells(kind: type[nn.RNNCellBase]) -> None:
    def run(device: str) -> Any:
        module = seeded(lambda: kind(4, 5), device)  # type: ignore[call-arg]
        x = torch.linspace(-1, 1, 8).reshape(2, 4).to(device)
        state = module(x, module(x))
        (state[0] if isinstance(state, tuple) else state).sum().backward()
        return state, [p.grad for p in module.parameters()]

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_packed_sequences_and_projections() -> None:
    def run(device: str) -> Any:
        module = seeded(lambda: nn.LSTM(4, 5, bidirectional=True), device)
        x = torch.linspace(-1, 1, 48).reshape(4, 3, 4).to(device).requires_grad_()
        packed, (h, c) = module(pack_padded_sequence(x, torch.tensor([4, 2, 3]), enforce_sorted=False))
        padded, lengths = pad_packed_sequence(packed)
        padded.sum().backward()
        projected = seeded(lambda: nn.LSTM(4, 5, proj_size=3), device)(x)[0]
        return padded, lengths, h, c, x.grad, projected, pad_sequence([torch.ones(2, device=device), torch.ones(3, device=device)])

    assert_agree(run, rtol=1e-4, atol=1e-5)


NORMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (4, 3)),
    "BatchNorm1d, cumulative": (lambda: nn.BatchNorm1d(3, momentum=None), (4, 3, 2)),
    "BatchNorm2d, not affine": (lambda: nn.BatchNorm2d(3, affine=False), (2, 3, 2, 2)),
    "BatchNorm2d, no statistics": (lambda: nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 2, 2)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 4, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(3, 6), (2, 6, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (2, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (2, 4)),
}


@pytest.mark.parametrize("name", NORMS)
def test_normalisation_and_its_statistics(name: str) -> None:
    make, shape = NORMS[name]

    def run(device: str) -> Any:
        module = make().to(device)
        buffers = [id(b) for b in module.buffers()]
        x = torch.arange(torch.Size(shape).numel()).div(7).sin().reshape(shape).to(device).requires_grad_()
        found = []
        for i in range(3):
            out = module(x * (i + 1))
            found.append(out)
        (out * torch.arange(float(out.numel())).cos().reshape(shape).to(device)).sum().backward()
        assert [id(b) for b in module.buffers()] == buffers, "statistics are written in place"
        trained = {k: v.clone() for k, v in module.state_dict().items()}
        module.eval()
        return found, x.grad, trained, module(x), dict(module.state_dict())

    assert_agree(run, rtol=1e-4, atol=1e-5)


def attention_inputs(device: str) -> tuple[torch.Tensor, ...]:
    return tuple((torch.arange(384.0) * (i + 1)).sin().reshape(2, 4, 6, 8).to(device).requires_grad_() for i in range(3))


ATTENTION: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "plain": F.scaled_dot_product_attention,
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "added mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.arange(36.0, device=q.device).cos().reshape(6, 6)),
    "bool mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(6, 6, dtype=torch.bool, device=q.device).tril(1)),
    "scale": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.5),
    "grouped queries": lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    "two dimensions": lambda q, k, v: F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0]),
    "transposed": lambda q, k, v: F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)),
    "float64": lambda q, k, v: F.scaled_dot_product_attention(q.double(), k.double(), v.double()),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_in_its_entry_points(name: str) -> None:
    def run(device: str) -> Any:
        inputs = attention_inputs(device)
        out = ATTENTION[name](*inputs)
        out.square().sum().backward()
        return out, [x.grad for x in inputs]

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_attention_with_a_chosen_backend_and_dropout() -> None:
    with sdpa_kernel(SDPBackend.MATH):
        assert_agree(lambda device: F.scaled_dot_product_attention(*attention_inputs(device)), rtol=1e-4, atol=1e-5)
    q, k, v = attention_inputs("tpu")
    dropped = F.scaled_dot_product_attention(q, k, torch.ones_like(v), dropout_p=0.5)
    assert dropped.shape == q.shape and not torch.allclose(dropped.cpu(), torch.ones(2, 4, 6, 8))


def test_transformer_layers() -> None:
    def run(device: str) -> Any:
        layer = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), device)
        heads = seeded(lambda: nn.MultiheadAttention(8, 2), device)
        x = torch.linspace(-1, 1, 80).sin().reshape(2, 5, 8).to(device).requires_grad_()
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]).to(device)
        out = layer(x, src_key_padding_mask=padding)
        out.sum().backward()
        layer.eval()
        with torch.no_grad():
            fast = layer(x)
        y = x.detach().transpose(0, 1)
        causal = torch.ones(5, 5, dtype=torch.bool, device=device).triu(1)
        return out, x.grad, fast, heads(y, y, y, attn_mask=causal), heads.eval()(y, y, y, need_weights=False)[0]

    assert_agree(run, rtol=1e-4, atol=1e-5)


def test_transformer_encoder_with_padding_in_evaluation() -> None:
    """torch would make nested tensors here; what stands in padded places is nobody's business."""

    def run(device: str) -> Any:
        encoder = seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), device).eval()
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]).to(device)
        with torch.no_grad():
            out = encoder(torch.linspace(-1, 1, 80).sin().reshape(2, 5, 8).to(device), src_key_padding_mask=padding)
        return out * ~padding[..., None]

    assert_agree(run, rtol=1e-4, atol=1e-5)
