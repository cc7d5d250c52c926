"""The three Fourier operators against torch on the CPU: every normalization, odd lengths, several dimensions in any order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from tpu_lab.lowering.registry import find

from .replay import assert_opinfo, call, compare

ATEN = torch.ops.aten
ALL = {"_fft_c2c", "_fft_r2c", "_fft_c2r"}


@pytest.mark.parametrize("name", ["fft.fft2", "fft.hfftn", "fft.rfftn", "fft.ihfft", "fft.irfft2"])
def test_opinfo(name: str) -> None:
    assert assert_opinfo(name, (torch.float32, torch.complex64), only=ALL, limit=3)


def assert_same(op: Any, *args: Any) -> None:
    name = op.name().removeprefix("aten::")
    found = find(name)
    assert found is not None
    compare(call(found, op, args, {}), op(*args), f"{name} {args[1:]}")


@pytest.mark.parametrize("dims", [[1], [2, 0], [0, 1, 2], [2, 1], [3, 1, 0], [0, 1, 2, 3]])
def test_dimensions_lengths_and_normalizations(dims: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    real = torch.randn(2, 3, 5, 4, generator=generator)
    for normalization, flag in itertools.product((0, 1, 2), (True, False)):
        if normalization == 1 and flag:
            continue
        assert_same(ATEN._fft_r2c.default, real, dims, normalization, flag)
        assert_same(ATEN._fft_c2c.default, torch.complex(real, real.flip(0)), dims, normalization, flag)
    n = 2 * (real.shape[dims[-1]] - 1)
    for size in (n, n + 1):
        half = ATEN._fft_r2c.default(
            torch.randn([size if d == dims[-1] else s for d, s in enumerate(real.shape)], generator=generator), dims, 0, True
        )
        assert_same(ATEN._fft_c2r.default, half, dims, 2, size)


def test_double_precision_and_empty() -> None:
    generator = torch.Generator().manual_seed(0)
    assert_same(ATEN._fft_r2c.default, torch.randn(7, generator=generator, dtype=torch.float64), [0], 1, True)
    found = find("_fft_c2c")
    assert found is not None
    assert call(found, ATEN._fft_c2c.default, (torch.zeros(0, 3, dtype=torch.complex64), [1], 0, True), {}).shape == (0, 3)
