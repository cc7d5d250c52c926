"""`torch.compile(backend="tpu")` outside the lab. Goldens: eager, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tpu_lab
from tpu_lab.compiler import events
from tpu_lab.compiler.options import MODES, Options, read
from tpu_lab.errors import OptionError


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Graphs:
    """Counts the graphs of the backend and how often they ran."""

    def __init__(self) -> None:
        self.made: list[events.Captured] = []
        self.runs = 0

    def captured(self, graph: events.Captured) -> None:
        self.made.append(graph)

    def ran(self, graph: events.Captured) -> None:
        self.runs += 1


def turned(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin().t()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_modes_of_pytorch_are_taken(mode: str, fullgraph: bool) -> None:
    x = torch.arange(6.0).view(2, 3)
    found = torch.compile(turned, backend="tpu", mode=mode, fullgraph=fullgraph)(x.to("tpu"))
    torch.testing.assert_close(found.cpu(), turned(x))


@pytest.mark.parametrize(
    "compiled",
    [
        lambda f: torch.compile(f),
        lambda f: torch.compile(f, mode="max-autotune"),
        lambda f: torch.compile(dynamic=True)(f),
        lambda f: torch.compile(f, dynamic=False, fullgraph=True),
    ],
    ids=["plain", "mode", "decorator", "static"],
)
def test_without_a_backend_tensors_on_tpu_go_to_tpu(compiled: Callable[[Any], Any]) -> None:
    x, seen = torch.arange(6.0).view(2, 3), Graphs()
    with events.observe(seen):
        found = compiled(turned)(x.to("tpu"))
    torch.testing.assert_close(found.cpu(), turned(x))
    assert len(seen.made) == 1 and seen.runs == 1


def test_a_graph_with_an_operator_of_the_users_own_runs_op_by_op() -> None:
    library = torch.library.Library("tpu_lab_compiled", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", torch.empty_like, "Meta")
    seen = Graphs()
    with events.observe(seen):
        found = torch.compile(lambda x: torch.ops.tpu_lab_compiled.twice(x.sin()).sum())(torch.arange(3.0, device="tpu"))
    library._destroy()
    torch.testing.assert_close(found.cpu(), torch.arange(3.0).sin().sum() * 2)
    (graph,) = seen.made
    assert graph.broken is not None and graph.broken.reason == "backend" and "tpu_lab_compiled.twice" in graph.broken.message


class Turning(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x).t()


def test_a_module_compiled_in_place() -> None:
    module, seen = Turning().to("tpu"), Graphs()
    expected = module(torch.ones(4, 3, device="tpu"))
    module.compile()
    with events.observe(seen):
        torch.testing.assert_close(module(torch.ones(4, 3, device="tpu")), expected)
    assert len(seen.made) == 1


def test_inductor_on_tpu_is_an_error_with_the_remedy() -> None:
    with pytest.raises(Exception, match=r"backend='inductor'.*tensors on tpu.*torch.compile\(f, backend='tpu'\)"):
        torch.compile(turned, backend="inductor")(torch.ones(2, 2, device="tpu"))
    with pytest.raises(Exception, match=r"options=.*of Inductor"):
        torch.compile(turned, options={"epilogue_fusion": True})(torch.ones(2, 2, device="tpu"))


def test_other_devices_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx

    given = []

    def instead(graph: Any, inputs: Any, **_: Any) -> Any:
        given.append(graph)
        return graph

    monkeypatch.setattr(compile_fx, "compile_fx", instead)
    for compiled in (torch.compile(turned), torch.compile(turned, backend="inductor")):
        torch.compiler.reset()
        torch.testing.assert_close(compiled(torch.ones(2, 3)), turned(torch.ones(2, 3)))
    assert len(given) == 2


def test_options_are_read_and_refused() -> None:
    assert read(None, None) == Options() and read("default", {"memory_budget": 0.5}).memory_budget == 0.5
    for mode, options, words in (
        ("fast", None, "accepted: default"),
        (None, {"speed": 1}, "memory_budget"),
        (None, {"memory_budget": 2}, "from 0 to 1"),
        (None, {"xla": ["a"]}, "a dict"),
    ):
        with pytest.raises(OptionError, match=f"(?i){words}"):
            read(mode, options)


def test_a_memory_budget_keeps_less_for_backward_and_the_same_gradients() -> None:
    def deep(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.tanh(x @ w).sin().exp().tanh()
        return x.sum()

    kept, gradients = [], []
    for budget in (1.0, 0.0):
        torch.compiler.reset()
        w = torch.full((64, 64), 0.01, device="tpu", requires_grad=True)
        x = torch.ones(64, 64, device="tpu")
        before = torch.tpu.memory_allocated()
        loss = torch.compile(deep, backend="tpu", options={"memory_budget": budget})(x, w)
        torch.accelerator.synchronize()
        kept.append(torch.tpu.memory_allocated() - before)
        loss.backward()
        assert w.grad is not None
        gradients.append(w.grad.cpu())
    assert kept[1] < kept[0] / 2
    torch.testing.assert_close(gradients[1], gradients[0])


def test_xla_options_reach_the_compiler() -> None:
    x = torch.ones(2, 2, device="tpu")
    torch.compile(turned, backend="tpu", options={"xla": {"xla_backend_optimization_level": 0}})(x)
    torch.compiler.reset()
    with pytest.raises(Exception, match="no_such_flag"):
        torch.compile(turned, backend="tpu", options={"xla": {"xla_no_such_flag": 1}})(x)


def test_inputs_that_overlap_are_never_compiled_wrongly() -> None:
    """PyTorch's own AOTAutograd raises here, after it has written (torch 2.13, backend aot_eager, CPU)."""

    def target(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.add_(1)
        return x[1:], y * 2, x

    def use(function: Any, device: str) -> list[torch.Tensor]:
        base = torch.arange(6.0, device=device)
        first = function(base[:4], base[2:])
        return [t.cpu() for t in (*first, *function(base[:4], torch.ones(4, device=device)), base)]

    torch.testing.assert_close(use(torch.compile(target, backend="tpu"), "tpu"), use(target, "cpu"))


def test_views_of_one_buffer_that_do_not_overlap_are_compiled() -> None:
    def target(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 2

    whole, seen = torch.arange(6.0, device="tpu"), Graphs()
    with events.observe(seen):
        found = torch.compile(target, backend="tpu")(whole[:3], whole[3:])
    assert found.tolist() == [6.0, 10.0, 14.0] and whole.tolist() == [3.0, 5.0, 7.0, 3.0, 4.0, 5.0]
    assert seen.made[0].broken is None and seen.made[0].programs


def net(device: str) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to(device)


def trained(device: str, compiled: Callable[[Any], Any]) -> tuple[list[float], Graphs]:
    """Losses of four steps of forward, backward and an update written with `torch.autograd.grad`."""
    model = net(device)
    parameters = list(model.parameters())
    x, target, seen = (torch.arange(32.0).view(4, 8) / 10).to(device), torch.ones(4, 4, device=device), Graphs()

    def step(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(model(x), target)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(gradient, alpha=0.1)
        return loss.detach()

    run = compiled(step)
    with events.observe(seen):
        return [float(run(x, target)) for _ in range(4)], seen


def test_a_whole_training_step_is_one_program() -> None:
    right, _ = trained("cpu", lambda step: step)
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        losses, seen = trained("tpu", lambda step: torch.compile(step, backend="tpu", fullgraph=True))
    assert losses == pytest.approx(right, rel=1e-5)
    assert len(seen.made) == 1 and sum(p.program_count for p in seen.made[0].programs) == 1 and seen.runs == 4


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_a_compiled_optimizer(kind: Any) -> None:
    def run(device: str, compiled: Callable[[Any], Any]) -> list[torch.Tensor]:
        model = net(device)
        optimizer = kind(model.parameters(), lr=0.01)
        step, x = compiled(optimizer.step), (torch.arange(32.0).view(4, 8) / 10).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            step()
        return [p.detach().cpu() for p in model.parameters()]

    torch.testing.assert_close(run("tpu", lambda f: torch.compile(f, backend="tpu")), run("cpu", lambda f: f), rtol=1e-4, atol=1e-5)


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.calls.add_(1)
        y = self.linear(x) + torch.ones(3)
        return {"y": y, "first": y[0], "rows": x.shape[0]}


@pytest.mark.parametrize("by", ["program", "file"])
def test_an_exported_program_runs_whole(by: str, tmp_path: Path) -> None:
    model = Counting()
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (torch.ones(2, 4),), dynamic_shapes={"x": {0: rows}})
    if by == "file":
        torch.export.save(program, tmp_path / "model.pt2")
    loaded, seen = tpu_lab.load_exported(program if by == "program" else tmp_path / "model.pt2"), Graphs()
    with events.observe(seen):
        for count in (2, 5, 5):
            x = torch.arange(count * 4.0).view(count, 4)
            found = loaded(x.to("tpu"))
            torch.testing.assert_close(found["y"].cpu(), model(x)["y"])
            assert found["rows"] == count and found["first"].device.type == "tpu"
    assert float(dict(loaded.named_buffers())["calls"]) == 3.0
    assert len(seen.made) == 1


def test_a_file_that_is_no_exported_program(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"(?i)no such file|not found|invalid"):
        tpu_lab.load_exported(tmp_path / "nothing.pt2")
