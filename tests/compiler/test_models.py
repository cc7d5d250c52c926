"""Whole models compiled: outputs, gradients and buffers as on the CPU. Goldens: PyTorch eager on the CPU."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device
from tests.models import Made

MODELS = ("mlp", "resnet", "vit", "gpt2", "t5", "unet", "lstm")


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("name", MODELS)
def test_forward_backward_and_buffers_equal_the_cpu(name: str) -> None:
    made: Made = importlib.import_module(f"tests.models.{name}").make(seed=1)
    module, inputs, loss = made
    ours = copy.deepcopy(module).to("tpu")
    expected = module(*inputs)
    loss(expected).backward()
    actual = torch.compile(ours, backend="tpu")(*(x.to("tpu") for x in inputs))
    loss(actual).backward()
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4, check_device=False)
    for (place, ours_grad), theirs in zip(ours.named_parameters(), module.parameters(), strict=True):
        assert (ours_grad.grad is None) == (theirs.grad is None), place
        if theirs.grad is not None:
            torch.testing.assert_close(ours_grad.grad, theirs.grad, rtol=2e-3, atol=2e-4, check_device=False, msg=lambda m, p=place: f"{p}: {m}")
    torch.testing.assert_close(dict(ours.named_buffers()), dict(module.named_buffers()), rtol=1e-3, atol=1e-4, check_device=False)


def test_digits_training_gives_eager_s_losses() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = torch.tensor(digits.data[:256] / 16, dtype=torch.float32), torch.tensor(digits.target[:256])

    def losses(device: str, compiled: bool) -> list[float]:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)).to(device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        forward = torch.compile(net, backend="tpu") if compiled else net
        step = torch.compile(optimizer.step, backend="tpu") if compiled else optimizer.step
        found = []
        for start in range(0, 256, 64):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(forward(images[start : start + 64].to(device)), labels[start : start + 64].to(device))
            loss.backward()
            step()
            found.append(float(loss))
        return found

    assert losses("tpu", True) == pytest.approx(losses("cpu", False), rel=1e-4)
