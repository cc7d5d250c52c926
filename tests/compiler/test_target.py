"""`compile_for`: from a module or function to a target's program, traced on twins, with ids that lead back to the source."""

from __future__ import annotations

import re
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tpu_lab
from tpu_lab.compiler import source_ops, target
from tpu_lab.compiler.twins import Twins
from tpu_lab.errors import OptionError
from tpu_lab.record.program import Program
from tpu_lab.record.targets import target_named
from tpu_lab.xla import target_compile

needs_libtpu = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(128, 128), torch.nn.Linear(128, 128)])
        self.norm = torch.nn.LayerNorm(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.norm(x) + torch.arange(128)


def lower(function: Any, *example: Any, on: str = "v5e") -> target.Lowered:
    return target.lower(function, example, {}, target_named(on), {})


def ops(lowered: target.Lowered) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for op in lowered.traced.ops:
        found.setdefault(op.phase, Counter())[op.op] += 1
    return found


def test_ops_carry_line_function_and_module() -> None:
    lowered = lower(Net(), torch.randn(32, 128))
    gelu = [op for op in lowered.traced.ops if op.op == "aten.gelu.default"]
    text = Path(__file__).read_text().splitlines()
    assert len(gelu) == 2 and all("F.gelu" in text[op.line - 1] and op.function == "forward" for op in gelu)
    assert all(Path(op.file).name == "test_target.py" for op in lowered.traced.ops)
    modules = [op.module for op in lowered.traced.ops if op.op == "aten.addmm.default"]
    assert modules == ["layers.0", "layers.1"]
    assert set(lowered.traced.labels.values()) >= {"x", "layers.0.weight", "layers.1.bias", "norm.weight"}


def test_a_module_of_modules_names_the_line_that_asked() -> None:
    lowered = lower(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()), torch.randn(4, 8))
    text = Path(__file__).read_text().splitlines()
    for op in lowered.traced.ops:
        assert Path(op.file).name == "test_target.py" and "target.lower(function" in text[op.line - 1]
    assert [op.module for op in lowered.traced.ops if op.op in ("aten.addmm.default", "aten.tanh.default")] == ["0", "1"]


def test_a_step_holds_forward_backward_and_optimizer_and_moves_nothing() -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    before = [p.detach().clone() for p in net.parameters()]

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    lowered = lower(step, torch.randn(32, 128))
    phases = ops(lowered)
    assert phases["forward"]["aten.addmm.default"] == 2
    assert phases["backward"]["aten.gelu_backward.default"] == 2
    assert any("add" in op for op in phases["optimizer"])
    by_id = {op.id: op for op in lowered.traced.ops}
    for op in lowered.traced.ops:
        if op.op == "aten.gelu_backward.default":
            assert by_id[op.forward].op == "aten.gelu.default" and by_id[op.forward].line == op.line
        if op.phase == "optimizer":
            assert Path(op.file).name == "test_target.py" and op.function == "step"
    assert all(torch.equal(a, b) and a.device.type == "cpu" for a, b in zip(before, net.parameters(), strict=True))
    assert all(p.grad is None for p in net.parameters()) and not optimizer.state
    assert sum(name.endswith(".grad") for name in lowered.traced.labels.values()) == 0, "gradients are made inside the program"


def test_ids_are_the_nodes_numbers_and_unique() -> None:
    lowered = lower(Net(), torch.randn(32, 128))
    numbers = [int(op.id[1:].partition(":")[0]) for op in lowered.traced.ops]
    assert numbers == sorted(set(numbers)) and all(op.id.endswith(op.op.removesuffix(".default")) for op in lowered.traced.ops)
    for op in lowered.traced.ops:
        if op.op == "aten.addmm.default":
            assert op.id.encode() in lowered.bytecode


@pytest.mark.parametrize("device", ["cpu", "meta", "tpu"])
def test_examples_may_be_on_any_device(device: str) -> None:
    lowered = lower(lambda x, y: torch.tanh(x) @ y, torch.empty(4, 8, device=device), torch.empty(8, 2, device=device))
    assert ops(lowered) == {"forward": Counter({"aten.tanh.default": 1, "aten.mm.default": 1})}
    assert lowered.traced.labels == {0: "x", 1: "y"}


def test_a_model_larger_than_this_machine_is_traced() -> None:
    with torch.device("meta"):
        net = torch.nn.Linear(1 << 19, 1 << 19)
    held = torch.tpu.memory_allocated()
    assert lower(net, torch.empty(8, 1 << 19, device="meta")).bytecode
    assert torch.tpu.memory_allocated() == held


