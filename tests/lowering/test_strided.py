"""`strided` against torch on the CPU: the same storage, the same size, stride and offset."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.lowering.replay import to_array, to_tensor
from tpu_lab.lowering import strided
from tpu_lab.lowering.dtypes import to_jax

Geometry = tuple[int, tuple[int, ...], tuple[int, ...], int]
FEW = settings(max_examples=120, deadline=None)


def geometry(view: torch.Tensor) -> Geometry:
    return view.untyped_storage().nbytes() // view.element_size(), tuple(view.shape), tuple(view.stride()), view.storage_offset()


def every_way(n: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What `read` and `write` give with the offset as a constant, as a run-time number, and (where it may be) promised to be aligned."""
    ways: list[tuple[bool, bool]] = [(False, False), (True, False)]
    if strided.is_aligned(n, size, stride, offset):
        ways.append((True, True))

    def run(storage: jax.Array, at: jax.Array, value: jax.Array) -> Any:
        read = [strided.read(storage, size, stride, at if moving else offset, aligned=a) for moving, a in ways]
        return read, [strided.write(storage, size, stride, at if moving else offset, value, aligned=a) for moving, a in ways]

    with jax.enable_x64(True):
        quick = jax.jit(run, compiler_options={"xla_backend_optimization_level": 0})
        read, written = quick(-np.arange(1, n + 1, dtype=np.int32), np.int64(offset), value)
        return [np.asarray(r) for r in read], [np.asarray(w) for w in written]


def written_one_by_one(n: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int, value: np.ndarray) -> np.ndarray:
    """The definition: every position in row-major order."""
    storage = -np.arange(1, n + 1, dtype=np.int32)
    for index in itertools.product(*map(range, size)):
        storage[offset + sum(i * s for i, s in zip(index, stride, strict=True))] = value[index]
    return storage


