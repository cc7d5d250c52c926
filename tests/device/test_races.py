"""Threads: each its own tensors, or all the same one; results are right and nothing raises."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import host_first


def in_threads(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_twenty_threads_with_tensors_of_their_own() -> None:
    def work(i: int) -> None:
        for k in range(10):
            x = torch.full((16,), float(i), device="tpu")
            assert (x * 2 + k).sum().item() == 16 * (2 * i + k)
            copy = x.clone()
            copy[::2].add_(1)
            assert copy.sum().item() == 16 * i + 8
            weight = torch.nn.Parameter(x.clone())
            (weight * weight).sum().backward()
            assert weight.grad is not None and weight.grad[0].item() == 2 * i

    in_threads(20, work)


def test_no_update_of_a_common_tensor_gets_lost() -> None:
    x = torch.zeros(1000, device="tpu")
    x.add_(1).zero_()
    in_threads(8, lambda i: [x.add_(1) for _ in range(40)] and None)
    assert x.tolist() == [320.0] * 1000


def test_no_update_by_a_host_kernel_gets_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_first, "COMPILED_AT_ONCE", 0)
    monkeypatch.setattr(host_first, "SIGHTINGS", 10**9)
    x = torch.zeros(1001, device="tpu")
    in_threads(8, lambda i: [x.add_(1) for _ in range(40)] and None)
    assert x.tolist() == [320.0] * 1001


def test_reading_while_others_write() -> None:
    x = torch.zeros(1000, device="tpu")
    seen: list[float] = []

    def work(i: int) -> None:
        for _ in range(30):
            if i % 2:
                x.add_(1)
            else:
                host = (x + 0).cpu()
                assert (host == host[0]).all()
                seen.append(x[3].item())
                x.clone()

    in_threads(8, work)
    assert x[0].item() == 120 and all(0 <= s <= 120 for s in seen)


def test_random_numbers_of_threads_are_all_different() -> None:
    drawn: list[tuple[float, ...]] = []
    torch.rand(4, device="tpu")
    in_threads(20, lambda i: drawn.append(tuple(torch.rand(4, device="tpu").tolist())))
    assert len(set(drawn)) == 20


def test_modes_and_grad_modes_are_each_threads_own() -> None:
    def work(i: int) -> None:
        mode = torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING if i % 2 else torch.tpu.EagerMode.DEFER_NEVER  # type: ignore[attr-defined]
        with torch.tpu.set_eager_mode(mode):  # type: ignore[attr-defined]
            for _ in range(10):
                assert torch.tpu.eager_mode is mode  # type: ignore[attr-defined]
                torch.ones(2, device="tpu") + 1

    in_threads(6, work)
