"""The interpreter: how arguments are bound, numbers, sizes, writes, random operators, names in the program."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.device.graph.cpu_backend import SEED, Compiled, run_graph
from tests.lowering.replay import to_array
from tpu_lab.device.graph.interpret import Unlowered, lower_graph
from tpu_lab.lowering.registry import all_lowerings
from tpu_lab.lowering.rng import Rng

aten = torch.ops.aten


def run(function: Any, *inputs: Any) -> tuple[list[Any], list[torch.Tensor]]:
    return run_graph(make_fx(function)(*inputs), inputs)


def test_dtypes_are_those_the_graph_states() -> None:
    x = torch.arange(-3, 4)
    calls = lambda x: (x / 2, x + 1.5, x * True, x.to(torch.bfloat16) * 1.1, x > 0, x.sum(), x.to(torch.int8) + 300)  # noqa: E731
    outputs, _ = run(calls, x)
    torch.testing.assert_close(outputs, list(calls(x)), rtol=0, atol=0)


def test_a_number_in_a_tensor_place_promotes_as_a_number() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float16)
    outputs, _ = run(lambda x: aten.add.Tensor(x, 2.5), x)
    assert outputs[0].dtype == torch.float16 and outputs[0].tolist() == [3.5, 4.5]


def test_tensor_attributes_are_constants() -> None:
    x = torch.arange(3.0)
    table = torch.tensor([10, 20, 30])
    outputs, _ = run(lambda x: x + table, x)
    torch.testing.assert_close(outputs[0], x + table)


def test_lists_and_several_results() -> None:
    x = torch.arange(12.0).reshape(2, 6)

    def calls(x: torch.Tensor) -> Any:
        a, b, c = x.split(2, 1)
        value, index = x.max(1)
        return {"first": [a * 2, (b, c)], "second": (value, index)}

    outputs, _ = run(calls, x)
    torch.testing.assert_close(outputs, torch.utils._pytree.tree_leaves(calls(x)))


def test_outputs_may_be_none_or_numbers_or_inputs() -> None:
    x = torch.ones(2)
    graph = make_fx(lambda x: x * 2)(x)
    out = next(n for n in graph.graph.nodes if n.op == "output")
    out.args = ((out.args[0], None, 3, next(iter(graph.graph.nodes))),)
    outputs, _ = run_graph(graph, [x])
    assert outputs[1:3] == [None, 3]
    torch.testing.assert_close(outputs[3], x)


def test_a_written_input_comes_back() -> None:
    x, y = torch.arange(4.0), torch.arange(4)

    def calls(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = x * 2
        aten.copy_(y, out + 0.5)
        return out

    graph = make_fx(calls)(x.clone(), y.clone())
    assert lower_graph(graph).changes == (1,)
    outputs, changed = run_graph(graph, [x, y])
    calls(x, y)
    torch.testing.assert_close(outputs[0], x * 2)
    torch.testing.assert_close(changed, [y])


def test_in_place_operators_left_in_a_graph() -> None:
    x = torch.arange(4.0)

    def calls(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.mul_(3)
        x.add_(y)
        return y - x

    outputs, changed = run_graph(make_fx(calls)(x.clone()), [x])
    expected = calls(x)
    torch.testing.assert_close((outputs, changed), ([expected], [x]))


def test_writing_to_a_view_is_refused() -> None:
    graph = make_fx(lambda x: x[0].mul_(2))(torch.ones(2, 2))
    with pytest.raises(ValueError, match="not functional"):
        lower_graph(graph)


def test_operators_that_cannot_run_are_all_named() -> None:
    served = all_lowerings()
    unserved = [op for op in (aten._unique2.default, aten._linalg_eigh.default) if op.name().removeprefix("aten::") not in served]
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output([graph.call_function(op, (x,)) for op in (*unserved, aten._pin_memory.default)])
    with pytest.raises(Unlowered) as raised:
        lower_graph(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert raised.value.ops == (*unserved, aten._pin_memory.default)
    assert all(str(op) in str(raised.value) for op in raised.value.ops)


def test_names_lead_back_to_the_graph() -> None:
    x = torch.ones(3)
    graph = make_fx(lambda x: torch.tanh(x).mul(2).exp())(x)
    lowered = lower_graph(graph)
    with jax.enable_x64(True):
        text = jax.jit(lambda a: lowered([a]).outputs).lower(to_array(x)).compile().as_text()
    names = {name: int(i) for i, name in re.findall(r"n(\d+):(aten\.[\w.]+)", text)}
    nodes = list(graph.graph.nodes)
    assert set(names) >= {"aten.tanh", "aten.exp"}
    assert all(str(nodes[i].target).removesuffix(".default") == name for name, i in names.items())


def symbolic(function: Any, *inputs: Any) -> tuple[list[Any], Any, Compiled]:
    """Compiles with dynamic shapes; returns the first graph run's outputs and the golden."""
    torch._dynamo.reset()
    backend = Compiled()
    out = torch.compile(function, backend=backend, dynamic=True)(*inputs)
    return out, function(*inputs), backend


