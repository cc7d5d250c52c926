"""Tiers: what is unseen runs at once, what comes back is compiled, and nothing else is."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.device.fuse.mode import deferring
from tpu_lab.device import host_first, modes, program_cache, tensors
from tpu_lab.device.fuse import clusters, finish, governor, loops, pace


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


class Clock:
    """A loop of which each turn takes `fused` ns with programs, `apart` ns without."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fused: int, apart: int) -> None:
        self.now, self.fused, self.apart = 0, fused, apart
        monkeypatch.setattr(pace.time, "perf_counter_ns", lambda: self.now)

    def turns(self, tried: pace.Pace, count: int) -> int:
        """Makes turns; returns in how many of them operators were deferred."""
        fused = 0
        for _ in range(count):
            fused += modes.fusing
            self.now += self.fused if modes.fusing else self.apart
            if modes.resting:
                modes.a_read()
            tried.read()
        return fused


def test_a_loop_goes_on_with_what_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = 2 * pace.PAIRS * (pace.READS + 1)
    with deferring("tiered"):
        clock, tried = Clock(monkeypatch, fused=20_000_000, apart=30_000_000), pace.Pace()
        clock.turns(tried, trial + 2)
        assert clock.turns(tried, 200) == 200
    with deferring("tiered"):
        clock, tried = Clock(monkeypatch, fused=30_000_000, apart=20_000_000), pace.Pace()
        clock.turns(tried, trial + 2)
        assert clock.turns(tried, 200) == 0 and modes.resting
        assert clock.turns(tried, 20_000) < 1_000


def test_no_trial_while_programs_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with deferring("tiered"):
        clock, tried = Clock(monkeypatch, fused=30_000_000, apart=20_000_000), pace.Pace()
        monkeypatch.setattr(clusters, "compiling", 1)
        assert clock.turns(tried, 500) == 500


def test_programs_that_lose_every_trial_are_dropped() -> None:
    with deferring("tiered"):
        x = torch.ones(3, 7, device="tpu")
        right = run(x, clusters.SIGHTINGS + 1) / (clusters.SIGHTINGS + 1)
        host_first.finish()
        assert is_deferred(step(x))
        x.sum().item()
        start = clusters.now()
        clusters.drop(start)
        assert programs() == 1, "it did not run since"
        run(x, 1)
        clusters.drop(start)
        assert programs() == 0 and not clusters.root.next and not is_deferred(step(x))
        assert run(x, 10) == pytest.approx(10 * right) and clusters._seen and programs() == 0


def test_a_cluster_ends_with_enough_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governor, "rules", dataclasses.replace(governor.RULES["XLA:CPU"], launch=2 * 2 * 64**3))
    with deferring("replay"):
        x = torch.ones(64, 64, device="tpu")
        y = x @ x
        assert is_deferred(y)
        y = y @ x
        assert not is_deferred(y)
        assert is_deferred(y @ x)


def test_a_call_whose_shapes_keep_changing_is_in_no_cluster() -> None:
    with deferring("tiered"):
        x = torch.ones(2, 3, device="tpu")
        rows = x
        for _ in range(governor.rules.shapes + 2):
            rows = torch.cat([rows, x * 2 + 1 - 3])
            host_first.finish()
        torch.testing.assert_close(rows.cpu()[2:], torch.zeros(len(rows) - 2, 3))
        for _ in range(clusters.SIGHTINGS):
            torch.cat([rows, x * 2 + 1 - 3])
        host_first.finish()
        rows.cpu()
        between = x * 2 + 1 - 3
        assert is_deferred(between)
        longer = torch.cat([rows, between])
        assert not is_deferred(between) and not is_deferred(longer)
        assert all("cat" not in step[0].info.op for steps in clusters._seen for step in steps)
        torch.testing.assert_close(longer.cpu()[-2:], torch.zeros(2, 3))


def test_a_cut_of_a_host_kernel_is_not_counted() -> None:
    with deferring("tiered"):
        for n in range(2, 3 + host_first.COMPILED_AT_ONCE):
            torch.ones(n, 5, device="tpu").sinh()
        x = torch.ones(50, 5, device="tpu")
        x.sum().item()
        clusters.forget()
        for _ in range(2):
            y = (x * 2 + 1 - 3).sinh()  # a host kernel at first
            assert (y * 2 + 1 - 1).sum().item() == 0
        assert all(len(steps) < 3 for steps in clusters._seen)


def test_a_loop_of_which_nothing_comes_is_left_alone_and_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "NANOSECONDS", 1 << 62)  # no trial, however slow the machine is
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
