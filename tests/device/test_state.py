"""Snapshots of the device's storages and generators, put back later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import state
from tpu_lab.device.state import Journal


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = state.snapshot()
    yield made
    state.release(made)
    assert made not in state.journals


WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "in place": lambda x: x.add_(1),
    "twice": lambda x: x.mul_(2).mul_(3),
    "a view": lambda x: x[1:3].zero_(),
    "out": lambda x: torch.add(x, 1, out=x),
    "copy from the CPU": lambda x: x.copy_(torch.full((4,), 7.0)),
    "by index": lambda x: x.index_fill_(0, torch.tensor([0], device="tpu"), 9),
    "resized": lambda x: x.resize_(100),
    "random": lambda x: x.normal_(),
    "storage": lambda x: x.untyped_storage().fill_(0),
    "list": lambda x: torch._foreach_add_([x], 1.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_kind_of_write_is_undone(write: Callable[[torch.Tensor], object]) -> None:
    x = torch.arange(4.0).to("tpu")
    alias = x[:]
    made = state.snapshot()
    write(x)
    assert alias.cpu().tolist() != [0, 1, 2, 3] or x.shape != (4,)
    assert made.changed == 1
    state.restore(made)
    state.release(made)
    assert alias.cpu().tolist() == [0, 1, 2, 3]


def test_a_snapshot_can_be_restored_again(journal: Journal) -> None:
    x = torch.ones(3, device="tpu")
    y = torch.ones(3, device="tpu")
    inner = state.snapshot()
    for value in (5.0, 6.0):
        x.fill_(value)
        y.add_(value)
        state.restore(inner)
        assert x.tolist() == y.tolist() == [1, 1, 1]
    state.release(inner)


def test_two_snapshots_keep_two_times() -> None:
    x = torch.zeros(2, device="tpu")
    first = state.snapshot()
    x.add_(1)
    second = state.snapshot()
    x.add_(1)
    state.restore(second)
    assert x.tolist() == [1, 1]
    state.restore(first)
    assert x.tolist() == [0, 0]
    state.release(first)
    state.release(second)


def test_a_restore_is_a_write_to_snapshots_taken_later() -> None:
    x = torch.arange(4.0).to("tpu")
    early = state.snapshot()
    x.add_(1)
    late = state.snapshot()
    state.restore(early)
    assert x.tolist() == [0, 1, 2, 3]
    state.restore(late)
    assert x.tolist() == [1, 2, 3, 4]
    state.restore(early)
    assert x.tolist() == [0, 1, 2, 3]
    state.release(late)
    state.release(early)


def test_contents_that_were_never_written_are_put_back() -> None:
    x = torch.empty(3, device="tpu")
    made = state.snapshot()
    x.fill_(4)
    state.restore(made)
    state.release(made)
    assert x.tolist() == [0, 0, 0]


def test_a_storage_made_since_is_left_alone(journal: Journal) -> None:
    x = torch.ones(2, device="tpu")
    x.add_(1)
    assert journal.changed == 0
    state.restore(journal)
    assert x.tolist() == [2, 2]


def test_random_numbers_come_again(journal: Journal) -> None:
    first = torch.rand(4, device="tpu").tolist()
    state.restore(journal)
    assert torch.rand(4, device="tpu").tolist() == first
    assert torch.rand(4, device="tpu").tolist() != first


def test_after_a_release_nothing_is_noted() -> None:
    x = torch.ones(2, device="tpu")
    made = state.snapshot()
    state.release(made)
    x.add_(1)
    state.restore(made)
    assert made.changed == 0 and x.tolist() == [2, 2]
