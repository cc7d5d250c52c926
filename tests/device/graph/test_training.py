"""Forward and backward graphs of models, by their lowerings against torch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.device.graph.cpu_backend import assert_training

CLOSE = {"rtol": 2e-4, "atol": 2e-5}


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def test_mlp() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    backend = assert_training(lambda x: model(x), [leaf(5, 8)], list(model.parameters()), **CLOSE)
    assert len(backend.graphs) == 2


def test_mlp_with_cross_entropy() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    labels = torch.tensor([0, 3, 1, -100, 2])
    assert_training(lambda x, y: functional.cross_entropy(model(x), y), [leaf(5, 8), labels], list(model.parameters()), **CLOSE)


def test_convolution_and_batch_norm() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    assert_training(lambda x: model(x), [leaf(2, 3, 8, 8)], list(model.parameters()), **CLOSE)


def test_running_statistics_are_written() -> None:
    norm, twin = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    x = torch.randn(6, 4) * 3 + 1
    from tests.device.graph.cpu_backend import Compiled

    compiled = torch.compile(norm, backend=Compiled())
    for _ in range(2):
        torch.testing.assert_close(compiled(x), twin(x), **CLOSE)
    torch.testing.assert_close(dict(norm.named_buffers()), dict(twin.named_buffers()), **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
def test_transformer_block(causal: bool) -> None:
    block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(6) if causal else None

    def run(x: torch.Tensor) -> Any:
        return block(x, src_mask=mask, is_causal=causal)

    with sdpa_kernel(SDPBackend.MATH):
        assert_training(run, [leaf(2, 6, 16)], list(block.parameters()), **CLOSE)


def test_lstm_cell() -> None:
    cell = nn.LSTMCell(6, 8)
    assert_training(lambda x, h, c: cell(x, (h, c)), [leaf(3, 6), leaf(3, 8), leaf(3, 8)], list(cell.parameters()), **CLOSE)


def test_lstm_over_time() -> None:
    cell, head = nn.LSTMCell(4, 5), nn.Linear(5, 2)

    def run(x: torch.Tensor) -> Any:
        h = c = x.new_zeros(x.shape[0], 5)
        steps = []
        for t in range(x.shape[1]):
            h, c = cell(x[:, t], (h, c))
            steps.append(head(h))
        return torch.stack(steps, 1)

    assert_training(run, [leaf(2, 3, 4)], [*cell.parameters(), *head.parameters()], **CLOSE)


def test_embedding_and_layer_norm() -> None:
    table, norm = nn.Embedding(10, 8, padding_idx=0), nn.LayerNorm(8)
    ids = torch.tensor([[1, 0, 9], [2, 2, 3]])
    assert_training(lambda i: norm(table(i)).mean(1), [ids], [*table.parameters(), *norm.parameters()], **CLOSE)


def test_optimizer_step() -> None:
    """The update of SGD with momentum, written in place, as AOTAutograd makes it functional."""
    from tests.device.graph.cpu_backend import Compiled

    def step(weight: torch.Tensor, momentum: torch.Tensor, grad: torch.Tensor) -> None:
        momentum.mul_(0.9).add_(grad)
        weight.sub_(momentum, alpha=0.1)
        weight[0].clamp_(min=0.0)

    ours, theirs = ([torch.linspace(-1, 1, 6).reshape(2, 3) * k for k in (1, 2, 3)] for _ in range(2))
    with torch.no_grad():
        torch.compile(step, backend=Compiled())(*ours)
        step(*theirs)
    torch.testing.assert_close(ours, theirs)
