"""Printing: what the CPU prints, and the device."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tpu_lab  # noqa: F401  registers the device

TENSORS = {
    "floats": torch.linspace(-2, 3, 12).reshape(3, 4),
    "long": torch.arange(2000.0),
    "wide": torch.zeros(300, 300),
    "integers": torch.arange(4),
    "bool": torch.tensor([True, False]),
    "0-dim": torch.tensor(2.5),
    "empty": torch.zeros(0, 3),
    "complex": torch.tensor([1 + 2j]),
    "conjugate": torch.tensor([1 + 2j]).conj(),
    "bfloat16": torch.ones(2, dtype=torch.bfloat16),
    "float64": torch.ones(2, dtype=torch.float64) / 3,
    "float8": torch.ones(2).to(torch.float8_e5m2),
    "not finite": torch.tensor([float("nan"), float("inf"), -1.5]),
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "needs a gradient": torch.ones(2, requires_grad=True),
}


@pytest.mark.parametrize("name", TENSORS)
def test_repr(name: str) -> None:
    host = TENSORS[name]
    text = repr(host.detach().to("tpu").requires_grad_(host.requires_grad) if not host.is_conj() else host.conj().to("tpu").conj())
    assert "device='tpu:0'" in text
    assert "".join(text.replace(", device='tpu:0'", "").split()) == "".join(repr(host).split())


def test_other_texts() -> None:
    x = torch.tensor([1.25, 2.5], device="tpu")
    assert f"{x[0]:.1f} {x[1]}" == "1.2 2.5"
    assert repr(nn.Parameter(x)).startswith("Parameter containing:\ntensor([1.2500, 2.5000], device='tpu:0'")
    assert "grad_fn=<MulBackward0>" in repr(x.requires_grad_() * 2)
    assert repr(x.device) == "device(type='tpu', index=0)" and repr(nn.Linear(2, 3).to("tpu")).startswith("Linear(in_features=2")
    torch.set_printoptions(precision=2)
    try:
        assert repr(x.detach()) == "tensor([1.25, 2.50], device='tpu:0')"
    finally:
        torch.set_printoptions(profile="default")
