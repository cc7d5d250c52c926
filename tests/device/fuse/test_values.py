"""Deferred calls give what the CPU gives, as one program and one by one: views, in-place operators, aliases, random numbers, errors."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.device.fuse.mode import deferring
from tpu_lab.device import memory, state, tensors
from tpu_lab.device.fuse import finish


@pytest.fixture(params=["always", "replay"], autouse=True)
def deferred(request: pytest.FixtureRequest) -> Iterator[None]:
    with deferring(request.param):
        yield


def chain(x: torch.Tensor) -> Any:
    return (x * 2 + 1).tanh().sum(0)


def views(x: torch.Tensor) -> Any:
    y = x.t()[1:].contiguous()
    y[:, ::2] += 3
    y.view(-1)[2:5].mul_(x[0, :3])
    return y, y.t()[0], x.unfold(0, 2, 1).sum(-1)


def writes_through_views(x: torch.Tensor) -> Any:
    z = torch.zeros(6, 6, device=x.device)
    for i in range(5):
        z[i, : x.shape[1]] = x[i]
        z[:, i].add_(i)
    return z, z.diagonal()


def aliases(x: torch.Tensor) -> Any:
    a = x.clone()
    b, c = a.clone(), a.detach()
    c.add_(1)
    return a, b, c, a.data


def uninitialised(x: torch.Tensor) -> Any:
    e = torch.empty(3, device=x.device)
    e.fill_(2)
    e += x[0, 0]
    return e, torch.empty(0, device=x.device).sum()


def several_results(x: torch.Tensor) -> Any:
    values, places = x.sort(1)
    values += 1
    return values, places, *x.split(2), torch.cat([x, values])


def integers(x: torch.Tensor) -> Any:
    n = (x * 10).long()
    return n // 3, n % 4, n.to(torch.int8), (n > 2) & (n < 7), n.bitwise_xor(5), n.argsort(0)


def gradients(x: torch.Tensor) -> Any:
    w = x.clone().requires_grad_()
    torch.nn.functional.layer_norm(w @ w.t(), (5,)).pow(3).sum().backward()
    assert w.grad is not None
    return w.grad, w.detach().mul_(w.grad)


PROGRAMS = (chain, views, writes_through_views, aliases, uninitialised, several_results, integers, gradients)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_the_values_of_the_cpu(program: Callable[[torch.Tensor], Any]) -> None:
    x = torch.linspace(-1, 1, 20).reshape(5, 4)
    expected, actual = program(x.clone()), program(x.to("tpu"))
    for right, got in zip(*(v if isinstance(v, tuple) else (v,) for v in (expected, actual)), strict=True):
        torch.testing.assert_close(got.cpu(), right)
        assert got.stride() == right.stride()


def test_results_of_one_value_are_two_tensors() -> None:
    x = torch.ones(4, device="tpu")
    a = x + 1
    b, c = a.clone(), a.clone()
    assert a.sum().item() == 8
    b.add_(1)
    assert (a.tolist(), b.tolist(), c.tolist(), x.tolist()) == ([2.0] * 4, [3.0] * 4, [2.0] * 4, [1.0] * 4)


def test_only_what_lives_takes_memory() -> None:
    x = torch.ones(1000, 100, device="tpu")
    x.sum().item()
    gc.collect()
    start = memory.stats().allocated
    memory.reset_peak()
    y = ((x + 1) * 2 - 3).abs()
    assert memory.stats().allocated == start, "nothing ran yet"
    assert y[0, 0].item() == 1
    assert memory.stats().allocated == start + y.nbytes
    del y
    assert memory.stats().allocated == start and memory.ledger.promised == 0


def test_a_cut_comes_early_near_the_limit() -> None:
    x = torch.ones(1000, 1000, device="tpu")
    x.sum().item()
    gc.collect()
    limit = memory.get_memory_limit()
    memory.set_memory_limit(memory.stats().allocated + 10_000_000)
    try:
        y = x
        for _ in range(6):
            y = y + 1
        assert y[0, 0].item() == 7
        with pytest.raises(torch.OutOfMemoryError, match=r"test_values\.py"):
            [y + i for i in range(6)]
    finally:
        memory.set_memory_limit(limit)
    assert (y + 1)[0, 0].item() == 8


def test_mistakes_are_raised_where_they_are_made() -> None:
    x = torch.ones(3, 4, device="tpu")
    with pytest.raises(RuntimeError, match="same reduction dim"):
        x @ x
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.ones(1, device="tpu").expand(3).add_(1)
    assert (x + x).sum().item() == 24


def test_a_bad_index_is_raised_at_the_next_read_and_names_its_line() -> None:
    x, i = torch.arange(4.0, device="tpu"), torch.tensor([1, 9]).to("tpu")
    y = x + 1
    bad = x[i]
    with pytest.raises(IndexError, match=r"test_values\.py:\d+"):
        y.sum().item()
    del bad
    assert y.sum().item() == 10


def test_random_numbers_are_those_of_strict() -> None:
    def draw() -> list[float]:
        torch.manual_seed(3)
        x = torch.rand(3, device="tpu")
        y = torch.nn.functional.dropout(x + 1) + torch.randn(3, device="tpu").normal_()
        return y.tolist()

    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER):  # type: ignore[attr-defined]
        strict = draw()
    torch.testing.assert_close(draw(), strict)


def test_strict_code_sees_what_is_deferred_and_may_write_to_what_a_trace_holds() -> None:
    x = torch.ones(4, device="tpu")
    y = x * 2
    seen = []

    def other_thread() -> None:
        seen.append((y + x).tolist())
        x.add_(10)

    thread = threading.Thread(target=other_thread)  # it has the process's mode: strict
    z = x * 3
    thread.start()
    thread.join()
    assert seen == [[3.0] * 4] and z.tolist() == [3.0] * 4 and (x + y).tolist() == [13.0] * 4


def test_snapshots_and_copies_of_storages() -> None:
    x = torch.ones(4, device="tpu")
    x += 1
    journal = state.snapshot()
    x *= 5
    twin = x.untyped_storage().clone()
    x += 1
    assert x.tolist() == [11.0] * 4
    state.restore(journal)
    y = x + 0
    state.release(journal)
    x += 1
    assert y.tolist() == [2.0] * 4 and x.tolist() == [3.0] * 4
    assert torch.empty(0, device="tpu").set_(twin, 0, (4,)).tolist() == [10.0] * 4


def test_new_contents_from_the_host_while_a_trace_is_open() -> None:
    x = torch.ones(3, device="tpu")
    y = x + 1
    x.copy_(torch.tensor([5.0, 6, 7]))
    z = x + y
    x.resize_(5)
    assert z.tolist() == [7.0, 8, 9] and y.tolist() == [2.0] * 3 and x.tolist() == [5.0, 6, 7, 0, 0]


def test_many_unread_updates() -> None:
    x, total = torch.zeros(8, device="tpu"), torch.zeros((), device="tpu")
    for i in range(2500):
        x.add_(1)
        total = total + i
    assert x.tolist() == [2500.0] * 8 and total.item() == sum(range(2500))


def test_threads_share_a_trace() -> None:
    def work(i: int) -> None:
        with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE):  # type: ignore[attr-defined]
            x = torch.full((4,), float(i), device="tpu")
            for k in range(5):
                x = (x + k) * 1.5
                x[1:].sub_(0.5)
        results[i] = x

    results: dict[int, torch.Tensor] = {}
    threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in results.items():
        right = torch.full((4,), float(i))
        for k in range(5):
            right = (right + k) * 1.5
            right[1:].sub_(0.5)
        torch.testing.assert_close(x.cpu(), right)


def test_an_interrupted_cut_is_finished_later(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(4, device="tpu")
    y = x + 1
    y.mul_(3)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finish, "_last_uses", interrupted)
        patch.setattr(finish, "run_fused", interrupted)
        with pytest.raises(KeyboardInterrupt):
            y.sum().item()
    assert tensors.buffer_of(y).array is None
    assert (y + x).tolist() == [7.0] * 4
