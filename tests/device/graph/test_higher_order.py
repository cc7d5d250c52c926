"""Control flow, shared subgraphs and recomputed random operators in graphs, against torch on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.device.graph.cpu_backend import Compiled
from tpu_lab.device.graph.interpret import lower_graph
from tpu_lab.lowering.registry import find


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def compiled(function: object) -> tuple[object, Compiled]:
    backend = Compiled()
    return torch.compile(function, backend=backend, fullgraph=True), backend  # type: ignore[call-overload]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond(sign: float) -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x * 3, (x,)) + 1

    x = torch.linspace(0.1, 1, 4) * sign
    run, backend = compiled(choose)
    with torch.no_grad():
        torch.testing.assert_close(run(x), choose(x))
    assert any(n.target.__name__ == "cond" for g in backend.graphs for n in g.graph.nodes if n.op == "call_function")


def test_while_loop() -> None:
    from torch._higher_order_ops.while_loop import while_loop

    def double(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        count, out = while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, x * 2 + 1), (steps.clone(), x))
        return out + count

    run, _ = compiled(double)
    x = torch.linspace(0, 1, 3)
    with torch.no_grad():
        for steps in (0, 4):
            expected = x
            for _ in range(steps):
                expected = expected * 2 + 1
            torch.testing.assert_close(run(x, torch.tensor(steps)), expected)


def test_a_subgraph_used_twice() -> None:
    @torch.compiler.nested_compile_region
    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).tanh()

    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return layer(layer(x, w), w.t().contiguous()).sum(1)

    run, backend = compiled(model)
    ours, theirs = ([torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(-1, 1, 9).reshape(3, 3)] for _ in range(2))
    for args, function in ((ours, run), (theirs, model)):
        for a in args:
            a.requires_grad_()
        function(*args).sum().backward()
    torch.testing.assert_close([a.grad for a in ours], [a.grad for a in theirs])
    assert any(n.target.__name__ == "invoke_subgraph" for g in backend.graphs for n in g.graph.nodes if n.op == "call_function")


def test_a_recomputed_dropout_repeats_its_numbers() -> None:
    assert find("native_dropout") is not None

    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5).sin().exp()

    run, backend = compiled(lambda x: checkpoint(block, x, use_reentrant=False))
    x = torch.linspace(0.1, 0.7, 200, requires_grad=True)
    out = run(x)
    out.sum().backward()
    kept = torch.arcsin(out.detach().log())  # x * mask / 0.5, for it stays below pi / 2
    mask = (kept / x.detach()).round()
    assert set(mask.tolist()) == {0.0, 2.0}
    torch.testing.assert_close(x.grad, out.detach() * torch.cos(kept) * mask, rtol=1e-4, atol=1e-4)
    names = [n.target.__name__ for g in backend.graphs for n in g.graph.nodes if n.op == "call_function"]
    assert "run_and_save_rng_state" in names and "run_with_rng_state" in names


def test_random_branches_are_refused() -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + torch.rand_like(x), lambda x: x * 3, (x,))

    graphs: list[torch.fx.GraphModule] = []

    class Keep(Compiled):
        def compile(self, graph: torch.fx.GraphModule, example_inputs: object) -> object:  # type: ignore[override]
            graphs.append(graph)
            return graph.forward

    torch.compile(choose, backend=Keep())(torch.ones(2))
    with pytest.raises(NotImplementedError, match="random operator inside"):
        lower_graph(graphs[0])
