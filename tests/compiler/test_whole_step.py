"""A training step as one graph: values, gradients and state as on the CPU, one program for all steps, and what is left to PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import tpu_lab  # noqa: F401
from tpu_lab.compiler import events
from tpu_lab.compiler.whole_step import CompiledStep, is_plain_step, whole_steps
from tpu_lab.device import state, tensors

STEPS = 4


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Graphs:
    """Counts what the backend makes and runs."""

    def __init__(self) -> None:
        self.made: list[events.Captured] = []
        self.runs = 0

    def captured(self, graph: events.Captured) -> None:
        self.made.append(graph)

    def ran(self, graph: events.Captured) -> None:
        self.runs += 1


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=0.01)


def momentum(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


class Trained:
    """A model trained `STEPS` steps on a device, and what is left of it."""

    def __init__(
        self, device: str, make: Callable[[Any], torch.optim.Optimizer], compiled: bool, clips: bool = False, schedules: bool = False
    ) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
        self.optimizer = optimizer = make(self.model.parameters())
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8) if schedules else None
        x, y = torch.linspace(-1, 1, 60).view(10, 6).to(device), (torch.arange(10) % 3).to(device)
        self.losses: list[float] = []
        self.graphs = Graphs()

        def step() -> tuple[torch.Tensor, torch.Tensor]:
            optimizer.zero_grad()
            out = self.model(x)
            loss = nn.functional.cross_entropy(out, y)
            loss.backward()
            if clips:
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.05)
            optimizer.step()
            return loss, out

        run = torch.compile(step, backend="tpu") if compiled else step
        with whole_steps(), events.observe(self.graphs):
            for _ in range(STEPS):
                self.loss, self.out = run()
                self.losses.append(float(self.loss.detach()))
                if schedule is not None:
                    schedule.step()

    def left(self) -> list[torch.Tensor]:
        """Parameters, gradients and the optimizer's state, on the CPU."""
        state = self.optimizer.state_dict()["state"]
        kept = [value for one in state.values() for value in one.values() if isinstance(value, torch.Tensor)]
        return [t.detach().cpu() for p in self.model.parameters() for t in (p, p.grad)] + [t.detach().cpu() for t in kept]  # type: ignore[union-attr]


@pytest.mark.parametrize("switches", [{}, {"clips": True}, {"schedules": True}], ids=["plain", "clips", "schedules"])
@pytest.mark.parametrize(("make", "graphs"), [(adamw, 1), (momentum, 2)])
def test_a_step_is_one_program_and_right(make: Any, graphs: int, switches: dict[str, bool]) -> None:
    """SGD's first step finds no momentum, which is another graph."""
    right, got = Trained("cpu", make, False, **switches), Trained("tpu", make, True, **switches)
    assert got.losses == pytest.approx(right.losses, rel=1e-5)
    torch.testing.assert_close(got.left(), right.left(), rtol=1e-4, atol=1e-6)
    assert len(got.graphs.made) == graphs and got.graphs.runs == STEPS
    assert all(sum(program.program_count for program in graph.programs) == 1 for graph in got.graphs.made)
    assert got.optimizer.param_groups[0]["lr"] == right.optimizer.param_groups[0]["lr"]


def test_the_loss_requires_a_gradient_that_is_spent() -> None:
    got = Trained("tpu", adamw, True)
    assert got.loss.requires_grad and got.out.requires_grad and not got.loss.is_leaf
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        got.out.sum().backward()
    assert CompiledStep.__name__ in type(got.loss.grad_fn).__name__


def test_a_tensor_that_backward_did_not_use_up_keeps_its_graph() -> None:
    w, v = (torch.ones(3, device="tpu", requires_grad=True) for _ in range(2))

    def step() -> torch.Tensor:
        other = v * 3
        (w * 2).sum().backward()
        return other

    with whole_steps():
        torch.compile(step, backend="tpu")().sum().backward()
    assert w.grad is not None and v.grad is not None
    assert w.grad.tolist() == [2, 2, 2] and v.grad.tolist() == [3, 3, 3]


