"""Reductions of segments and jagged rows against CPU torch."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.direct import assert_same

DATA = torch.tensor([[1.0, -2.0], [3.0, 0.0], [3.0, 5.0], [0.0, -1.0], [2.0, 2.0], [4.0, 0.5]])
LENGTHS = torch.tensor([2, 0, 3, 1])
OFFSETS = torch.tensor([0, 2, 2, 5, 6])


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments(reduce: str, initial: float | None) -> None:
    assert_same("segment_reduce", DATA, reduce, lengths=LENGTHS, initial=initial)
    assert_same("segment_reduce", DATA, reduce, offsets=OFFSETS, initial=initial)
    assert_same("segment_reduce", DATA.T.contiguous(), reduce, lengths=LENGTHS.expand(2, 4).contiguous(), axis=1, initial=initial)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_gradients(reduce: str) -> None:
    output = torch.segment_reduce(DATA, reduce, lengths=LENGTHS)
    grad = torch.arange(1.0, 9.0).reshape(4, 2)
    assert_same("_segment_reduce_backward", grad, output, DATA, reduce, lengths=LENGTHS)
    assert_same("_segment_reduce_backward", grad, output, DATA, reduce, offsets=OFFSETS)


def test_jagged_rows() -> None:
    assert_same("_jagged_to_padded_dense_forward", DATA, [OFFSETS], [3], -1.0)
    assert_same("_jagged_to_padded_dense_forward", DATA, [OFFSETS], [2])