def test_sizes_are_python_numbers_of_the_run() -> None:
    def calls(x: torch.Tensor) -> Any:
        b, n = x.shape
        return x.reshape(b * n).mul(n / 2).reshape(n, b), x.sum() / x.shape[0]

    out, expected, backend = symbolic(calls, torch.arange(15.0).reshape(3, 5))
    torch.testing.assert_close(out, expected)
    graph = backend.graphs[0]
    for shape in ((2, 4), (7, 3)):
        x = torch.arange(float(np.prod(shape))).reshape(shape)
        sizes = [v for v in graph.graph.find_nodes(op="placeholder") if not isinstance(v.meta["val"], torch.Tensor)]
        inputs = [shape[sizes.index(p)] if p in sizes else x for p in graph.graph.find_nodes(op="placeholder")]
        outputs, _ = run_graph(graph, inputs)
        torch.testing.assert_close(tuple(outputs[:2]), calls(x))


def test_scalars_that_shapes_do_not_depend_on_may_move() -> None:
    graph = make_fx(lambda x, n, m: x[:n] * m + n, tracing_mode="symbolic")(torch.arange(6.0), 3, 4)
    lowered = lower_graph(graph)
    assert isinstance(graph.graph.find_nodes(op="placeholder")[1].meta["val"], torch.SymInt)
    assert lowered.known == {1}
    with jax.enable_x64(True):
        program = jax.jit(lambda x, m: lowered([x, 3, m]).outputs)
        x = to_array(torch.arange(6.0))
        for m in (4, 9):
            np.testing.assert_array_equal(np.asarray(program(x, np.int64(m))[0]), np.arange(3.0) * m + 3)
        assert program._cache_size() == 1
        with pytest.raises(TypeError, match="is a size"):
            lowered([x, jax.numpy.asarray(np.int64(3)), 4])


def test_random_operators_draw_in_graph_order() -> None:
    drawing = [op for op in ("rand_like", "bernoulli.p", "randn_like", "native_dropout", "uniform", "normal_functional") if op in all_lowerings()]
    assert drawing, "no random operator has a lowering"
    arguments = {"bernoulli.p": (0.5,), "native_dropout": (0.5, True)}

    def calls(x: torch.Tensor) -> list[Any]:
        found = []
        for name in drawing * 2:
            packet, _, overload = name.partition(".")
            out = getattr(getattr(aten, packet), overload or "default")(x, *arguments.get(name, ()))
            found.append(out[0] if isinstance(out, tuple) else out)
        return found

    x = torch.ones(50)
    graph = make_fx(calls)(x)
    assert lower_graph(graph).random
    first, _ = run_graph(graph, [x])
    again, _ = run_graph(graph, [x])
    other, _ = run_graph(graph, [x], np.array([8, 0], np.uint64))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    half = len(drawing)
    assert all(not a.equal(b) for a, b in zip(first, other, strict=True))
    assert all(not a.equal(b) for a, b in zip(first[:half], first[half:], strict=True))
    with jax.enable_x64(True):
        rng = Rng(jax.numpy.asarray(SEED))
        lower_graph(graph)([to_array(x)], rng)
    assert rng.consumed > 0
    with pytest.raises(ValueError, match="random"):
        lower_graph(graph)([to_array(x)])


def test_a_wrong_number_of_inputs() -> None:
    graph = make_fx(lambda x: x + 1)(torch.ones(2))
    with pytest.raises(ValueError, match="takes 1 inputs"):
        lower_graph(graph)([])
