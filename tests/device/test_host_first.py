"""Shapes that keep changing: first compiled, then run by torch's CPU kernel until a program pays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import host_first, program_cache
from tpu_lab.recording.recorder import Recorder

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(host_first, "_families", {})
    monkeypatch.setattr(host_first, "_seen", {})
    program_cache.clear()
    yield
    host_first.finish()


def kinds(sizes: range, times: int = 1) -> list[str]:
    """How `x * 1.5` ran on each size."""
    inputs = [torch.ones(n).to("tpu") for n in sizes]
    with Recorder() as recorder:
        for x in inputs:
            for _ in range(times):
                assert (x * 1.5).cpu().tolist() == [1.5] * len(x)
    run = recorder.run
    return [run.programs[op.program].kind for op in run.ops if run.programs[op.program].op == "aten.mul.Tensor"]


def test_the_first_shapes_of_a_family_compile_and_the_next_run_on_the_host() -> None:
    assert kinds(range(1, 11)) == ["xla"] * host_first.COMPILED_AT_ONCE + ["host"] * 4


def test_a_shape_that_comes_back_gets_a_program() -> None:
    kinds(range(1, 7))
    assert kinds(range(20, 21), host_first.SIGHTINGS) == ["host"] * host_first.SIGHTINGS
    host_first.finish()
    assert kinds(range(20, 21)) == ["xla"]


def test_another_dtype_is_another_family() -> None:
    kinds(range(1, 9))
    x = torch.ones(3, dtype=torch.float64).to("tpu")
    with Recorder() as recorder:
        x * 1.5
    assert [p.kind for p in recorder.run.programs if p.op == "aten.mul.Tensor"] == ["xla"]


def test_host_kernels_write_in_place_and_into_views() -> None:
    for n in range(1, 12):
        x = torch.zeros(2, n).to("tpu")
        x[1].add_(n)
        assert x.cpu().tolist() == [[0] * n, [n] * n]


@pytest.mark.parametrize("op", [aten.bernoulli.default, aten.index_select.default, aten.native_dropout.default], ids=str)
def test_random_operators_and_those_with_an_index_check_never_run_on_the_host(op: torch._ops.OpOverload) -> None:
    from tpu_lab.device.plan import plan_for

    assert not host_first.can_run_on_host(plan_for(op))
    assert host_first.can_run_on_host(plan_for(aten.mul.Tensor))


def test_what_does_not_fit_is_refused_on_the_host_too() -> None:
    for n in range(3, 12):
        torch.ones(n, device="tpu")
    before = torch.tpu.get_memory_limit()  # type: ignore[attr-defined]
    torch.tpu.set_memory_limit(torch.tpu.memory_allocated() + 1000)  # type: ignore[attr-defined]
    try:
        with pytest.raises(torch.OutOfMemoryError, match="tpu out of memory"):
            torch.ones(1001, device="tpu")
        torch.ones(101, device="tpu")
    finally:
        torch.tpu.set_memory_limit(before)  # type: ignore[attr-defined]
