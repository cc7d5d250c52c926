"""Sizes that change: symbols in the graph, one program for each size, never a wrong value. Goldens: eager, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

import tpu_lab  # noqa: F401
from tpu_lab.device.graph import program
from tpu_lab.record import Run
from tpu_lab.recording.compile_watch import CompileWatch
from tpu_lab.recording.recorder import Recorder


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def assert_same(function: Any, calls: list[tuple[torch.Tensor, ...]], **options: Any) -> Run:
    """Runs the calls compiled on the device and plainly on the CPU; the results have to agree."""
    compiled, recorder = torch.compile(function, backend="tpu", **options), Recorder()
    with recorder, CompileWatch(recorder):
        found = [compiled(*(x.to("tpu") for x in call)) for call in calls]
    for call, result in zip(calls, found, strict=True):
        torch.testing.assert_close(result, function(*call), check_device=False)
    return recorder.run


def rows(sizes: range) -> list[tuple[torch.Tensor, ...]]:
    return [(torch.arange(size * 8.0).view(size, 8) / 50,) for size in sizes]


def normed(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x @ x.mT, (x.shape[0],)).softmax(0)


def test_dynamic_is_one_graph_with_a_program_for_each_size() -> None:
    run = assert_same(normed, rows(range(2, 8)), dynamic=True)
    assert [(g.runs, g.programs, g.sizes) for g in run.graphs] == [(6, 6, "exact")] and not run.recompiles


def test_by_default_the_second_size_makes_it_dynamic() -> None:
    run = assert_same(normed, rows(range(2, 8)))
    assert [(g.runs, g.sizes) for g in run.graphs] == [(1, "static"), (5, "exact")]
    assert [(r.reason, r.old, r.new) for r in run.recompiles] == [("shape", "2", "3")]


def test_static_makes_a_graph_for_each_size() -> None:
    run = assert_same(normed, rows(range(2, 5)), dynamic=False)
    assert [g.sizes for g in run.graphs] == ["static"] * 3 and len(run.recompiles) == 2


def test_a_marked_dimension() -> None:
    calls = rows(range(3, 7))
    compiled = torch.compile(normed, backend="tpu")
    first = calls[0][0].to("tpu")
    torch._dynamo.mark_dynamic(first, 0)
    compiled(first)
    recorder = Recorder()
    with recorder, CompileWatch(recorder):
        found = [compiled(call[0].to("tpu")) for call in calls]
    assert not recorder.run.recompiles
    torch.testing.assert_close(found, [normed(*call) for call in calls], check_device=False)


def attend(q: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ keys.mT / 8, -1) @ keys


def test_a_growing_sequence_with_gradients() -> None:
    def gradient(function: Any, device: str) -> torch.Tensor:
        q = torch.ones(1, 8, device=device, requires_grad=True)
        for size in range(2, 6):
            function(q, (torch.arange(size * 8.0).view(size, 8) / 50).to(device)).square().sum().backward()
        assert q.grad is not None
        return q.grad.cpu()

    torch.testing.assert_close(gradient(torch.compile(attend, backend="tpu", dynamic=True), "tpu"), gradient(attend, "cpu"))


def picked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x[x > 0]
    return y * 2, y.sum()


@pytest.mark.parametrize("captured", [False, True])
def test_sizes_that_depend_on_values(captured: bool) -> None:
    calls = [(torch.arange(size) - 3.0,) for size in range(4, 9)]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=captured, capture_scalar_outputs=captured):
        run = assert_same(picked, calls)
    assert {b.reason for b in run.graph_breaks} == {"dynamic_size"}
    assert all(b.uncompiled == captured for b in run.graph_breaks)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.arange(x.shape[0], device=x.device)[:, None],
        lambda x: torch.arange(0, x.shape[0] * 2, 2, device=x.device),
        lambda x: torch.linspace(0, 1, x.shape[0], device=x.device) * x[:, 0],
        lambda x: torch.eye(x.shape[0], device=x.device) @ x,
        lambda x: torch.zeros(x.shape[0] + 1, device=x.device) + x.shape[0],
        lambda x: x.repeat_interleave(2, 0)[: x.shape[0]],
        lambda x: torch.cat([x, x.new_ones(x.shape[0] // 2, 8)]),
        lambda x: x.unfold(0, 2, 1).sum(-1),
        lambda x: functional.pad(x, (0, x.shape[0])),
        lambda x: x.tril(x.shape[0] // 2),
        lambda x: x / x.shape[0] + x.shape[0] ** 0.5,
    ],
)
def test_sizes_as_numbers(function: Any) -> None:
    assert_same(function, rows(range(3, 5)), dynamic=True)


def test_numbers_of_programs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_PROGRAMS", 3)
    run = assert_same(lambda x: x + 1, rows(range(2, 9)), dynamic=True)
    assert run.graphs[0].programs == 3
