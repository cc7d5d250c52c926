"""Joining, padding, repeating and reordering against CPU torch."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo

SAMPLED = {
    "cat": {"cat"},
    "stack": {"stack"},
    "constant_pad_nd": {"constant_pad_nd"},
    "flip": {"flip"},
    "roll": {"roll"},
    "rot90": {"rot90"},
    "repeat": {"repeat"},
    "tril": {"tril"},
    "triu": {"triu"},
    "nn.functional.pixel_shuffle": {"pixel_shuffle", "pixel_unshuffle"},
    "nn.functional.channel_shuffle": {"channel_shuffle"},
}
CUBE = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.int64), only=SAMPLED[name], limit=3)
    assert checked.keys() == SAMPLED[name]


def test_cat_promotes_and_skips_empty_vectors() -> None:
    assert_same("cat", [CUBE, CUBE.long(), CUBE > 3], 1)
    assert_same("cat", [torch.tensor([]), CUBE, torch.tensor([])], -1)
    assert_same("cat", [torch.tensor([]), torch.tensor([], dtype=torch.int64)])
    assert_same("cat", [torch.tensor([1], dtype=torch.uint8), torch.tensor([-1], dtype=torch.int8)])
    assert_same("stack", [torch.tensor(1.0), torch.tensor(2.0)])
    assert_same("stack", [CUBE, CUBE.double()], -1)


@pytest.mark.parametrize("pad", [[1, 2], [-1, 1], [0, 0, 2, -2], [1, 1, 1, 1, 1, 1], [-2, -2], []])
def test_padding_and_cropping(pad: list[int]) -> None:
    assert_same("constant_pad_nd", CUBE, pad, 1.5)
    assert_same("constant_pad_nd", CUBE.long(), pad, 3)


@pytest.mark.parametrize("diagonal", [-5, -1, 0, 2, 9, 2**40])
def test_triangles(diagonal: int) -> None:
    assert_same("tril", CUBE, diagonal)
    assert_same("triu", CUBE > 3, diagonal)


def test_rolls_and_flips() -> None:
    assert_same("roll", CUBE, [5])
    assert_same("roll", CUBE, [-1, 7, 2], [0, 2, 0])
    assert_same("roll", torch.ones(0, 3), [1], [0])
    assert_same("roll", torch.tensor(2.0), [3])
    assert_same("flip", CUBE, [0, -1])
    assert_same("flip", torch.tensor(2.0), [0])
    for k in (-1, 0, 2, 3, 5):
        assert_same("rot90", CUBE, k, [2, 0])


def test_repetitions() -> None:
    assert_same("repeat", CUBE, [2, 1, 3, 2])
    assert_same("repeat", CUBE, [0, 1, 1])
    assert_same("repeat", torch.tensor(3.0), [2, 2])
    assert_same("repeat_interleave.self_int", CUBE, 2, 1)
    assert_same("repeat_interleave.self_int", CUBE, 3)
    assert_same("repeat_interleave.self_int", CUBE, 0, -1)


def test_shuffles() -> None:
    images = torch.arange(96.0).reshape(2, 12, 2, 2)
    assert_same("native_channel_shuffle", images, 3)
    assert_same("pixel_shuffle", images, 2)
    assert_same("pixel_unshuffle", images[0], 2)
