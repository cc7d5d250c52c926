"""Quick kernels answer as the general way does: numbers, absent arguments, aliases, offsets, changing dtypes."""

from __future__ import annotations

from typing import Any

import torch

from tpu_lab.device import program_cache, state

from .against_cpu import assert_agree


def test_numbers_of_every_kind() -> None:
    def run(device: str) -> Any:
        x = torch.arange(1.0, 4.0, device=device)
        found = []
        for n in (1, 2, True, 1.0, -0.0, 0.5, 1e30, 2**40):
            found += [x * n, x + n, x / n if n else x, x**n if abs(n) < 9 else x, torch.add(x, x, alpha=n + 0), n * x - x, x > n, x.clamp(max=n)]
        return found, x.clamp(min=None, max=2), x.clamp(2), x * 1j

    assert_agree(run)


def test_a_number_is_no_part_of_the_program() -> None:
    x = torch.ones(3, device="tpu")
    x * 0.5, x.add_(0.25), torch.add(x, x, alpha=3)
    before = program_cache.compilations
    for i in range(20):
        x * (0.5 + i), x.add_(0.25 + i), torch.add(x, x, alpha=3 + i)
    assert program_cache.compilations == before


def test_one_as_an_operand_is_a_number_too() -> None:
    x = torch.ones(3, device="tpu")
    x + 2, 2 - x, x * 2
    before = program_cache.compilations
    assert [(x + 1).tolist(), (1 - x).tolist(), (x * 1).tolist()] == [[2.0] * 3, [0.0] * 3, [1.0] * 3]
    assert program_cache.compilations == before


def test_an_offset_is_no_part_of_the_program() -> None:
    x = torch.arange(1000.0, device="tpu")
    x[3:8] + 1, x[3:8].mul_(1.5)
    before = program_cache.compilations
    for i in range(10, 900, 50):
        assert (x[i : i + 5] + 1).tolist() == [i + 1.0 + k for k in range(5)]
        x[i : i + 5].mul_(1.5)
    assert program_cache.compilations - before <= 2, "a view that starts a row of its storage is another program than one that does not"


def test_operands_that_alias() -> None:
    def run(device: str) -> Any:
        x = torch.arange(6.0, device=device)
        view = x[2:4]
        return x * x, x + x.flip(0), x[:3] * x[3:], view / view, torch.dot(x, x), torch.addcmul(x, x, x), torch.where(x > 2, x, x[0])

    assert_agree(run)


def test_a_program_for_one_storage_does_not_serve_two() -> None:
    def run(device: str) -> Any:
        x, y = torch.arange(6.0, device=device), torch.arange(6.0, device=device) * 2
        found = []
        for _ in range(3):
            found += [x * x, x * y, y * y, x[:3] * x[3:], x[:3] * y[3:], x[3:] * x[3:], 3 * x, torch.dot(x, y), torch.dot(y, y)]
        return found

    assert_agree(run)


def test_same_shapes_in_other_dtypes_and_strides() -> None:
    def run(device: str) -> Any:
        found = []
        for dtype in (torch.float32, torch.float64, torch.int32, torch.bool, torch.float32):
            x = torch.ones(3, 3, device=device).to(dtype)
            found += [x + x, x.t() * 2, x[:, 1:2] + x, x.sum(1)]
        return found

    assert_agree(run)


def test_in_place_while_a_snapshot_is_kept() -> None:
    x = torch.ones(3, device="tpu")
    x.add_(1)
    journal = state.snapshot()
    try:
        for _ in range(3):
            x.add_(1)
        assert x.tolist() == [5, 5, 5]
        state.restore(journal)
        assert x.tolist() == [2, 2, 2]
        x.add_(1)
        state.restore(journal)
        assert x.tolist() == [2, 2, 2]
    finally:
        state.release(journal)
    assert x.add_(1).tolist() == [3, 3, 3]
