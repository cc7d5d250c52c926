"""CPU tensors that a compiled graph changes from CPU tensors alone: the host computes them, and nothing is waited for."""

from __future__ import annotations

from typing import Any

import torch

import tpu_lab  # noqa: F401
from tpu_lab.device import events
from tpu_lab.device.graph import program as graphs


class Programs:
    """Takes the calls of compiled graphs and notes their programs."""

    def __init__(self) -> None:
        self.seen: list[graphs.GraphProgram] = []

    def called(self, program: graphs.GraphProgram, inputs: list[Any]) -> list[Any]:
        self.seen.append(program)
        return program.run(inputs)


def programs_of(function: Any, *args: Any, times: int = 1) -> list[graphs.GraphProgram]:
    torch.compiler.reset()
    graphs.tap = listener = Programs()
    try:
        run = torch.compile(function, backend="tpu")
        for _ in range(times):
            run(*args)
    finally:
        graphs.tap = None
    return listener.seen


def test_a_counter_on_the_cpu_is_counted_there() -> None:
    x, counter = torch.arange(3.0, device="tpu"), torch.zeros(())

    def step(x: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
        counter.add_(1)
        return x * counter

    torch.compiler.reset()
    run = torch.compile(step, backend="tpu")
    kept = [run(x, counter).tolist() for _ in range(3)]
    assert kept == [[0, 1, 2], [0, 2, 4], [0, 3, 6]] and counter.item() == 3
    (program,) = programs_of(step, x, counter)
    assert program.lowered.changes == () and counter.item() == 4


def test_what_needs_the_device_is_made_there() -> None:
    x, total = torch.arange(3.0, device="tpu"), torch.ones(())

    def step(x: torch.Tensor, total: torch.Tensor) -> None:
        total.copy_(x.sum() + total)

    (program,) = programs_of(step, x, total)
    assert len(program.lowered.changes) == 1 and total.item() == 4


def test_one_changed_from_another_and_a_vector() -> None:
    x, a, b = torch.ones(2, device="tpu"), torch.zeros(()), torch.zeros(4)

    def step(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        b.add_(a + 2)
        a.copy_(b.sum())
        return x + a

    (program,) = programs_of(step, x, a, b)
    assert program.lowered.changes == () and a.item() == 8 and b.tolist() == [2, 2, 2, 2]


class Syncs:
    """Counts how often the host waits for the device."""

    blocking = False

    def __init__(self) -> None:
        self.count = 0

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None:
        self.count += 1

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


def test_a_compiled_adam_reads_nothing_from_the_device() -> None:
    parameters = [torch.nn.Parameter(torch.ones(3, device="tpu")) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = torch.ones(3, device="tpu")
    optimizer = torch.optim.Adam(parameters)
    torch.compiler.reset()
    step = torch.compile(optimizer.step, backend="tpu")
    step()
    with events.observe(syncs := Syncs()):
        for _ in range(3):
            step()
    assert syncs.count == 0
    state = optimizer.state_dict()["state"]
    assert [(float(one["step"]), one["step"].device.type) for one in state.values()] == [(4, "cpu")] * 3
