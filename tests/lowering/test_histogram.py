"""Histograms against CPU torch."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.direct import assert_same

VALUES = torch.tensor([0.0, 1.0, 1.5, 2.0, 2.5, 4.0, -1.0, 4.0])
WEIGHT = torch.arange(1.0, 9.0)
POINTS = torch.stack([VALUES, VALUES.flip(0) * 2], 1)


@pytest.mark.parametrize("limits", [None, [0.0, 4.0], [1.0, 2.5], [1.0, 1.0]])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("density", [False, True])
def test_equal_bins(limits: list[float] | None, weight: torch.Tensor | None, density: bool) -> None:
    assert_same("histogram.bin_ct", VALUES, 5, range=limits, weight=weight, density=density)
    both = None if limits is None else [*limits, 0.0, 8.0]
    assert_same("_histogramdd_from_bin_cts", POINTS, [3, 4], range=both, weight=weight, density=density)


def test_given_edges() -> None:
    edges = torch.tensor([0.0, 1.0, 1.25, 4.0])
    assert_same("histogram.bins_tensor", VALUES, edges)
    assert_same("histogram.bins_tensor", VALUES.double(), edges.double(), weight=WEIGHT.double(), density=True)
    assert_same("_histogramdd_from_bin_tensors", POINTS, [edges, torch.tensor([-2.0, 3.0, 8.0])])
    assert_same("_histogramdd_bin_edges", POINTS, [3, 1])


def test_one_value_and_none() -> None:
    assert_same("histogram.bin_ct", torch.full((4,), 3.0), 3)
    assert_same("histogram.bin_ct", torch.zeros(0), 3)