def test_a_hook_on_a_gradient_is_never_passed_over() -> None:
    w = torch.ones(3, device="tpu", requires_grad=True)

    def step() -> None:
        (w * w).sum().backward()

    run = torch.compile(step, backend="tpu")
    with whole_steps():
        run()
        w.grad = None
        w.register_hook(lambda gradient: gradient * 10)
        with pytest.raises(NotImplementedError, match="has a hook"):
            run()
    assert w.grad is None


def test_what_is_left_to_pytorch() -> None:
    """A fused optimizer and one with hooks: the same values, and the hooks are called."""
    fused = Trained("tpu", lambda p: torch.optim.AdamW(p, lr=0.01, fused=True), True)
    assert fused.losses == pytest.approx(Trained("cpu", adamw, False).losses, rel=1e-5)
    called: list[int] = []

    def hooked(parameters: Any) -> torch.optim.Optimizer:
        made = momentum(parameters)
        made.register_step_post_hook(lambda *_: called.append(1))
        return made

    assert Trained("tpu", hooked, True).losses == pytest.approx(Trained("cpu", momentum, False).losses, rel=1e-5)
    assert len(called) == STEPS


def test_which_steps_are_plain() -> None:
    class Mine(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            raise AssertionError

    w = torch.ones(2, device="tpu", requires_grad=True)
    assert is_plain_step(torch.optim.Adam([w]))
    assert not is_plain_step(Mine([w], lr=0.1)) and not is_plain_step(torch.optim.Adam([torch.ones(2, requires_grad=True)]))


def test_state_that_is_loaded_is_used() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2).to("tpu")
    optimizer, x = torch.optim.AdamW(model.parameters(), lr=0.1), torch.ones(2, 3, device="tpu")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run, losses = torch.compile(step, backend="tpu"), []
    with whole_steps():
        run()
        model_state = {k: v.clone() for k, v in model.state_dict().items()}
        state = optimizer.state_dict()
        kept = {k: {n: t.clone() for n, t in one.items()} for k, one in state["state"].items()}
        losses.append([float(run()) for _ in range(3)])
        model.load_state_dict(model_state)
        optimizer.load_state_dict({**state, "state": kept})
        losses.append([float(run()) for _ in range(3)])
    assert losses[0] == losses[1]
    assert [one["step"].device.type for one in optimizer.state.values()] == ["cpu", "cpu"]
    assert [float(one["step"]) for one in optimizer.state.values()] == [4, 4]


def written(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The tensors of the device that a step writes to."""
    state = [t for one in optimizer.state.values() for t in one.values() if isinstance(t, torch.Tensor) and t.device.type == "tpu"]
    return [*model.parameters(), *state]


def test_a_step_writes_into_the_memory_it_read_and_never_into_what_others_hold() -> None:
    """A donated array is gone; one that a snapshot holds is not donated, and comes back; a view sees what is written."""
    got = Trained("tpu", adamw, False)
    tensors_written = written(got.model, got.optimizer)
    x = torch.ones(2, 6, device="tpu")
    view = got.model[0].weight.detach()[2:4, 1]

    def step() -> None:
        got.optimizer.zero_grad()
        got.model(x).square().sum().backward()
        got.optimizer.step()

    run = torch.compile(step, backend="tpu")
    with whole_steps():
        run()
        held = [tensors.buffer_of(t).array for t in tensors_written]
        run()
        assert all(array.is_deleted() for array in held)
        before = [t.detach().cpu() for t in tensors_written]
        journal = state.snapshot()
        held = [tensors.buffer_of(t).array for t in tensors_written]
        run()
        assert not any(array.is_deleted() for array in held)
        assert torch.equal(view.cpu(), got.model[0].weight.detach().cpu()[2:4, 1])
        assert not torch.equal(before[0], tensors_written[0].detach().cpu())
        state.restore(journal)
    torch.testing.assert_close([t.detach().cpu() for t in tensors_written], before, rtol=0, atol=0)
