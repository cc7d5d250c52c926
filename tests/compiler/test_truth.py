"""Predictions against what the published peaks allow: minimal FLOPs and bytes of a program over a generation's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tpu_lab
from tpu_lab.record.targets import TARGETS
from tpu_lab.xla import target_compile

pytestmark = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def empty(*size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.bfloat16, device="meta")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], float, int]] = {
    "matmul": (torch.matmul, (empty(8192, 8192), empty(8192, 8192)), 2.0 * 8192**3, 3 * 8192**2 * 2),
    "elementwise": (lambda a: torch.tanh(a) + 1, (empty(32768, 8192),), 0.0, 2 * 32768 * 8192 * 2),
    "softmax": (lambda a: a.softmax(-1), (empty(16384, 8192),), 0.0, 2 * 16384 * 8192 * 2),
    "attention": (attention, (empty(4, 16, 2048, 128),) * 3, 4.0 * 64 * 2048**2 * 128, 4 * 64 * 2048 * 128 * 2),
}
STATED = {"matmul": (1.0, 1.16), "elementwise": (1.0, 1.25), "softmax": (2.0, 2.5), "attention": (1.05, 7.0)}
"""Lowest and highest ratio of the predicted time to the bound. softmax reads twice and keeps sums; attention's scores go through HBM."""


SHORT = [(name, generation) for name in ("matmul", "elementwise") for generation in TARGETS]
LONG = [(name, generation) for name in ("softmax", "attention") for generation in ("v5e", "v6e", "tpu7x")]


@pytest.mark.parametrize(("name", "generation"), SHORT + LONG)
def test_predicted_time_is_within_the_stated_ratio_of_the_published_peaks(name: str, generation: str) -> None:
    function, example, flops, nbytes = PROGRAMS[name]
    target = TARGETS[generation]
    bound = max(flops / target.flops, nbytes / target.hbm_bandwidth)
    program = tpu_lab.compile_for(function, *example, target=generation, effort="quick")
    low, high = STATED[name]
    assert low * 0.999 <= program.time_s / bound <= high
    assert program.bound_by == ("compute" if name == "matmul" else "memory")
    assert "predicted" in program.costs and "not measured" in program.costs
