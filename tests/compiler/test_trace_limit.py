from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401
from tpu_lab.compiler.trace_limit import limited
from tpu_lab.record import Run
from tpu_lab.recording.compile_watch import CompileWatch
from tpu_lab.recording.recorder import Recorder


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def watched(compiled: Any, *args: Any, **limits: Any) -> tuple[Any, Run]:
    recorder = Recorder()
    with recorder, CompileWatch(recorder), limited(**limits):
        result = compiled(*args)
    return result, recorder.run


def body(x: torch.Tensor) -> torch.Tensor:
    return x * 1.5 + 1


def long_loop(x: torch.Tensor, rounds: int) -> torch.Tensor:
    for _ in range(rounds):
        x = body(x)
    return x


def test_a_long_trace_is_given_up_and_what_it_calls_is_compiled() -> None:
    x = torch.ones(3)
    found, run = watched(torch.compile(long_loop, backend="tpu"), x.to("tpu"), 60, nodes=50)
    torch.testing.assert_close(found.cpu(), long_loop(x, 60))
    (broken,) = run.graph_breaks
    assert (broken.reason, broken.uncompiled, run.locations[broken.stack[-2]].function) == ("too_long", True, "long_loop")
    assert "50 operators" in broken.explanation
    assert [(graph.function, graph.runs) for graph in run.graphs] == [("body", 60)]


def test_a_trace_that_takes_long_without_operators_is_given_up() -> None:
    def counting(x: torch.Tensor) -> torch.Tensor:
        total = 0
        for i in range(10**9):
            total += i % 7
            if total > 10**5:
                break
        return x + total

    start = time.monotonic()
    found, run = watched(torch.compile(counting, backend="tpu"), torch.zeros((), device="tpu"), seconds=0.2)
    assert time.monotonic() - start < 60
    assert float(found) > 10**5 and [b.reason for b in run.graph_breaks] == ["too_long"]


def test_fullgraph_is_not_limited_and_nothing_stays() -> None:
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    before = InstructionTranslatorBase.step
    found, run = watched(torch.compile(long_loop, backend="tpu", fullgraph=True), torch.ones(2, device="tpu"), 40, nodes=10)
    assert InstructionTranslatorBase.step is before
    assert not run.graph_breaks and run.graphs[0].nodes == 80
    torch.testing.assert_close(found.cpu(), long_loop(torch.ones(2), 40))