def test_a_large_training_step_takes_no_memory() -> None:
    with torch.device("meta"):
        net = torch.nn.Linear(20_000, 20_000)
    optimizer = torch.optim.AdamW(net.parameters())

    def step(x: torch.Tensor) -> None:
        net(x).square().mean().backward()
        optimizer.step()

    lower(lambda x: x.sin(), torch.empty(2))  # what the first trace imports
    held, before = torch.tpu.memory_allocated(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lowered = lower(step, torch.empty(8, 20_000, device="meta"))
    assert torch.tpu.memory_allocated() == held
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 800_000, "kB; the four copies of the weight would be 6.4 GB"
    labels = set(lowered.traced.labels.values())
    assert {"net.weight", "optimizer.state.0.exp_avg"} <= labels


def test_random_operators_and_written_inputs() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return F.dropout(x, 0.5)

    lowered = lower(step, torch.randn(8, 8))
    assert lowered.traced.labels == {0: "x", 1: "random state"}
    assert b"n" in lowered.bytecode


def test_twins_share_what_the_originals_share() -> None:
    net = torch.nn.Linear(4, 4)
    holder = {"a": net.weight, "row": net.weight.detach()[1], "again": [net.weight], "other": torch.zeros(4)}
    twin = Twins().of(holder)
    assert twin["a"] is twin["again"][0] and isinstance(twin["a"], torch.nn.Parameter) and twin["a"].requires_grad
    assert twin["row"].untyped_storage().data_ptr() == twin["a"].untyped_storage().data_ptr() and twin["row"].storage_offset() == 4
    assert twin["a"].device.type == "tpu" and net.weight.device.type == "cpu"


def test_what_cannot_be_copied_is_refused() -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.weight = torch.zeros(2)

        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("no")

    held = Stubborn()
    with pytest.raises(OptionError, match="Stubborn holds tensors and cannot be copied"):
        lower(lambda x: x + held.weight, torch.zeros(2))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("L['self']._modules['layers']._modules['0']", "layers.0"),
        ("L['callee'].layers.0.mlp", "layers.0.mlp"),
        ("L['callee']", ""),
        ("G['net']._modules['a'].b[2]", "a.b.2"),
    ],
)
def test_module_paths(text: str, path: str) -> None:
    assert source_ops.module_path(text) == path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": "v9"}, "v5e"),
        ({"mode": "fuse"}, "compile or eager"),
        ({"effort": "much"}, "full or quick"),
    ],
)
def test_wrong_words_are_refused(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        tpu_lab.compile_for(torch.tanh, torch.zeros(2), **arguments)


def test_a_function_without_operators_is_refused() -> None:
    with pytest.raises(OptionError, match="holds no operator"):
        lower(lambda x: x, torch.zeros(2))


@needs_libtpu
@pytest.mark.parametrize("name", ["v5e", "v6e"])
def test_every_kernel_of_a_tpu_program_leads_to_a_line(name: str) -> None:
    program = tpu_lab.compile_for(Net(), torch.randn(64, 128), target=name, effort="quick")
    assert program.outcome == "ok" and program.target.name == name
    assert program.mapped >= 0.99 and all(k.lines for k in program.kernels)
    assert Program.from_json(program.to_json()) == program
    carried = {op for k in program.kernels for op in k.ops}
    assert {op.id for op in program.ops if op.op in ("aten.addmm.default", "aten.gelu.default")} <= carried
    assert all(program.op(op).op in ("aten.t.default", "aten.arange.start_step") for op in program.lost_ops)


@needs_libtpu
def test_eager_on_a_target_has_more_kernels_and_more_traffic() -> None:
    fused, eager = (tpu_lab.compile_for(Net(), torch.randn(64, 128), target="v5e", effort="quick", mode=mode) for mode in ("compile", "eager"))
    assert len(eager.kernels) > 2 * len(fused.kernels) and eager.bytes > fused.bytes and eager.time_s > fused.time_s
    assert not any(s.space == "VMEM" for s in eager.memory.spaces)


@needs_libtpu
def test_a_program_that_does_not_fit_is_an_answer() -> None:
    def grow(x: torch.Tensor) -> torch.Tensor:
        wide = x @ x.T
        return (wide @ wide).softmax(-1).sum(-1)

    program = tpu_lab.compile_for(grow, torch.empty(131072, 4096, dtype=torch.bfloat16, device="meta"), target="v5e", effort="quick")
    assert program.outcome == "out_of_memory" and "RESOURCE_EXHAUSTED" in program.message
    space = program.memory.space("HBM")
    assert space is not None and space.over > 40 << 30
    assert program.memory.buffers[space.at_peak[0]].bytes == 131072**2 * 2
    needed, available = (float(n) for n in re.findall(r"\(([\d.]+)G\)", program.message))
    assert space.reserved / 2**30 == pytest.approx(needed, abs=0.006) and space.capacity / 2**30 == pytest.approx(available, abs=0.006)


@needs_libtpu
def test_a_program_the_target_refuses_is_an_answer() -> None:
    program = tpu_lab.compile_for(
        torch.matmul, torch.zeros(8, 8, dtype=torch.long), torch.zeros(8, 8, dtype=torch.long), target="v5e", effort="quick"
    )
    assert program.outcome == "refused" and "UNIMPLEMENTED" in program.message
    assert [note.kind for note in program.notes] == ["unsupported"]


@needs_libtpu
def test_a_dtype_the_hardware_has_not_is_named() -> None:
    program = tpu_lab.compile_for(torch.add, torch.zeros(8, dtype=torch.double), torch.zeros(8, dtype=torch.double), target="v5e", effort="quick")
    assert program.outcome == "ok" and [note.kind for note in program.notes] == ["emulated"]


@needs_libtpu
def test_several_chips_talk_to_each_other() -> None:
    program = tpu_lab.compile_for(
        torch.matmul, torch.zeros(256, 512), torch.zeros(512, 256), target="v6e:2x2", effort="quick", sharding={"input 0": (1, 4), "input 1": (4, 1)}
    )
    assert program.outcome == "ok" and any("all-reduce" in k.name or "reduce-scatter" in k.name for k in program.collectives)
    with pytest.raises(OptionError, match="divides the 4 devices"):
        tpu_lab.compile_for(torch.matmul, torch.zeros(256, 512), torch.zeros(512, 256), target="v6e:2x2", sharding={"input 0": (3, 1)})
