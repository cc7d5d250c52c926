"""Reflection and replication padding lowerings against torch on the CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay

MODES = {"reflect": "reflection_pad", "replicate": "replication_pad"}
CASES = [((2, 3, 7), (2, 3)), ((3, 7), (0, 1)), ((2, 3, 5, 6), (1, 2, 3, 0)), ((2, 3, 4, 5, 3), (2, 1, 0, 3, 1, 2)), ((2, 3, 5, 6), (-1, 2, 1, -2))]


@pytest.mark.parametrize(
    ("mode", "case"), list(itertools.product(MODES, CASES)), ids=lambda v: v if isinstance(v, str) else f"{len(v[1]) // 2}d{v[1]}"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_padding(mode: str, case: tuple[tuple[int, ...], tuple[int, ...]], dtype: torch.dtype) -> None:
    shape, padding = case
    overload = f"{MODES[mode]}{len(padding) // 2}d"
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype).requires_grad_()
    rough = 0.1 if dtype == torch.bfloat16 else 1e-5  # torch adds gradients up in bfloat16
    with Replay({overload, f"{overload}_backward"}, rtol=1e-2, atol=rough) as replay:
        y = F.pad(x, padding, mode=mode)
        y.backward(torch.randn(y.shape).to(dtype))
    assert replay.checked == {overload: 1, f"{overload}_backward": 1}


@pytest.mark.parametrize("mode", MODES)
def test_padding_of_complex_numbers(mode: str) -> None:
    overload = f"{MODES[mode]}2d"
    x = torch.randn(1, 2, 4, 5, dtype=torch.complex64, requires_grad=True)
    with Replay({overload, f"{overload}_backward"}) as replay:
        F.pad(x, (1, 2, 3, 0), mode=mode).abs().sum().backward()
    assert replay.checked == {overload: 1, f"{overload}_backward": 1}
