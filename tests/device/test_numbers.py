"""Python numbers as arguments: every call sees its own value, whether the number is new, seen before, or read late."""

from __future__ import annotations

import math
import threading

import pytest
import torch

from tpu_lab.device import numbers

VALUES = [0.1 * i for i in range(1, 40)] + [0.0, -0.0, math.inf, 1e-320, math.pi] * 3


def test_results_of_new_numbers_keep_their_values() -> None:
    """A 0-dim result could share the memory of its number."""
    x = torch.zeros((), device="tpu")
    results = [torch.full_like(x, v) for v in VALUES] + [x + v for v in VALUES] + [x.clone().fill_(v) for v in VALUES]
    assert [r.item() for r in results] == [torch.tensor(v).item() for v in VALUES] * 3


def test_a_program_that_runs_late_reads_its_own_number() -> None:
    """The large sum is not ready when the next numbers come: its slot must not be written to again."""
    x = torch.ones(2_000_000, device="tpu")
    torch.add(x, x, alpha=0.5)
    late = [torch.add(x, x, alpha=v) for v in VALUES[:39]]
    for v, result in zip(VALUES, late, strict=False):
        assert result[-1].item() == pytest.approx(1 + v)


def test_two_numbers_of_one_call_and_in_place() -> None:
    a, b, c = (torch.eye(3, device="tpu") for _ in range(3))
    for i in range(1, 20):
        assert torch.addmm(c, a, b, beta=i * 0.013, alpha=i * 0.17)[0, 0].item() == pytest.approx(i * 0.183)
        assert c.clone().mul_(i * 0.19)[1, 1].item() == pytest.approx(i * 0.19)


def test_threads_do_not_see_each_others_numbers() -> None:
    wrong: list[float] = []

    def work(start: float) -> None:
        x = torch.zeros(4, device="tpu")
        for i in range(300):
            value = start + i * 0.001
            if not math.isclose((x + value)[0].item(), value, rel_tol=1e-6):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(10.0 * n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_new_number_takes_a_slot_and_one_that_comes_again_an_array() -> None:
    value = 0.123456789
    x, y = torch.ones(3, device="tpu"), torch.ones(3, device="tpu")
    for warm in range(20):  # the first calls of their kind go the general way
        torch.add(x, y, alpha=0.5 + warm)
    for kept in (False, True, True):
        assert torch.add(x, y, alpha=value)[0].item() == pytest.approx(1 + value)
        assert (numbers.float_array(value) is not None) == kept


def test_a_slot_is_memory_of_its_array() -> None:
    array, memory = numbers.new_slot()
    memory[0] = 0.75
    assert array.item() == 0.75 and array.shape == () and str(array.dtype) == "float64"


def test_slots_of_finished_programs_come_again() -> None:
    x, y = torch.ones(3, device="tpu"), torch.ones(3, device="tpu")
    for i in range(300):
        torch.add(x, y, alpha=0.77 + i * 1e-4).cpu()
    assert len(numbers._slots) < 20
