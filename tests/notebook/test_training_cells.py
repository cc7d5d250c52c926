"""A training loop in a compiled cell, on the device: how many programs a step is, and that the cell means what the plain one does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tpu_lab.record import Run
from tpu_lab.recording.store import store

SETUP = """\
%%tpu eager
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
opt = {optimizer}
x, y = torch.linspace(-1, 1, 60).view(10, 6), torch.arange(10) % 3
losses = []
"""
LOOP = """\
for i in range(4):
    {first}
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    {between}
    opt.step()
    losses.append(loss.item())
"""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    made.run_line_magic("load_ext", "tpu_lab")  # type: ignore[no-untyped-call]
    yield made
    store.clear()
    InteractiveShell.clear_instance()  # type: ignore[no-untyped-call]


def trained(shell: InteractiveShell, mode: str, optimizer: str, first: str = "opt.zero_grad()", between: str = "pass") -> tuple[list[float], Run]:
    assert shell.run_cell(SETUP.format(optimizer=optimizer)).success
    done = shell.run_cell(f"%%tpu {mode}\n" + LOOP.format(first=first, between=between))
    assert done.success, done.error_in_exec
    return shell.user_ns["losses"], store.runs()[-1]


@pytest.mark.parametrize("between", ["pass", "nn.utils.clip_grad_norm_(model.parameters(), 0.05)"], ids=["plain", "clips"])
def test_a_step_is_one_program(shell: InteractiveShell, between: str) -> None:
    made = "torch.optim.AdamW(model.parameters(), lr=0.01)"
    right, _ = trained(shell, "eager", made, between=between)
    losses, run = trained(shell, "compile", made, between=between)
    assert losses == pytest.approx(right, rel=1e-5)
    assert [(graph.runs, graph.programs, graph.ended_by) for graph in run.graphs] == [(4, 1, -1)]
    assert shell.user_ns["loss"].requires_grad and shell.user_ns["out"].grad_fn is not None
    assert [(r.first_line, r.last_line) for r in run.regions if r.reason is None or not r.reason] == [(4, 8)]


def test_a_step_that_cannot_be_one_program_is_taken_apart(shell: InteractiveShell) -> None:
    """A hook on a gradient: the cell runs, with the values of the plain cell."""
    made = "torch.optim.SGD(model.parameters(), lr=0.1); model[0].bias.register_hook(lambda g: g * 3)"
    right, _ = trained(shell, "eager", made)
    losses, run = trained(shell, "compile", made)
    assert losses == pytest.approx(right, rel=1e-5)
    assert sum(graph.runs for graph in run.graphs) > 4
