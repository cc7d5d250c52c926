"""Much that is never read, and many threads: right values, bounded memory, in strict and in fused eager mode."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator

import pytest
import torch

from tests.device.fuse.mode import deferring
from tpu_lab.device import host_first, memory


@pytest.fixture(params=["strict", "tiered", "always"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "strict":
        yield
        return
    with deferring(request.param):
        yield
    host_first.finish()


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_3000_additions_that_nobody_reads() -> None:
    total, one = torch.zeros((), device="tpu"), torch.full((), 0.5, device="tpu")
    state = torch.ones(50_000, device="tpu")
    before, live = resident(), memory.stats().allocated
    for i in range(3000):
        total = total + one
        if i % 3 == 0:
            state = state * 0.5 + 0.5
    assert total.item() == 1500 and state[:3].tolist() == [1.0] * 3
    assert memory.stats().allocated <= live + state.nbytes + 16
    assert resident() - before < 256 << 20


def test_10000_updates_in_place_that_nobody_reads() -> None:
    x = torch.zeros(64, device="tpu")
    before, live = resident(), memory.stats().allocated
    for _ in range(5000):
        x.add_(1)
        x[1:3].sub_(1)
    assert x.tolist() == [5000.0, 0, 0] + [5000.0] * 61
    assert memory.stats().allocated <= live + x.nbytes
    assert resident() - before < 256 << 20


def test_100_threads() -> None:
    fuse = torch.tpu.eager_mode  # type: ignore[attr-defined]
    results: dict[int, torch.Tensor] = {}
    failed: list[BaseException] = []

    def work(i: int) -> None:
        try:
            with torch.tpu.set_eager_mode(fuse):  # type: ignore[attr-defined]
                w = torch.full((8,), float(i), device="tpu", requires_grad=True)
                for _ in range(3):
                    y = (w * 2 + 1)[1:]
                    y.sum().backward()
                results[i] = w.grad + w.detach()  # type: ignore[operator]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for i, found in results.items():
        assert found.tolist() == [float(i)] + [6.0 + i] * 7