def assert_same(n: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    value = np.arange(1, math.prod(size) + 1, dtype=np.int32).reshape(size)
    read, written = every_way(n, size, stride, offset, value)
    expected = torch.as_strided(-torch.arange(1, n + 1, dtype=torch.int32), size, stride, offset).numpy()
    for result in read:
        np.testing.assert_array_equal(result, expected)
    expected = written_one_by_one(n, size, stride, offset, value)
    for result in written:
        np.testing.assert_array_equal(result, expected)


def _base(*shape: int) -> torch.Tensor:
    return torch.arange(math.prod(shape), dtype=torch.int32).reshape(shape)


VIEWS: dict[str, Callable[[], torch.Tensor]] = {
    "whole": lambda: _base(3, 4),
    "row": lambda: _base(5, 4)[2],
    "last row": lambda: _base(5, 4)[-1],
    "element": lambda: _base(5, 4)[3, 2],
    "rows": lambda: _base(7, 4)[2:5],
    "columns": lambda: _base(6, 8)[:, 2:5],
    "last columns": lambda: _base(6, 8)[:, 5:],
    "inner box": lambda: _base(4, 6, 8)[1:3, 2:5, 3:7],
    "transposed": lambda: _base(3, 5).t(),
    "transposed box": lambda: _base(4, 6, 8)[1:, 2:4].permute(2, 0, 1),
    "select in the middle": lambda: _base(3, 4, 5)[:, 2],
    "steps": lambda: _base(17)[1::3],
    "steps on both dims": lambda: _base(7, 9)[1::2, ::3],
    "steps, not a multiple": lambda: _base(5, 7)[:, 1::3],
    "expanded": lambda: _base(3, 1).expand(3, 4),
    "expanded scalar": lambda: _base(1)[0].expand(2, 3),
    "expanded in the middle": lambda: _base(2, 3).unsqueeze(1).expand(2, 4, 3).transpose(0, 2),
    "diagonal": lambda: _base(5, 5).diagonal(),
    "diagonal, wide": lambda: _base(4, 7).diagonal(1),
    "diagonal, tall": lambda: _base(7, 4).diagonal(-2),
    "batch of diagonals": lambda: _base(3, 4, 4).diagonal(dim1=1, dim2=2),
    "diagonal with channels": lambda: _base(4, 4, 3).diagonal(dim1=0, dim2=1),
    "windows with gaps": lambda: _base(20).unfold(0, 3, 5),
    "windows side by side": lambda: _base(20).unfold(0, 4, 4),
    "windows with overlap": lambda: _base(20).unfold(0, 5, 2),
    "windows, every start": lambda: _base(9).unfold(0, 4, 1),
    "windows of rows": lambda: _base(8, 3).unfold(0, 4, 2),
    "windows of both dims": lambda: _base(7, 9).unfold(0, 3, 2).unfold(1, 3, 1),
    "many windows": lambda: _base(200).unfold(0, 90, 1),
    "many windows of rows": lambda: _base(90, 2).unfold(0, 40, 1),
    "q of qkv": lambda: _base(2, 5, 3 * 12)[..., :12].view(2, 5, 3, 4).transpose(1, 2),
    "v of qkv": lambda: _base(2, 5, 3 * 12)[..., 24:].view(2, 5, 3, 4).transpose(1, 2),
    "k transposed": lambda: _base(2, 5, 3 * 12)[..., 12:24].view(2, 5, 3, 4).permute(0, 2, 3, 1),
    "qkv unbound": lambda: _base(2, 5, 3, 3, 4)[:, :, 1].transpose(1, 2),
    "channels last": lambda: _base(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "channels last, one channel": lambda: _base(2, 3, 4, 5).to(memory_format=torch.channels_last)[:, 1:2],
    "channels last, cropped": lambda: _base(2, 3, 4, 5).to(memory_format=torch.channels_last)[:, :, 1:3, 1:4],
    "size 1, odd stride": lambda: _base(12).as_strided((1, 3, 1), (100, 4, 7), 1),
    "across rows": lambda: _base(6, 8).as_strided((4, 3), (8, 1), 6),
    "interleaved": lambda: _base(12).as_strided((2, 3), (3, 2), 1),
    "same stride twice": lambda: _base(12).as_strided((3, 4), (2, 2), 1),
    "three overlapping dims": lambda: _base(30).as_strided((3, 2, 4), (2, 3, 1), 2),
    "0-dim": lambda: _base(1)[0],
    "empty": lambda: _base(0),
    "empty of a storage": lambda: _base(4, 5)[4:],
    "empty, expanded": lambda: _base(4, 5)[:0].unsqueeze(0).expand(3, 0, 5),
}


@pytest.mark.parametrize("name", VIEWS)
def test_explicit_views(name: str) -> None:
    assert_same(*geometry(VIEWS[name]()))


GATHERED = {"many windows", "many windows of rows"}
SCATTERED = GATHERED | {
    "windows with overlap",
    "windows, every start",
    "windows of rows",
    "windows of both dims",
    "interleaved",
    "same stride twice",
    "three overlapping dims",
}


def primitives(name: str, moving: bool, aligned: bool = False) -> tuple[list[str], list[str]]:
    """The primitives that reading and writing a view consist of."""
    n, size, stride, offset = geometry(VIEWS[name]())
    with jax.enable_x64(True):
        storage, value, at = np.zeros(n, np.float32), np.zeros(size, np.float32), np.int64(offset)
        read = jax.make_jaxpr(lambda s, o: strided.read(s, size, stride, o if moving else offset, aligned=aligned))(storage, at)
        write = jax.make_jaxpr(lambda s, v, o: strided.write(s, size, stride, o if moving else offset, v, aligned=aligned))(storage, value, at)
    return [e.primitive.name for e in read.eqns], [e.primitive.name for e in write.eqns]


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_gather_and_scatter_are_the_last_resort(name: str, moving: bool) -> None:
    read, write = primitives(name, moving)
    assert ("gather" in read) == (name in GATHERED)
    assert ("scatter" in write) == (name in SCATTERED)


@pytest.mark.parametrize("name", ["row", "columns", "inner box", "transposed box", "q of qkv", "v of qkv", "select in the middle"])
def test_a_slice_of_a_contiguous_tensor_is_one_slice(name: str) -> None:
    assert strided.is_aligned(*geometry(VIEWS[name]()))
    read, write = primitives(name, moving=True, aligned=True)
    assert read.count("dynamic_slice") == 1 and "pad" not in read
    assert write.count("dynamic_update_slice") == 1 and "dynamic_slice" not in write


@pytest.mark.parametrize(("name", "fences"), [("transposed", 2), ("channels last", 2), ("q of qkv", 0), ("rows", 0)])
def test_fences_stand_around_a_transpose_that_moves_the_last_dim(name: str, fences: int) -> None:
    n, size, stride, offset = geometry(VIEWS[name]())
    base = np.arange(n, dtype=np.int32)
    with jax.enable_x64(True):
        program = jax.make_jaxpr(lambda s: strided.read(s, size, stride, offset, fenced=True))(base)
        result = strided.read(jax.numpy.asarray(base), size, stride, offset, fenced=True)
    assert [e.primitive.name for e in program.eqns].count("optimization_barrier") == fences
    np.testing.assert_array_equal(np.asarray(result), torch.as_strided(torch.from_numpy(base), size, stride, offset).numpy())


@pytest.mark.parametrize(
    ("n", "size", "stride", "offset", "expected"),
    [
        (12, (3, 4), (4, 1), 0, True),
        (12, (12,), (1,), 0, True),
        (12, (3, 1, 4), (4, 99, 1), 0, True),
        (1, (), (), 0, True),
        (0, (0, 4), (4, 1), 0, True),
        (12, (3, 4), (1, 3), 0, False),
        (13, (3, 4), (4, 1), 0, False),
        (13, (3, 4), (4, 1), 1, False),
        (12, (2, 4), (4, 1), 4, False),
        (12, (0, 4), (4, 1), 0, False),
        (4, (2, 2), (0, 1), 0, False),
    ],
)
def test_is_whole(n: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int, expected: bool) -> None:
    assert strided.is_whole(n, size, stride, offset) is expected


def test_is_aligned_rejects_a_view_across_rows() -> None:
    assert not strided.is_aligned(48, (4, 3), (8, 1), 6)
    assert strided.is_aligned(48, (4, 3), (8, 1), 5)
    assert not strided.is_aligned(49, (4, 3), (8, 1), 5)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    """Any size and non-negative stride, overlapping or not, in a storage that has room for it."""
    size = tuple(draw(st.lists(st.integers(1, 4), max_size=4)))
    stride = tuple(draw(st.lists(st.integers(0, 12), min_size=len(size), max_size=len(size))))
    offset = draw(st.integers(0, 9))
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return offset + extent + draw(st.integers(0, 9)), size, stride, offset


@FEW
@given(geometries())
@example((10, (2, 2), (5, 4), 0))
def test_any_geometry(drawn: Geometry) -> None:
    assert_same(*drawn)


@st.composite
def chains(draw: st.DrawFn) -> torch.Tensor:
    """A view that a chain of view operators leaves of a contiguous base."""
    view = _base(*draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    for _ in range(draw(st.integers(1, 5))):
        if view.ndim == 0 or view.numel() == 0:
            break
        dim = draw(st.integers(0, view.ndim - 1))
        length = view.shape[dim]
        step = draw(st.sampled_from(["slice", "select", "transpose", "expand", "unfold", "diagonal", "split", "unsqueeze", "flatten"]))
        if step == "slice":
            first = draw(st.integers(0, length - 1))
            last, stride = draw(st.integers(first, length)), draw(st.integers(1, 3))
            view = view[(slice(None),) * dim + (slice(first, last, stride),)]
        elif step == "select":
            view = view.select(dim, draw(st.integers(0, length - 1)))
        elif step == "transpose":
            view = view.transpose(dim, draw(st.integers(0, view.ndim - 1)))
        elif step == "expand" and length == 1:
            view = view.expand([3 if d == dim else n for d, n in enumerate(view.shape)])
        elif step == "unfold":
            view = view.unfold(dim, draw(st.integers(1, length)), draw(st.integers(1, 3)))
        elif step == "diagonal" and view.ndim > 1:
            view = view.diagonal(draw(st.integers(-1, 1)), *draw(st.permutations(range(view.ndim)))[:2])
        elif step == "split" and length % 2 == 0:
            view = view.unflatten(dim, (2, length // 2))
        elif step == "unsqueeze":
            view = view.unsqueeze(dim)
        elif step == "flatten" and view.is_contiguous():
            view = view.flatten()
    return view


@FEW
@given(chains())
def test_chains_of_views(view: torch.Tensor) -> None:
    assert_same(*geometry(view))


@FEW
@given(chains(), st.integers(1, 9))
def test_in_place_as_torch_does_it(view: torch.Tensor, number: int) -> None:
    n, size, stride, offset = geometry(view)
    touched = torch.as_strided(torch.arange(n), size, stride, offset)
    if touched.unique().numel() != touched.numel():
        return  # torch calls a write through overlapping positions undefined; `check` holds the rule for them
    base = torch.arange(n, dtype=torch.float32)
    with jax.enable_x64(True):
        old = strided.read(to_array(base), size, stride, offset)
        result = strided.write(to_array(base), size, stride, offset, old * np.float32(number))
    torch.as_strided(base, size, stride, offset).mul_(number)
    np.testing.assert_array_equal(np.asarray(result), base.numpy())


@pytest.mark.parametrize("name", [n for n in VIEWS if "overlap" not in n and "many" not in n])
def test_lay_out(name: str) -> None:
    view = VIEWS[name]()
    length = 0 if view.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(view.shape, view.stride(), strict=True))
    index = torch.as_strided(torch.arange(length), view.shape, view.stride())
    distinct = index.unique().numel() == index.numel()
    value = torch.arange(view.numel(), dtype=torch.float32).reshape(view.shape) if distinct else torch.full(view.shape, 3.0)
    expected = torch.zeros(length)
    expected[index] = value
    with jax.enable_x64(True):
        storage = strided.lay_out(to_array(value), tuple(view.stride()))
    torch.testing.assert_close(to_tensor(storage, torch.float32), expected, rtol=0, atol=0)


ITEMS = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.bfloat16,
    torch.float16,
    torch.int32,
    torch.float32,
    torch.int64,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ITEMS, ITEMS)))
def test_reinterpret(source: torch.dtype, target: torch.dtype) -> None:
    size = 32 // source.itemsize
    values = torch.arange(size * source.itemsize, dtype=torch.uint8) % (2 if torch.bool in (source, target) else 251)
    storage = values.view(source)
    expected = storage.view(target)
    with jax.enable_x64(True):
        result = jax.jit(lambda s: strided.reinterpret(s, to_jax(target)))(to_array(storage))
        back = jax.jit(lambda s: strided.reinterpret(s, to_jax(source)))(result)
    assert result.dtype == to_jax(target)
    assert to_tensor(result, target).view(torch.uint8).equal(expected.view(torch.uint8))
    assert to_tensor(back, source).view(torch.uint8).equal(values)


def test_reinterpret_fills_up_the_last_item() -> None:
    storage = torch.tensor([1, 2, 3], dtype=torch.int16)
    with jax.enable_x64(True):
        wide = strided.reinterpret(to_array(storage), np.int32)
        pair = strided.reinterpret(to_array(torch.tensor([1.0, 2.0, 3.0])), np.complex64)
        back = strided.reinterpret(wide, np.int16, 3)
    assert wide.tolist() == [1 | 2 << 16, 3]
    assert back.tolist() == [1, 2, 3]
    assert pair.tolist() == [1 + 2j, 3 + 0j]


def test_a_byte_that_is_not_0_is_true() -> None:
    assert strided.reinterpret(jax.numpy.asarray(np.array([0, 1, 7], np.uint8)), np.bool_).tolist() == [False, True, True]


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.float64, torch.complex64, torch.int64])
def test_dtypes_are_kept(dtype: torch.dtype) -> None:
    base = torch.arange(48).to(dtype).reshape(6, 8)
    view = base[1:5, 2:7:2].t()
    with jax.enable_x64(True):
        got: Any = strided.read(to_array(base.reshape(-1)), tuple(view.shape), view.stride(), view.storage_offset())
        again = strided.write(jax.numpy.zeros(48, to_jax(dtype)), tuple(view.shape), view.stride(), view.storage_offset(), got)
    assert to_tensor(got, dtype).equal(view.contiguous())
    expected = torch.zeros_like(base)
    torch.as_strided(expected, view.shape, view.stride(), view.storage_offset()).copy_(view)
    assert to_tensor(again, dtype).equal(expected.reshape(-1))
