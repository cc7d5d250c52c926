"""Tiers: what is unseen runs at once, what comes back is compiled, and nothing else is."""

from __future__ import annotations

import pytest
import torch

from tests.device.fuse.mode import deferring
from tpu_lab.device import host_first, modes, program_cache, tensors
from tpu_lab.device.fuse import clusters, finish, governor, loops


def step(x: torch.Tensor, number: float = 0.5) -> torch.Tensor:
    """A cluster of three calls on a shape that other tests do not use."""
    return (x * number + 1).tanh()


def is_deferred(x: torch.Tensor) -> bool:
    return tensors.buffer_of(x).array is None


def run(x: torch.Tensor, times: int, number: float = 0.5) -> float:
    total = 0.0
    for _ in range(times):
        total += step(x, number).sum().item()
    return total


def programs() -> int:
    return sum(s.state == "ready" for variants in clusters._seen.values() for s in variants.values())


def test_a_cluster_that_comes_back_is_compiled_and_then_deferred() -> None:
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        y = step(x)
        assert not is_deferred(y), "unseen: it runs at once"
        right = y.sum().item()
        run(x, clusters.SIGHTINGS - 1)
        assert programs() == 0
        run(x, 1)
        host_first.finish()
        assert programs() == 1
        y = step(x)
        assert is_deferred(y)
        assert y.sum().item() == pytest.approx(right)


def test_one_off_clusters_never_compile() -> None:
    with deferring("tiered"):
        for n in range(2, 12):
            x = torch.ones(3, 7, device="tpu")
            for _ in range(n):
                x = x + 1
            x.sum().item()
        host_first.finish()
        assert programs() == 0


def test_numbers_are_no_part_of_a_cluster() -> None:
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        run(x, clusters.SIGHTINGS + 1)
        host_first.finish()
        before = program_cache.compilations
        for k in range(5):
            y = step(x, k + 0.25)
            assert is_deferred(y)
            torch.testing.assert_close(y.cpu(), torch.full((3, 7), k + 1.25).tanh())
        assert program_cache.compilations == before


def test_what_begins_like_a_cluster_and_is_another_runs_call_by_call() -> None:
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        run(x, clusters.SIGHTINGS + 1)
        host_first.finish()
        y = x * 0.5 + 1
        assert is_deferred(y)
        z = y.sin()
        assert not is_deferred(y) and not is_deferred(z)
        torch.testing.assert_close(z.cpu(), torch.full((3, 7), 1.5).sin())


def test_other_results_alive_are_another_program() -> None:
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        run(x, clusters.SIGHTINGS + 1)
        host_first.finish()
        y = x * 0.5
        z = (y + 1).tanh()
        assert z.sum().item() == pytest.approx(21 * torch.tensor(1.5).tanh().item()) and y.sum().item() == 10.5


def test_a_cluster_that_cannot_be_compiled_goes_on_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(clusters, "build", fails)
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        first = run(x, 1)
        assert run(x, 9) == pytest.approx(9 * first)
        host_first.finish()
        assert programs() == 0 and not clusters.root.next


def test_the_end_of_backward_is_a_cut() -> None:
    with deferring("replay"):
        w = torch.ones(3, 7, device="tpu", requires_grad=True)
        loss = (w * 2).sum()
        assert is_deferred(loss)
        loss.backward()
        assert w.grad is not None and not is_deferred(w.grad) and len(finish.current.trace) == 0


def test_switching_the_mode_is_a_cut() -> None:
    with deferring("replay"):
        y = torch.ones(3, 7, device="tpu") + 1
        assert is_deferred(y)
        with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER):  # type: ignore[attr-defined]
            assert not is_deferred(y) and not is_deferred(y + 1)
        assert is_deferred(y + 1)


def test_a_loop_without_reads_is_cut_after_whole_turns() -> None:
    calls = [object(), object(), object()]
    assert loops.period(calls * 4) == 3 and loops.period([calls[0]] * 5) == 1
    assert loops.period(calls) == loops.period([*calls, calls[0]]) == loops.period([]) == 0
    assert loops.next_limit([object(), *calls * 9]) == loops.GRAPH_LIMIT and loops.next_limit(calls * 9) == 126
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        for _ in range(1000):
            x = (x * 0.5 + 0.25).tanh()
        assert finish.current.limit == 126
        for _ in range(42 * (clusters.SIGHTINGS + 1)):
            x = (x * 0.5 + 0.25).tanh()
        host_first.finish()
        assert programs() == 1


def test_the_governor_puts_fences_into_long_chains_of_costly_functions_on_large_arrays() -> None:
    def chain(n: int) -> int:
        x = torch.ones(n, device="tpu")
        for _ in range(4):
            x = torch.tanh(x) * 0.5
        steps = [node.step for node, _ in finish.current.trace.log]
        x.sum().item()
        return len(governor.fences(steps))

    with deferring("replay"):
        assert chain(1 << 17) == 2 and chain(8) == 0
    with deferring("always"):
        x = y = torch.linspace(-1, 1, 1 << 17).to("tpu")
        right = x.cpu()
        for _ in range(5):
            y, right = torch.tanh(y) + x, torch.tanh(right) + x.cpu()
        torch.testing.assert_close(y.cpu(), right)


def test_a_program_that_is_slower_than_its_calls_goes() -> None:
    record = governor.Record()
    record.ran_apart(1000)
    record.ran_apart(0)
    assert not any(record.ran_fused(1040) for _ in range(20))
    slow = governor.Record()
    slow.ran_apart(1000)
    assert [slow.ran_fused(1100) for _ in range(9)] == [False] * 7 + [True, False]
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        right = run(x, clusters.SIGHTINGS + 1) / (clusters.SIGHTINGS + 1)
        host_first.finish()
        assert is_deferred(step(x))
        x.sum().item()
        for variants in clusters._seen.values():
            for sighting in variants.values():
                sighting.record.apart.clear()
                sighting.record.ran_apart(1)
        assert run(x, 10) == pytest.approx(10 * right)
        assert programs() == 0 and not clusters.root.next and not is_deferred(step(x))


def test_a_loop_of_which_nothing_comes_is_left_alone_and_looked_at_again() -> None:
    patience = governor.Patience()
    assert [patience.look(True, "item") for _ in range(governor.REST_AFTER)] == [False] * (governor.REST_AFTER - 1) + [True]
    assert not patience.look(False, "item") and not any(patience.look(True, "autograd_post_backward") for _ in range(1000))
    with deferring("tiered"):
        assert modes.fusing
        x = torch.ones(3, 7, device="tpu")
        for _ in range(governor.REST_AFTER + 2):
            assert (x + 0.5)[0, 0].item() == 1.5  # too short for a program
        assert not modes.fusing and modes.resting
        for _ in range(governor.REST_READS):
            x.sum().item()
        assert modes.fusing
