"""Compiles functions of CPU tensors through AOTAutograd and `lower_graph`, so that torch on the CPU is the golden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_compiler
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from tests.lowering.replay import to_array, to_tensor
from tpu_lab.device.graph.decompose import decomposition_table
from tpu_lab.device.graph.interpret import GraphResult, lower_graph
from tpu_lab.lowering.dtypes import to_torch
from tpu_lab.lowering.rng import Rng

SEED = np.array([7, 0], np.uint64)


def run_graph(graph: GraphModule, inputs: Sequence[Any], seed: np.ndarray = SEED) -> tuple[list[Any], list[torch.Tensor]]:
    """Runs a graph on CPU tensors and Python numbers; returns outputs and the new values of changed inputs."""
    lowered = lower_graph(graph)
    known = {i: v for i, v in enumerate(inputs) if not isinstance(v, torch.Tensor)}
    with jax.enable_x64(True):
        arrays = [None if i in known else to_array(v) for i, v in enumerate(inputs)]

        def run(given: list[Any], state: jax.Array) -> GraphResult:
            return lowered([known.get(i, a) for i, a in enumerate(given)], Rng(state))

        result = jax.jit(run)(arrays, seed)
    metas = pytree.tree_leaves(next(n for n in graph.graph.nodes if n.op == "output").args[0])
    outputs = [_as_torch(v, getattr(n, "meta", {}).get("val")) for v, n in zip(result.outputs, metas, strict=True)]
    return outputs, [to_tensor(v, inputs[i].dtype) for i, v in zip(lowered.changes, result.changed, strict=True)]


def _as_torch(value: Any, meta: Any) -> Any:
    if value is None or not isinstance(meta, torch.Tensor):
        return None if value is None else value.item() if hasattr(value, "item") else value
    if to_torch(value.dtype) == torch.uint64:
        return to_tensor(value, torch.uint64)  # a saved random state; torch describes it as its own CPU generator's
    assert all(n == m for n, m in zip(value.shape, meta.shape, strict=True) if isinstance(m, int))
    return to_tensor(value, meta.dtype)


class Compiled:
    """A `torch.compile` backend on CPU tensors that runs every graph by its lowerings. `graphs` keeps them in order."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, module: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        compiler = make_boxed_compiler(self.compile)
        return aot_module_simplified(
            module,
            example_inputs,
            fw_compiler=compiler,
            bw_compiler=compiler,
            decompositions=decomposition_table(),
            partition_fn=min_cut_rematerialization_partition,
        )

    def compile(self, graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(graph)
        changes = lower_graph(graph).changes

        def run(*args: Any) -> list[Any]:
            outputs, changed = run_graph(graph, args)
            for position, value in zip(changes, changed, strict=True):
                with torch.no_grad():
                    args[position].copy_(value)
            return outputs

        return run


def assert_training(function: Callable[..., Any], inputs: Sequence[Any], parameters: Sequence[torch.Tensor] = (), **tolerance: float) -> Compiled:
    """Runs `function(*inputs)` and the backward pass of its (summed) result both ways and compares results and gradients.

    `parameters` are tensors that `function` closes over. Returns the backend with the graphs it saw.
    """
    backend = Compiled()
    compiled = torch.compile(function, backend=backend, dynamic=False)
    kept = [t for t in (*inputs, *parameters) if isinstance(t, torch.Tensor)]
    results = []
    for run in (function, compiled):
        for tensor in kept:
            tensor.grad = None
        out = run(*inputs)
        leaves = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
        wanted = [t for t in leaves if t.requires_grad]
        if wanted:
            sum((t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in wanted).backward()
        results.append(([t.detach().clone() for t in leaves], [None if t.grad is None else t.grad.clone() for t in kept]))
    torch.testing.assert_close(results[1], results[0], **tolerance)
    return backend
