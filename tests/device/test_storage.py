"""Storages: byte counts, stand-in addresses, `.data`, `set_`, `resize_`, bytes one by one."""

from __future__ import annotations

import gc
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from .against_cpu import assert_agree, assert_error, geometry


def test_data_rebinds_the_object_that_others_hold() -> None:
    def rebind(device: str) -> object:
        first = torch.zeros(3, device=device)
        same = first
        first.data = torch.ones(5, device=device)
        same.add_(1)
        return first, geometry(first)

    assert_agree(rebind)


def test_data_of_a_leaf_is_its_memory() -> None:
    def write(device: str) -> object:
        leaf = torch.zeros(3, device=device, requires_grad=True)
        leaf.data.add_(2)
        leaf.data[1:] *= 3
        return leaf.detach(), leaf._version

    assert_agree(write)


def test_set_shares_memory() -> None:
    def share(device: str) -> object:
        a = torch.arange(10.0, device=device)
        b, c = torch.zeros(2, device=device), torch.zeros(0, device=device)
        b.set_(a)
        c.set_(a.untyped_storage(), 2, (2, 3), (3, 1))
        c.mul_(2)
        b[0] = 9
        whole = torch.zeros(1, device=device).set_(a.untyped_storage())
        return a, b, c, geometry(b), geometry(c), geometry(whole), a.is_set_to(b), a.is_set_to(c)

    assert_agree(share)


def test_set_without_arguments_gives_an_empty_tensor() -> None:
    assert_agree(lambda device: geometry(torch.arange(4.0, device=device).set_()))


def test_set_reads_a_storage_in_another_dtype() -> None:
    def reinterpret(device: str) -> object:
        a = torch.arange(10.0, device=device)
        b = torch.zeros(0, dtype=torch.int32, device=device).set_(a.untyped_storage(), 0, (10,), (1,))
        b[0] = 7
        return a, b

    assert_agree(reinterpret)


def test_set_beyond_the_end_grows_the_storage() -> None:
    def grow(device: str) -> object:
        a = torch.arange(4.0, device=device)
        b = torch.zeros(0, device=device).set_(a.untyped_storage(), 0, (8,), (1,))
        b[4:] = 1
        return a, b, a.untyped_storage().nbytes()

    assert_agree(grow)


def test_resize_keeps_what_was_there() -> None:
    def resize(device: str) -> object:
        a = torch.arange(6.0, device=device)
        a.resize_(2, 2)
        smaller, kept = geometry(a), a.clone()
        view = a[1:]
        a.resize_(3, 4)
        a.view(-1)[6:] = 1
        view[0] = 50
        return kept, smaller, a, view, geometry(a), torch.zeros(5, device=device).resize_as_(kept).shape

    assert_agree(resize)


def test_resizing_a_view_grows_the_common_storage() -> None:
    def resize(device: str) -> object:
        a = torch.arange(6.0, device=device)
        view = a[2:4]
        view.resize_(10)
        view[4:] = 3
        return view, a, geometry(a), geometry(view)

    assert_agree(resize)


def test_a_storage_emptied_and_filled_again() -> None:
    """What FSDP does to a parameter between its uses."""

    def refill(device: str) -> object:
        a = torch.arange(6.0, device=device)
        storage = a.untyped_storage()
        storage.resize_(0)
        empty = storage.nbytes()
        storage.resize_(24)
        a.fill_(2)
        return a, empty, geometry(a)

    assert_agree(refill)


def test_bytes_of_a_storage() -> None:
    def touch(device: str) -> object:
        a = torch.arange(3.0, device=device)
        storage = a.untyped_storage()
        storage[3] = 0x40
        before = storage.tolist()
        storage.byteswap(torch.float32)
        swapped = a.clone()
        other = torch.zeros(3, device=device)
        other.untyped_storage().copy_(storage)
        storage.fill_(0)
        return before, swapped, other, a, storage[0], len(storage), storage.cpu().tolist(), storage.clone().nbytes()

    assert_agree(touch)


def test_addresses_are_distinct_stable_and_follow_the_offset() -> None:
    a, b = torch.arange(4.0, device="tpu"), torch.arange(4.0, device="tpu")
    address = a.data_ptr()
    assert address and b.data_ptr() and address != b.data_ptr()
    gc.collect()
    assert a.data_ptr() == a.untyped_storage().data_ptr() == address
    assert a[2:].data_ptr() == address + 8
    assert a.view(2, 2).t().data_ptr() == address
    assert torch.empty(0, device="tpu").data_ptr() == 0


def test_a_device_tensor_cannot_go_to_another_process() -> None:
    with pytest.raises(RuntimeError, match=r"send a copy on the CPU"):
        ForkingPickler.dumps(torch.ones(2, device="tpu"))


def test_negative_sizes_and_other_devices_are_refused() -> None:
    assert_error(lambda device: torch.empty(2, -1, device=device), RuntimeError)
    for made in (lambda: torch.ones(2, device="tpu:1"), lambda: torch.empty(2, device="tpu:1"), lambda: torch.ones(2).to("tpu:3")):
        with pytest.raises(RuntimeError, match="a process sees one device, tpu:0"):
            made()


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own about sparse, quantized and nested tensors
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(2, device="tpu").to_sparse(),
        lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="tpu"),
        lambda: torch.eye(2).to_sparse().to("tpu"),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).to("tpu"),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="tpu") * 2,
        lambda: torch.empty(2, layout=torch.sparse_coo, device="tpu"),
    ],
)
def test_layouts_the_device_does_not_have_are_refused_by_name(make: object) -> None:
    with pytest.raises(NotImplementedError, match="the device tpu"):
        make()  # type: ignore[operator]


def test_jagged_tensors_work() -> None:
    assert_agree(lambda device: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, device=device).values() * 2)


def test_storages_are_made_by_their_constructors() -> None:
    """As a DataLoader's worker does that collates tensors of the device."""
    storage = torch.UntypedStorage(16, device="tpu")
    assert (storage.nbytes(), storage.device.type) == (16, "tpu")
    shared = torch.ones(2, device="tpu")._typed_storage()._new_shared(4, device="tpu")
    target = torch.ones(2, device="tpu").new(shared).resize_(2, 2)
    assert torch.stack([torch.ones(2, device="tpu")] * 2, out=target).tolist() == [[1, 1], [1, 1]]
    assert torch.UntypedStorage([1, 2, 3], device="tpu").tolist() == [1, 2, 3]
    assert torch.UntypedStorage(4).device.type == "cpu"
