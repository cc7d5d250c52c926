from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tpu_lab
from tpu_lab.compiler import events


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.seen = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(self.seen))
        y = torch.nn.functional.dropout(self.norm(self.linear(x)), 0.5)
        print("half way")
        return (y * 2).relu()


def test_the_record_holds_graphs_guards_breaks_programs_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    net = Net().to("tpu")
    run = tpu_lab.explain(net, torch.ones(5, 4, device="tpu"))
    assert [b.reason for b in run.graph_breaks] == ["print"] and [f.id for f in run.findings] == ["TL302"]
    assert len(run.graphs) == 2 and all(graph.runs == 1 and graph.guards for graph in run.graphs)
    assert run.programs and run.memory.peak_bytes > 0 and run.totals.builds >= 2
    assert capsys.readouterr().out == ""


def test_text_html_and_json() -> None:
    run = tpu_lab.explain(lambda x: x + 1, torch.ones(2, device="tpu"))
    assert "Graphs of torch.compile" in run.summary() and "graph" in run.to_html()
    assert json.loads(run.to_json())["graphs"][0]["runs"] == 1


def state_of(net: Net, x: torch.Tensor) -> Any:
    grads = [None if p.grad is None else p.grad.tolist() for p in net.parameters()]
    values = {name: value.tolist() for name, value in net.state_dict().items()}
    seeds = torch.get_rng_state().tolist(), torch.tpu.get_rng_state().tolist(), random.getstate()
    return values, grads, list(net.seen), x.tolist(), x._version, seeds


def test_nothing_is_changed() -> None:
    net, x = Net().to("tpu"), torch.ones(5, 4, device="tpu")
    held = {"list": [1]}

    def step(x: torch.Tensor, held: dict[str, Any]) -> torch.Tensor:
        held["list"].append(random.random())
        x.mul_(2)
        loss = net(x).sum()
        loss.backward()
        return loss

    before = state_of(net, x)
    tpu_lab.explain(step, x, held)
    after = state_of(net, x)
    assert after[:4] == before[:4] and after[5] == before[5] and held == {"list": [1]}


def test_what_was_compiled_before_is_left_alone() -> None:
    class Seen:
        graphs = 0

        def captured(self, graph: Any) -> None:
            self.graphs += 1

        def ran(self, graph: Any) -> None:
            pass

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled, x = torch.compile(scaled, backend="tpu"), torch.ones(3, device="tpu")
    compiled(x)
    assert len(tpu_lab.explain(compiled, x).graphs) == 1
    for size in range(4, 16):
        tpu_lab.explain(scaled, torch.ones(size, device="tpu"))
    seen = Seen()
    with events.observe(seen):
        compiled(x)
    assert seen.graphs == 0


def test_errors_come_out_and_state_is_back() -> None:
    x = torch.ones(3, device="tpu")

    def wrong(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        tpu_lab.explain(wrong, x)
    assert x.tolist() == [1, 1, 1]
