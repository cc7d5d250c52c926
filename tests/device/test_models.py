"""Whole models on the device: outputs, gradients and buffers as on the CPU, forward and backward, and nothing falls back."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device
from tests.models import Made
from tpu_lab.device import events

MODELS = ("mlp", "resnet", "vit", "gpt2", "t5", "unet", "lstm")


class Fallbacks:
    """An observer that keeps the names of the operators that ran on the host for want of a lowering."""

    blocking = False

    def __init__(self) -> None:
        self.names: list[str] = []

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int) -> None:
        self.names.append(f"{op}: {reason}")

    def op(
        self, program: events.OpProgram, start_ns: int, end_ns: int, inputs: Sequence[events.BufferView], outputs: Sequence[events.BufferView]
    ) -> None: ...

    def compiled(self, program: events.OpProgram, seconds: float, cache: str) -> None: ...

    def allocated(self, buffer: events.BufferView) -> None: ...

    def freed(self, buffer: events.BufferView) -> None: ...

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None: ...

    def failed(self, op: str, error: BaseException) -> None: ...

    def flushed(self, told: events.FlushTold) -> None: ...


def make(name: str) -> Made:
    made: Made = importlib.import_module(f"tests.models.{name}").make(seed=1)
    return made


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_equal_the_cpu(name: str) -> None:
    module, inputs, loss = make(name)
    ours = copy.deepcopy(module).to("tpu")
    expected = module(*inputs)
    loss(expected).backward()

    seen = Fallbacks()
    with events.observe(seen):
        actual = ours(*(x.to("tpu") for x in inputs))
        loss(actual).backward()
        torch.accelerator.synchronize()

    assert actual.device.type == "tpu"
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)
    for (key, right), got in zip(module.named_parameters(), ours.parameters(), strict=True):
        assert right.grad is not None and got.grad is not None, key
        torch.testing.assert_close(got.grad.cpu(), right.grad, rtol=1e-3, atol=1e-5, msg=lambda text, key=key: f"gradient of {key}: {text}")
    for (key, right), got in zip(module.named_buffers(), ours.buffers(), strict=True):
        torch.testing.assert_close(got.cpu(), right, rtol=1e-4, atol=1e-5, msg=lambda text, key=key: f"buffer {key}: {text}")
    assert seen.names == []


def test_tied_weights_stay_tied() -> None:
    module, _, _ = make("gpt2")
    module.to("tpu")
    assert module.head.weight is module.tokens.weight
    assert module.tokens.weight.device.type == "tpu"
