"""Predicted times against the published peaks of five generations: a prediction never beats the hardware, and exceeds it by what is known.

Peaks and bandwidths of a chip: Google's pages of v5p, v6e and tpu7x (docs.cloud.google.com/tpu/docs/v5p, v6e, tpu7x; v5e stands on that of v6e),
and for v4 the summary of Google's page at glennklockwood.com/garden/tpuv4; all read 2026-12-01. The ratios are those of libtpu 0.0.42.1 on that
day: softmax reads its input twice, naive attention writes its scores to HBM and reads them once or twice (v6e: 1.7 GB).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tpu_lab
from benchmarks.target_truth import MEASURED, Measured, predicted
from tpu_lab.record.targets import TARGETS
from tpu_lab.xla import target_compile

pytestmark = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")
PEAKS = {  # bf16 flop/s, bytes/s: published figures of a chip, and devices of a chip
    "v4": (275e12, 1200e9, 2),
    "v5e": (197e12, 800e9, 1),
    "v5p": (459e12, 2765e9, 1),
    "v6e": (918e12, 1638e9, 1),
    "tpu7x": (2307e12, 7380e9, 2),
}
WIDE, ROWS, COLUMNS = 8192, 16384, 8192
BATCH, HEADS, LENGTH, DEPTH = 4, 16, 2048, 128


def naive_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * DEPTH**-0.5, -1) @ v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], float, float, float, float]] = {
    # function, shapes (bf16), least flops, least bytes, smallest and largest ratio to the larger of both at the peaks
    "matmul": (torch.matmul, ((WIDE, WIDE), (WIDE, WIDE)), 2.0 * WIDE**3, 6.0 * WIDE**2, 0.95, 1.2),
    "elementwise": (lambda a: torch.tanh(a) + 1, ((ROWS * 4, COLUMNS // 2),), 0.0, 8.0 * ROWS * COLUMNS, 0.95, 1.3),
    "softmax": (lambda a: torch.softmax(a, -1), ((ROWS, COLUMNS),), 0.0, 4.0 * ROWS * COLUMNS, 0.95, 2.6),
    "attention": (
        naive_attention,
        ((BATCH, HEADS, LENGTH, DEPTH),) * 3,
        4.0 * BATCH * HEADS * LENGTH**2 * DEPTH,
        8.0 * BATCH * HEADS * LENGTH * DEPTH,
        0.95,
        7.5,
    ),
}


@pytest.mark.parametrize("target", PEAKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_predictions_stay_at_the_published_peaks(name: str, target: str) -> None:
    function, shapes, flops, nbytes, least, most = PROGRAMS[name]
    peak, bandwidth, devices = PEAKS[target]
    example = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    program = tpu_lab.compile_for(function, *example, target=target, effort="quick")
    ideal = max(flops / (peak / devices), nbytes / (bandwidth / devices))
    assert program.outcome == "ok" and least <= program.time_s / ideal <= most
    if name != "attention":
        assert program.bound_by == ("compute" if name == "matmul" else "memory")


@pytest.mark.parametrize("target", PEAKS)
def test_the_table_of_targets_has_the_published_figures(target: str) -> None:
    peak, bandwidth, devices = PEAKS[target]
    known = TARGETS[target]
    assert known.cores_per_chip == devices
    assert known.flops * devices == pytest.approx(peak, rel=0.01) and known.hbm_bandwidth * devices == pytest.approx(bandwidth, rel=0.12)


@pytest.mark.parametrize("one", [m for m in MEASURED if m.seconds > 5e-4], ids=lambda m: m.title)
def test_predictions_are_lower_bounds_of_what_was_measured(one: Measured) -> None:
    assert 0.8 <= predicted(one) / one.seconds <= 1.0, "of programs long enough for Python's dispatch not to count"
