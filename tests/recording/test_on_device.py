"""The recorder on the real device `tpu`: autograd runs backward on a thread of its own there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import program_cache
from tpu_lab.record import Run
from tpu_lab.recording.recorder import Recorder
from tpu_lab.views import sentences
from tpu_lab.xla import executable_store


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


def test_what_the_run_copies_in_or_fills_in_place_was_made_by_it() -> None:
    host = torch.ones(300, 40, dtype=torch.float64)
    with Recorder() as recorder:
        data = host.to("tpu", torch.float32)
        listed = torch.tensor([1.0, 2.0, 3.0], device="tpu")
        layer = nn.Linear(40, 20, device="tpu")
        layer(data)
    run = recorder.run
    assert all(t.op and t.location >= 0 for t in run.memory.largest)
    first = run.locations[run.ops.location[0]].line
    made = {(t.spec.dtype, t.spec.shape): run.locations[t.location].line - first for t in run.memory.largest if t.spec is not None}
    assert (made["float32", (300, 40)], made["float32", (3,)]) == (0, 1)
    assert ("float32", (20,)) in made and ("float32", (20, 40)) in made
    assert listed.nbytes == 12


def test_what_was_there_stays_from_before_when_the_run_writes_to_it() -> None:
    there = torch.zeros(300, 40, device="tpu")
    with Recorder() as recorder:
        there.copy_(torch.ones(300, 40))
        there.mul_(2)
    (tensor,) = recorder.run.memory.largest
    assert (tensor.op, tensor.location, tensor.nbytes) == ("", -1, 48000)


def test_an_operator_without_a_cost_model_has_no_flops() -> None:
    x = torch.eye(4, device="tpu")
    with Recorder() as recorder:
        torch.geqrf(x)
        x @ x
    flops = {program.op: program.flops for program in recorder.run.programs}
    assert flops["aten.geqrf.default"] is None and (flops["aten.mm.default"] or 0) > 0


def test_programs_from_disk_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(executable_store, "WORTH_S", 0.0)
    x = torch.ones(3, 41, device="tpu")
    runs = []
    for _ in range(2):
        program_cache.clear()
        with Recorder() as recorder:
            (x.exp() + x.sin()).sum()
        runs.append(recorder.run)
    assert [{p.cache for p in run.programs} for run in runs] == [{"miss"}, {"disk"}]
    cold, warm = (sentences.wall(run)[1].replace("\N{NO-BREAK SPACE}", " ") for run in runs)
    assert cold.endswith("compiling 4 programs") and warm.endswith("compiling 4 programs, 4 from disk")
