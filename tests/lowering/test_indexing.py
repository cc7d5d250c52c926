"""Reading by index against CPU torch."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo
from tpu_lab.lowering.indexing import gather, index_select

SAMPLED = {
    "gather": {"gather"},
    "index_select": {"index_select"},
    "take": {"take"},
    "masked_scatter": {"masked_scatter", "masked_scatter_backward"},
    "nonzero_static": {"nonzero_static"},
    "take_along_dim": {"gather"},
}
TABLE = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.int64, torch.bool), only=SAMPLED[name], limit=3)
    assert checked.keys() == SAMPLED[name]


def at(*values: int) -> torch.Tensor:
    return torch.tensor(values)


@pytest.mark.parametrize("overload", ["index.Tensor", "_unsafe_index.Tensor"])
@pytest.mark.parametrize(
    "indices",
    [
        [at(1, 0, 1)],
        [None, at(2, -1)],
        [None, None, at(-4, 3, 0)],
        [at(0, 1), at(2, -3)],
        [at(1, 0).reshape(2, 1), None, at(3, 2, 1)],
        [None, at(0, 2).reshape(2, 1), at(1, -1, 0)],
        [at(1, 0), None, None],
        [torch.tensor(1), None, at(0, 1).int()],
        [at(1, 1).reshape(1, 2), at(0), at(-1).reshape(1, 1)],
        [torch.zeros(0, dtype=torch.int64)],
        [None, torch.zeros(2, 0, dtype=torch.int64)],
    ],
)
def test_index_takes_the_place_or_the_front(overload: str, indices: list[torch.Tensor | None]) -> None:
    assert_same(overload, TABLE, indices)
    assert_same(overload, TABLE > 7, indices)


def test_index_of_empty_tensors() -> None:
    assert_same("index.Tensor", torch.ones(0, 3), [torch.zeros(0, dtype=torch.int64)])
    assert_same("index.Tensor", torch.ones(3, 0), [at(2, 1)])
    assert_same("gather", torch.ones(3, 2), 0, torch.zeros(0, 2, dtype=torch.int64))
    assert_same("index_select", torch.ones(2, 0), 0, at(1))
    assert_same("take", torch.ones(3), torch.zeros(0, 2, dtype=torch.int64))


def test_scalars() -> None:
    assert_same("gather", torch.tensor(3.0), 0, torch.tensor(0))
    assert_same("gather", torch.tensor(3.0), 0, at(0))
    assert_same("index_select", torch.tensor(3.0), 0, at(0))
    assert_same("take", torch.tensor(3.0), torch.tensor(-1))


def test_gather_reads_a_corner_of_a_larger_tensor() -> None:
    assert_same("gather", TABLE, 1, torch.tensor([[[2, 0]]]))
    assert_same("gather", TABLE.to(torch.complex64), -1, torch.tensor([[[3, 0, 1]]]))


def test_masked_reads() -> None:
    mask = torch.tensor([True, False, True])
    assert_same("_unsafe_masked_index", TABLE[0], mask, [at(0, 99, 2), at(1, -1, 3)], -1.0)
    assert_same("masked_scatter", TABLE, TABLE[0] > 5, TABLE.flip(2))
    assert_same("masked_scatter", TABLE[0, :, :1], mask.reshape(3, 1) & torch.ones(3, 4, dtype=torch.bool), TABLE)
    assert_same("masked_scatter_backward", TABLE, TABLE > 20, [2, 3])
    assert_same("nonzero_static", TABLE > 12, size=4)
    assert_same("nonzero_static", TABLE[0] > 9, size=5, fill_value=-7)


def test_bad_indices_stay_inside_the_array() -> None:
    """The device reports them; the program itself reads some element and ends."""
    bad = jax.numpy.asarray(np.array([2**40, -(2**40), 5]))
    with jax.enable_x64(True):
        array = jax.numpy.asarray(np.array([1.0, 2.0]))
        for out in (index_select(array, 0, bad), gather(array, 0, bad, sparse_grad=False)):
            assert out.shape == (3,)
            assert set(np.asarray(out).tolist()) <= {1.0, 2.0}
