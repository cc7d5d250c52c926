from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tpu_lab.errors import OptionError
from tpu_lab.record import Run
from tpu_lab.record.ops import NOT_BACKWARD
from tpu_lab.recording.dispatch_recorder import DispatchRecorder


def named(run: Run, name: str) -> list[int]:
    return [op.id for op in run.ops if run.programs[op.program].op.startswith(f"aten.{name}.")]


def module_of(run: Run, op: int) -> str:
    index = run.ops[op].module
    return run.modules[index].path if index >= 0 else ""


def text_of(run: Run, op: int) -> str:
    place = run.locations[run.ops[op].location]
    return next(line.text for line in run.sources[place.source].lines if line.number == place.line).strip()


@pytest.fixture
def training() -> Run:
    """One step of an MLP."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    with DispatchRecorder("cpu", name="mlp") as recorder:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return recorder.run


def test_forward_ops_have_line_and_module(training: Run) -> None:
    first, second = named(training, "addmm")
    assert text_of(training, first) == "loss = F.cross_entropy(net(x), y)"
    assert (module_of(training, first), module_of(training, second)) == ("Sequential.0", "Sequential.2")
    assert module_of(training, named(training, "gelu")[0]) == "Sequential.1"
    assert (training.device, training.target, training.name) == ("cpu", "PyTorch CPU", "mlp")


def test_backward_ops_belong_to_their_forward_ops(training: Run) -> None:
    def forward(name: str) -> list[int]:
        return [training.ops[op].forward for op in named(training, name)]

    first, second = named(training, "addmm")
    assert forward("gelu_backward") == named(training, "gelu")
    assert forward("nll_loss_backward") == named(training, "nll_loss_forward")
    assert forward("_log_softmax_backward_data") == named(training, "_log_softmax")
    assert forward("mm") == [second, second, first]
    assert [module_of(training, op) for op in named(training, "mm")] == ["Sequential.2", "Sequential.2", "Sequential.0"]
    assert {text_of(training, op) for op in named(training, "mm")} == {"loss.backward()"}


def test_the_optimizer_s_ops_are_no_backward_ops(training: Run) -> None:
    updates = [op.id for op in training.ops if text_of(training, op.id) == "optimizer.step()"]
    assert updates and all(training.ops[op].forward == NOT_BACKWARD and module_of(training, op) == "" for op in updates)


def test_types_flops_and_bytes(training: Run) -> None:
    program = training.programs[training.ops[named(training, "addmm")[0]].program]
    assert [spec.shape for spec in program.inputs] == [(128,), (32, 64), (64, 128)] and program.outputs[0].shape == (32, 128)
    assert program.flops == 2 * 32 * 64 * 128
    assert program.bytes == 4 * (128 + 32 * 64 + 64 * 128 + 32 * 128)
    views = [p for p in training.programs if p.op == "aten.t.default"]
    assert views and all(p.kind == "view" and p.bytes is None for p in views)
    assert training.totals.kernels == training.totals.ops - training.totals.views


def test_a_view_writes_no_new_storage(training: Run) -> None:
    for op in named(training, "t"):
        assert training.ops[op].writes == training.ops[op].reads


def test_memory_is_that_of_the_live_storages() -> None:
    weight = torch.zeros(1000)  # 4 kB
    with DispatchRecorder("cpu") as recorder:
        a = weight + 1
        b = a * 2
        del a
        c = b.sum()
        view = b[:10]
        del b, view
        weight + 1
    memory = recorder.run.memory
    assert c.item() == 2000
    assert (memory.start_bytes, memory.peak_bytes, memory.exact) == (4_000, 12_000, True)
    assert memory.end_bytes == 4_000 + 4
    peak = recorder.run.ops[memory.peak_op]
    assert recorder.run.programs[peak.program].op == "aten.mul.Tensor"


def test_storages_at_one_address_are_told_apart() -> None:
    with DispatchRecorder("cpu") as recorder:
        for _ in range(20):
            torch.zeros(50_000)
    storages = recorder.run.storages
    assert len(storages.nbytes) == 20 and all(died >= 0 for died in storages.died)
    assert recorder.run.memory.peak_bytes == 200_000


def test_a_transformer_layer_in_a_function() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)

    def step(x: torch.Tensor) -> torch.Tensor:
        return layer(x).square().mean()  # type: ignore[no-any-return]

    x = torch.randn(2, 5, 32, requires_grad=True)
    with DispatchRecorder("cpu") as recorder:
        step(x).backward()
    run = recorder.run
    modules = {module_of(run, op.id) for op in run.ops}
    assert {"TransformerEncoderLayer.self_attn", "TransformerEncoderLayer.linear1", "TransformerEncoderLayer.norm2"} <= modules
    backward = [op for op in run.ops if op.forward >= 0]
    assert len(backward) > 20
    assert all(run.ops[op.forward].forward == NOT_BACKWARD for op in backward)
    assert all(op.module == run.ops[op.forward].module for op in backward)
    for op in named(run, "native_layer_norm_backward"):
        assert run.programs[run.ops[run.ops[op].forward].program].op == "aten.native_layer_norm.default"
    assert run.locations[run.ops[0].location].function.endswith("step")
    inner, outer = ((c.time_ns, c.backward_ns) for c in sorted(run.lines, key=lambda c: c.line)[:2])
    assert inner[1] > 0 and outer[1] == 0


def test_a_graph_made_before_the_block_is_not_guessed_at() -> None:
    x = torch.ones(4, requires_grad=True)
    y = (x * 3).exp()
    with DispatchRecorder("cpu") as recorder:
        torch.ones(4) + 1
        y.sum().backward()
    run = recorder.run
    for op in named(run, "mul"):
        assert run.ops[op].forward == -1


def test_an_op_that_raises_is_recorded_with_its_line() -> None:
    recorder = DispatchRecorder("cpu")
    with pytest.raises(RuntimeError, match="shapes"), recorder:
        torch.ones(2, 3) @ torch.ones(2, 3)
    failure = recorder.run.failures[0]
    assert (failure.op, failure.kind) == ("aten.mm.default", "RuntimeError")
    assert recorder.run.totals.failures == 1
    assert text_of_place(recorder.run, failure.location) == "torch.ones(2, 3) @ torch.ones(2, 3)"


def text_of_place(run: Run, location: int) -> str:
    place = run.locations[location]
    return next(line.text for line in run.sources[place.source].lines if line.number == place.line).strip()


def test_tensors_without_a_storage_do_no_harm() -> None:
    with DispatchRecorder("cpu") as recorder:
        sparse = torch.eye(3).to_sparse()
        dense = (sparse * 2).to_dense()
    assert dense.sum() == 6 and len(recorder.run.ops) > 2


def test_meta_tensors_are_another_device() -> None:
    with DispatchRecorder("cpu") as recorder:
        torch.ones(3, device="meta") + 1
    assert len(recorder.run.ops) == 0
    with DispatchRecorder("meta", blocking=False) as recorder:
        torch.ones(3, device="meta") + 1
    assert recorder.run.programs[recorder.run.ops[-1].program].op == "aten.add.Tensor"


def test_values_do_not_change() -> None:
    torch.manual_seed(3)
    plain = F.gelu(torch.randn(20, 20) @ torch.randn(20, 20))
    torch.manual_seed(3)
    with DispatchRecorder("cpu"):
        recorded = F.gelu(torch.randn(20, 20) @ torch.randn(20, 20))
    assert torch.equal(plain, recorded)


def test_an_unknown_device_type_says_what_is_accepted() -> None:
    with pytest.raises(OptionError, match="'gpuu' is not a device type"):
        DispatchRecorder("gpuu")
