"""Views: they share memory, whatever size, stride, offset or dtype they show it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .against_cpu import assert_agree, assert_error, geometry

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "slice": lambda x: x[1:, ::2],
    "negative index": lambda x: x[-1],
    "select": lambda x: x.select(1, 2),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1)[1],
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 2),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split([1, 2], 1)[1],
    "unbind": lambda x: x.unbind(2)[3],
    "squeeze": lambda x: x[:1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(-1)[..., None],
    "movedim": lambda x: x.movedim(0, 2),
    "view": lambda x: x.view(6, 4)[2:],
    "flatten": lambda x: x.flatten(1)[:, 3:],
    "ellipsis": lambda x: x[..., None, 1],
    "reshape of a transpose": lambda x: x.transpose(0, 1).reshape(3, 8),
    "mT": lambda x: x.mT,
    "as_strided": lambda x: x.as_strided((3, 2), (5, 2), 4),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_reads_and_writes_the_same_memory(name: str) -> None:
    def write(device: str) -> Any:
        x = torch.arange(24.0, device=device).reshape(2, 3, 4)
        view = VIEWS[name](x)
        shape = geometry(view)
        before = view.clone()
        view.add_(100)
        x.mul_(2)
        return before, view, x, shape, view.is_contiguous(), view._version

    assert_agree(write)


def test_views_of_views_and_versions() -> None:
    def write(device: str) -> Any:
        x = torch.zeros(4, 5, device=device)
        view = x.t()[1:4][:, ::2]
        view.add_(1)
        x[0] = 3
        view[0, 0] = 9
        return x, view, x._version, view._version, view._base is x

    assert_agree(write)


def test_expanded_views_read() -> None:
    assert_agree(lambda device: [torch.arange(3.0, device=device).expand(4, 3) * 2, torch.arange(3.0, device=device)[:, None].expand(3, 2).sum(1)])


def test_overlapping_as_strided_reads() -> None:
    def read(device: str) -> Any:
        windows = torch.arange(10.0, device=device).as_strided((4, 4), (2, 1))
        return windows, windows.sum(0), windows.t() @ windows, windows.contiguous(), windows[1:, ::2] + 1

    assert_agree(read)


def test_overlapping_as_strided_takes_one_value_everywhere() -> None:
    def write(device: str) -> Any:
        x = torch.arange(10.0, device=device)
        x.as_strided((3, 3), (2, 1)).zero_()
        y = torch.arange(10.0, device=device)
        y.as_strided((4, 4), (2, 1)).copy_(torch.ones(4, 4, device=device))
        return x, y

    assert_agree(write)


def test_as_strided_in_place_changes_the_geometry() -> None:
    def restride(device: str) -> Any:
        x = torch.arange(10.0, device=device)
        x.as_strided_((3, 2), (3, 1), 1)
        return x, geometry(x)

    assert_agree(restride)


@settings(max_examples=25)
@given(st.data())
def test_any_geometry_reads_and_writes_as_on_the_cpu(data: st.DataObject) -> None:
    """A random non-overlapping view of 60 elements: permuted, strided, shifted."""
    size = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    gaps = [data.draw(st.integers(1, 2)) for _ in size]
    strides, step = [], 1
    for n, gap in zip(reversed(size), reversed(gaps), strict=True):
        strides.append(step * gap)
        step *= n * gap
    strides.reverse()
    order = data.draw(st.permutations(range(len(size))))
    size, strides = [size[i] for i in order], [strides[i] for i in order]
    span = 1 + sum((n - 1) * s for n, s in zip(size, strides, strict=True))
    if span > 60:
        return
    offset = data.draw(st.integers(0, 60 - span))

    def touch(device: str) -> Any:
        x = torch.arange(60, device=device)
        view = x.as_strided(size, strides, offset)
        before = view.clone()
        view.mul_(-1)
        return before, x

    assert_agree(touch)


def test_a_view_that_is_none_is_refused() -> None:
    assert_error(lambda device: torch.arange(24.0, device=device).reshape(4, 6).t().view(24), RuntimeError, "view size is not compatible")
    assert_error(lambda device: torch.arange(3.0, device=device).reshape(2, 2), RuntimeError, "shape '\\[2, 2\\]' is invalid for input of size 3")
    assert_error(lambda device: torch.arange(3.0, device=device)[5], IndexError, "out of bounds")
    assert_error(lambda device: torch.arange(3.0, device=device).as_strided((4,), (1,)).sum().item(), RuntimeError, "out of bounds")


def test_views_in_another_dtype() -> None:
    def reinterpret(device: str) -> Any:
        x = torch.arange(6.0, device=device)
        shown = [x.view(d) for d in (torch.int32, torch.uint8, torch.float64, torch.int16, torch.complex64)]
        shown = [s.clone() for s in shown]
        x.view(torch.int32).add_(1)
        x.view(torch.uint8)[3] = 64
        x.view(torch.complex64)[1] = 1 + 2j
        x.view(torch.int16)[4::2].mul_(0)
        return shown, x

    assert_agree(reinterpret)


def test_views_in_another_dtype_of_a_storage_that_is_no_multiple_of_it() -> None:
    def reinterpret(device: str) -> Any:
        x = torch.tensor([1, 2, 3], dtype=torch.bfloat16, device=device)
        pair = x[:2].view(torch.float32)
        host = pair.cpu()
        pair.mul_(2)
        return host.clone() if device == "tpu" else torch.tensor([1, 2], dtype=torch.bfloat16).view(torch.float32), pair, x

    assert_agree(reinterpret)


def test_bool_views_of_bytes() -> None:
    def reinterpret(device: str) -> Any:
        x = torch.tensor([0, 1, 1, 0], dtype=torch.uint8, device=device)
        flags = x.view(torch.bool)
        flags[0] = True
        return x, flags

    assert_agree(reinterpret)


def test_copies_between_views_of_other_dtypes() -> None:
    def copy(device: str) -> Any:
        a = torch.arange(12.0, device=device)
        b = torch.zeros(6, dtype=torch.float64, device=device)
        b.view(torch.float32).copy_(a)
        c = torch.zeros(24, dtype=torch.int16, device=device)
        c.view(torch.float32)[::2].copy_(a.view(torch.int32)[:6])
        middle = b.view(torch.uint8)[3:11].clone()
        columns = a.view(torch.uint8).view(6, 8)[:, ::2].contiguous()
        a.view(torch.int64)[1:3].copy_(torch.tensor([5, 6]))
        return a, b, c, middle, columns, a.view(torch.float64).to(torch.float32)

    assert_agree(copy)
