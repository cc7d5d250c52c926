"""Views as functions of values, writing into them, and their gradients, against CPU torch."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo

SAMPLED = {
    "view": {"view"},
    "reshape": {"view"},
    "permute": {"permute"},
    "transpose": {"transpose.int"},
    "t": {"t"},
    "expand": {"expand"},
    "squeeze": {"squeeze", "squeeze.dim"},
    "unsqueeze": {"unsqueeze"},
    "narrow": {"slice.Tensor", "slice_backward"},
    "select": {"select.int", "select_backward"},
    "diagonal": {"diagonal", "diagonal_backward"},
    "unfold": {"unfold", "unfold_backward"},
    "split": {"split.Tensor", "split_with_sizes"},
    "unbind": {"unbind.int"},
    "view_as_real": {"view_as_real", "view_as_complex"},
    "slice_scatter": {"slice_scatter"},
    "select_scatter": {"select_scatter"},
    "diagonal_scatter": {"diagonal_scatter"},
    "diag_embed": {"diag_embed"},
    "as_strided_scatter": {"as_strided_scatter"},
    "clone": {"clone"},
}
COPIES = (
    "view",
    "permute",
    "transpose",
    "t",
    "expand",
    "squeeze",
    "unsqueeze",
    "diagonal",
    "unfold",
    "split_with_sizes",
    "unbind",
    "as_strided",
    "alias",
)
CUBE = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.complex64 if name.startswith("view_as") else torch.float32,), only=SAMPLED[name], limit=3)
    assert checked.keys() == SAMPLED[name]


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_views(name: str) -> None:
    checked = assert_opinfo(f"{name}_copy", (torch.float32,), limit=2, grad=False)
    assert any(key.startswith(f"{name}_copy") for key in checked)


@pytest.mark.parametrize(
    ("start", "end", "step"), [(None, None, 1), (1, 3, 1), (-2, None, 1), (0, 99, 2), (3, 1, 1), (1, 4, 3), (-99, -1, 2), (4, 9, 1)]
)
def test_slices_clamp(start: int | None, end: int | None, step: int) -> None:
    part = CUBE.narrow(2, 0, len(range(4)[start:end:step]))
    assert_same("slice.Tensor", CUBE, 2, start, end, step)
    assert_same("slice_scatter", CUBE, part * 100, -1, start, end, step)
    first, last = (0 if start is None else start), (99 if end is None else end)
    assert_same("slice_backward", part, [2, 3, 4], 2, first, last, step)


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 3, 4])
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (-1, 1)])
def test_diagonals(offset: int, dims: tuple[int, int]) -> None:
    diagonal = CUBE.diagonal(offset, *dims)
    assert_same("diagonal", CUBE, offset, *dims)
    assert_same("diagonal_scatter", CUBE, -diagonal, offset, *dims)
    assert_same("diagonal_backward", diagonal, [2, 3, 4], offset, *dims)


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diag_embed(offset: int) -> None:
    assert_same("diag_embed", CUBE[0], offset)
    assert_same("diag_embed", CUBE[0], offset, 0, 1)
    assert_same("diag_embed", CUBE[0], offset, 2, 0)


@pytest.mark.parametrize(("size", "step"), [(2, 1), (3, 2), (1, 3), (4, 4), (20, 3)])
def test_windows(size: int, step: int) -> None:
    rows = torch.arange(42.0).reshape(2, 21)
    windows = rows.unfold(1, size, step)
    assert_same("unfold", rows, 1, size, step)
    assert_same("unfold", rows.t().contiguous(), 0, size, step)
    assert_same("unfold_backward", windows.contiguous(), [2, 21], 1, size, step)
    assert_same("unfold_backward", windows.transpose(0, 1).contiguous(), [21, 2], 0, size, step)


@pytest.mark.parametrize(
    ("have", "want"),
    [
        (torch.float32, torch.int32),
        (torch.float32, torch.uint8),
        (torch.uint8, torch.int16),
        (torch.complex64, torch.float32),
        (torch.float32, torch.complex64),
    ],
)
def test_view_as_another_dtype(have: torch.dtype, want: torch.dtype) -> None:
    values = torch.tensor([[1.5, -2.0, 3.25, 0.0], [7.0, 8.0, -9.5, 100.0]])
    assert_same("view.dtype", values.to(torch.uint8) if have == torch.uint8 else values.to(have), want)


def test_scalars_and_empty() -> None:
    scalar, empty = torch.tensor(3.0), torch.ones(0, 2)
    assert_same("transpose.int", scalar, 0, -1)
    assert_same("squeeze.dim", scalar, 0)
    assert_same("unsqueeze", scalar, -1)
    assert_same("unfold", scalar, 0, 1, 1)
    assert_same("t", scalar)
    assert_same("view", empty, [2, -1])
    assert_same("split.Tensor", empty, 3, 0)
    assert_same("expand", empty, [4, -1, 2])
    assert_same("diagonal", empty)
    assert_same("slice_backward", empty, [5, 2], 0, 2, 2, 1)


def test_as_strided_reads_and_writes_windows() -> None:
    flat = torch.arange(10.0)
    assert_same("as_strided", flat, [3, 4], [3, 1], 0)
    assert_same("as_strided", flat, [2, 3], [1, 2], 3)
    assert_same("as_strided_scatter", flat, torch.ones(2, 3), [2, 3], [5, 1], 1)


def test_the_same_value_again() -> None:
    for overload in ("alias", "detach", "clone", "lift_fresh_copy", "lift", "_lazy_clone"):
        assert_same(overload, CUBE)
    assert_same("narrow_copy", CUBE, 1, -2, 2)
