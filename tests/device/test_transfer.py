"""Copies, to the device, from it and within it: every layout, every dtype, always a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from .against_cpu import assert_agree, assert_error

BASE = torch.arange(120.0).reshape(2, 3, 4, 5)
LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: BASE,
    "permuted": lambda: BASE.permute(0, 2, 3, 1),
    "channels last": lambda: BASE.contiguous(memory_format=torch.channels_last),
    "with gaps": lambda: BASE[:, 1:, ::2],
    "transposed slice": lambda: BASE.transpose(1, 2)[..., 1:],
    "expanded": lambda: BASE[:1].expand(2, 3, 4, 5),
    "overlapping": lambda: BASE.as_strided((3, 3, 2, 2), (2, 1, 5, 0), 5),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_values_and_strides_of_copies(name: str) -> None:
    source = LAYOUTS[name]()

    def copy(device: str) -> Any:
        x = source.to(device, copy=True)
        found = []
        for format in (torch.contiguous_format, torch.preserve_format, torch.channels_last):
            found += [x.clone(memory_format=format), x.to(torch.float64, memory_format=format), torch.empty_like(x, memory_format=format)]
        found += [
            x,
            x.half(),
            x.contiguous(),
            x.contiguous(memory_format=torch.channels_last),
            x + 1,
            x.to("cpu", torch.int32),
            x.to("cpu", copy=True),
        ]
        empty = (2, 5, 8)
        return [f.stride() for f in found], [f for i, f in enumerate(found) if i not in empty], x.reshape(-1)

    assert_agree(copy)


def test_copies_between_views() -> None:
    def copy(device: str) -> Any:
        a, b = torch.zeros(6, 8, device=device), torch.arange(48.0, device=device).reshape(8, 6)
        a[::2, 1::3].copy_(b.t()[1::2, :3])
        a.t()[::3].copy_(b[:3].double())
        a[1].copy_(b[:, 1].to(torch.int64))
        a[5] = 7
        return a

    assert_agree(copy)


def test_copies_between_views_of_two_devices() -> None:
    def copy(device: str) -> Any:
        a, b = torch.zeros(6, 8, device=device), torch.arange(48.0).reshape(8, 6)
        a[::2, 1::3].copy_(b.t()[1::2, :3])
        a.t()[::3].copy_(b[:3].double())
        a[:, :6].copy_(torch.arange(6))
        c, d = torch.zeros(8, 6), torch.zeros(2, 8, 6, dtype=torch.int32)
        c.t().copy_(a)
        d.copy_(a.t())
        return a, c, d

    assert_agree(copy)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    assert_error(lambda device: torch.zeros(2, 3, device=device).copy_(torch.zeros(4, device=device)), RuntimeError)
    assert_error(lambda device: torch.zeros(2, 3, device=device).copy_(torch.zeros(4)), RuntimeError)
    assert_error(lambda device: torch.zeros(2, 3).copy_(torch.zeros(4, device=device)), RuntimeError)


def test_a_transfer_is_a_snapshot() -> None:
    host = torch.arange(4096.0)
    there = host.to("tpu")
    host.add_(1)
    back = there.cpu()
    there.add_(5)
    assert torch.equal(back, torch.arange(4096.0)) and torch.equal(there.cpu(), torch.arange(4096.0) + 5)
    back.zero_()
    assert torch.equal(there.cpu(), torch.arange(4096.0) + 5)
    array = np.arange(4.0)
    made = [torch.from_numpy(array).to("tpu"), torch.as_tensor(array, device="tpu"), torch.tensor(array, device="tpu")]
    array[0] = 7
    assert all(m.tolist() == [0, 1, 2, 3] for m in made)
    twin = there.clone()
    twin.zero_()
    assert there.sum().item() != 0


def test_to_returns_the_tensor_itself_where_nothing_changes() -> None:
    x = torch.ones(2, device="tpu")
    assert x.to("tpu") is x and x.to("tpu:0") is x and x.to(torch.float32) is x and x.tpu() is x and x.to(x) is x  # type: ignore[attr-defined]
    assert x.to("tpu", copy=True) is not x
    assert torch.ones(2).tpu().is_tpu and not torch.ones(2).is_tpu  # type: ignore[attr-defined]
    assert x.to("cpu", non_blocking=True).tolist() == [1, 1] and torch.ones(2).to("tpu", non_blocking=True).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, torch.bool),
        (200, torch.uint8),
        (-3, torch.int8),
        (2**40, torch.int64),
        (1.5, torch.float16),
        (1.5, torch.bfloat16),
        (0.1, torch.float32),
        (0.1, torch.float64),
        (1 + 2j, torch.complex64),
        (7, torch.uint16),
        (2**40, torch.uint64),
        (1.5, torch.float8_e5m2),
    ],
)
def test_single_numbers(value: Any, dtype: torch.dtype) -> None:
    def read(device: str) -> Any:
        one = torch.tensor([0, value], device=device).to(dtype)
        return one[1].item(), type(one[1].item()), one.tolist(), one.reshape(2, 1)[1].tolist(), one[1:].item()

    assert_agree(read)


def test_numpy_is_refused_with_torchs_type_error() -> None:
    x = torch.ones(2, device="tpu")
    for ask in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.array([x, x])):
        with pytest.raises(TypeError, match="can't convert tpu:0 device type tensor to numpy"):
            ask()
    assert x.numpy(force=True).tolist() == x.cpu().numpy().tolist() == [1, 1]


def test_tensors_from_python_and_numpy() -> None:
    def make(device: str) -> Any:
        return [
            torch.tensor([[1, 2], [3, 4]], device=device),
            torch.as_tensor(np.arange(3), device=device),
            torch.asarray([1.0, 2], device=device),
            torch.empty(2, device=device).new_tensor([1, 2]),
            torch.scalar_tensor(3, device=device),
            torch.full((2,), True, device=device),
            torch.tensor([1 + 2j], device=device),
            torch.zeros_like(torch.ones(3), device=device),
            torch.frombuffer(bytearray(b"\0\0\x80\x3f"), dtype=torch.float32).to(device),
            torch.ones(2, device=device).type(torch.int32),
            torch.ones(2, device=device) * np.float64(2) + np.int32(1),
            torch.arange(4.0, device=device)[np.array([True, False, True, False])],
        ]

    assert_agree(make)
