"""The recorder on the real device `tpu`: autograd runs backward on a thread of its own there."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.record import Run
from tpu_lab.recording.recorder import Recorder


@pytest.fixture(scope="module")
def run() -> Run:
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("tpu")
    x, y = torch.ones(2, 8, device="tpu"), torch.tensor([0, 1], device="tpu")
    F.cross_entropy(net(x), y).backward()
    net.zero_grad(set_to_none=True)  # so that gradients are made anew below, not added to
    with Recorder() as recorder:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        loss.item()
    return recorder.run


def named(run: Run, name: str) -> list[int]:
    return [op.id for op in run.ops if run.programs[op.program].op.startswith(f"aten.{name}.")]


def test_backward_ops_are_linked_across_threads(run: Run) -> None:
    first, second = named(run, "addmm")
    assert [run.ops[op].forward for op in named(run, "gelu_backward")] == named(run, "gelu")
    assert {run.ops[op].forward for op in named(run, "mm")} == {first, second}
    threads = {run.ops[op].thread for op in named(run, "mm")}
    assert len(threads) == 1 and threads != {0} and run.ops[first].thread == 0
    assert [run.modules[run.ops[op].module].path for op in named(run, "gelu_backward")] == ["Sequential.1"]


def test_backward_ops_have_the_line_that_called_backward(run: Run) -> None:
    source = {line.number: line.text.strip() for line in run.sources[0].lines}
    assert {source[run.locations[run.ops[op].location].line] for op in named(run, "mm")} == {"loss.backward()"}


def test_reading_a_number_is_a_sync_at_its_line(run: Run) -> None:
    source = {line.number: line.text.strip() for line in run.sources[0].lines}
    item = [s for s in run.syncs if s.reason == "item"][-1]
    assert source[run.locations[item.location].line] == "loss.item()" and item.nbytes == 4


def test_memory_starts_with_what_was_there_and_ends_with_the_gradients(run: Run) -> None:
    weights = 4 * (8 * 16 + 16 + 16 * 4 + 4)
    assert run.memory.start_bytes >= weights
    assert run.memory.peak_bytes > run.memory.start_bytes
    made = {run.programs[run.ops[op].program].op for op in run.storages.made_by if op >= 0}
    assert "aten.addmm.default" in made
    gradients = [n for n, died, op in zip(run.storages.nbytes, run.storages.died, run.storages.made_by, strict=True) if died < 0 and op >= 0]
    assert 4 * 8 * 16 in gradients and 4 * 16 * 4 in gradients
