"""Handing tensors to others: DLPack, pinned memory, data loaders. Always a copy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.utils.dlpack
from torch.utils.data import DataLoader, TensorDataset

import tpu_lab  # noqa: F401  registers the device


def test_dlpack_out_is_a_copy() -> None:
    x = torch.arange(6.0, device="tpu").reshape(2, 3).t()
    given = [torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)), torch.from_numpy(np.from_dlpack(x).copy())]
    for other in given:
        assert other.device.type == "cpu" and torch.equal(other, torch.arange(6.0).reshape(2, 3).t())
    given[0].zero_()
    assert x.sum().item() == 15
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="require gradient"):
        x.requires_grad_().__dlpack__()


def test_dlpack_in_is_a_copy_once_it_is_on_the_device() -> None:
    array = np.arange(4.0)
    there = torch.from_dlpack(array).to("tpu")
    there[0] = 9
    assert array[0] == 0 and there.tolist() == [9, 1, 2, 3]
    host = torch.arange(3.0)
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(host)).data_ptr() == host.data_ptr(), "CPU tensors stay as they are"


def test_pin_memory_is_a_plain_copy() -> None:
    host = torch.arange(3.0)
    pinned = host.pin_memory()
    pinned[0] = 5
    assert host[0] == 0 and not pinned.is_pinned() and pinned.to("tpu", non_blocking=True).tolist() == [5, 1, 2]
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(2, device="tpu").pin_memory()


@pytest.mark.filterwarnings(r"ignore:os\.fork")  # the device silences it too, but pytest keeps filters of its own
def test_data_loader_with_workers_and_pinned_memory() -> None:
    torch.ones(1, device="tpu") + 1  # the parent uses the device before it forks
    data = TensorDataset(torch.arange(20.0).reshape(10, 2), torch.arange(10))
    rows, labels = [], []
    for x, y in DataLoader(data, batch_size=4, num_workers=2, pin_memory=True):
        rows.append((x.to("tpu", non_blocking=True) * 2).cpu())
        labels.append(y.to("tpu"))
    assert torch.equal(torch.cat(rows), torch.arange(20.0).reshape(10, 2) * 2)
    assert torch.cat(labels).tolist() == list(range(10))


def test_data_that_lies_on_the_device() -> None:
    data = TensorDataset(torch.arange(20.0, device="tpu").reshape(10, 2))
    assert torch.cat([x[0] for x in DataLoader(data, batch_size=4)]).sum().item() == 190
