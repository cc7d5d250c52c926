"""Runs an FX graph of ATen operators as one jax function, each operator by its lowering.

The graph is functional, as AOTAutograd makes it: nothing is written but graph inputs, by `copy_` and the like at the end
(an in-place operator on any tensor without views is understood too). Every operator is traced under
`jax.named_scope("n<index>:<op>")`, the index being the node's place in the graph, so that XLA's metadata leads back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import torch
from jax import Array
from torch.fx import GraphModule, Node

from ...lowering.rng import Rng
from ..host import host_to_numpy
from ..plan import Plan, plan_for
from . import higher_order
from .decompose import is_bookkeeping, is_served, unserved
from .nodes import is_higher_order, is_operator, must_be_known, require_own_memory, written_nodes
from .run import Run


class Unlowered(NotImplementedError):
    """A graph holds operators that have neither a lowering nor a decomposition. `ops` names them."""

    def __init__(self, ops: Sequence[Any]) -> None:
        self.ops = tuple(ops)
        names = ", ".join(str(op) for op in self.ops)
        super().__init__(f"no lowering for {names}; a graph for the device tpu can hold operators with a lowering or a decomposition only")


class GraphResult(NamedTuple):
    """What a run of a graph gives.

    `outputs` are the graph's outputs (arrays, Python numbers, None), nested lists opened; `changed` the new values of the
    inputs in `LoweredGraph.changes`, in that order; `found` a 0-d uint8 array, what a check of values found
    (`lowering.bounds.Complaint`, 0: nothing; None if the graph checks none); `asserted` for each assertion about a value whether it
    failed, and its message.
    """

    outputs: list[Any]
    changed: list[Array]
    found: Array | None
    asserted: list[tuple[Array, str]]


@dataclass(frozen=True)
class LoweredGraph:
    """A graph as a function of jax arrays; call it while jax traces, with 64-bit types on.

    `changes` are the positions of inputs that the graph writes to; `known` those of scalar inputs (SymInt) that shapes depend
    on and that have to be Python numbers; all other scalars may be arrays of shape (). `random`: a random operator is in it.
    """

    graph: GraphModule
    changes: tuple[int, ...]
    known: frozenset[int]
    random: bool
    constant: Callable[[torch.Tensor], Array]
    subgraphs: dict[str, LoweredGraph]

    def __call__(self, inputs: Sequence[Any], rng: Rng | None = None, first: int = 0) -> GraphResult:
        """Runs the graph on arrays of the inputs' logical shapes. Raises ValueError if `rng` is missing for a random graph.

        `first` is the number that the scope of the graph's first node carries.
        """
        if self.random and rng is None:
            raise ValueError("the graph holds random operators; give an Rng")
        return GraphResult(*Run(self, list(inputs), rng, first).run())


def lower_graph(graph: GraphModule, constant: Callable[[torch.Tensor], Array] | None = None) -> LoweredGraph:
    """Prepares a graph. `constant` turns a tensor attribute into an array of its shape (default: a CPU tensor).

    Raises `Unlowered` naming all operators that cannot run, and ValueError for a graph that writes to a view.
    """
    nodes = list(graph.graph.nodes)
    called = [op for n in nodes if is_higher_order(n) for op in higher_order.operators_called(n)]
    missing = unserved(graph) + [op for op in called if not is_served(op)]
    missing += [n.target for n in nodes if (is_higher_order(n) and not higher_order.is_served(n)) or n.op in ("call_module", "call_method")]
    if missing:
        raise Unlowered(missing)
    constant = constant or _host_constant
    subgraphs = {str(n.target): lower_graph(getattr(graph, n.target), constant) for n in nodes if n.op == "get_attr" and _is_graph(graph, n)}
    for node in nodes:
        if is_higher_order(node):
            higher_order.refuse_random_branches(node, subgraphs)
    inputs = [n for n in nodes if n.op == "placeholder"]
    written: dict[Node, None] = {}
    plans = [(n, plan_for(n.target)) for n in nodes if is_operator(n) and not is_bookkeeping(n.target)]
    for node, plan in plans:
        for target in written_nodes(plan, node):
            require_own_memory(node, target)
            written[target] = None
    random = any(_is_random(plan) for _, plan in plans) or any(_is_random(plan_for(op)) for op in called) or any(g.random for g in subgraphs.values())
    wanted = must_be_known(graph.graph)
    changes = tuple(i for i, n in enumerate(inputs) if n in written)
    return LoweredGraph(graph, changes, frozenset(i for i, n in enumerate(inputs) if n in wanted), random, constant, subgraphs)


def _is_graph(graph: GraphModule, node: Node) -> bool:
    return isinstance(getattr(graph, str(node.target), None), GraphModule)


def _is_random(plan: Plan) -> bool:
    return plan.lowering is not None and plan.lowering.random


def _host_constant(tensor: torch.Tensor) -> Array:
    return jnp.asarray(host_to_numpy(tensor).copy())
