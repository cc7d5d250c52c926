"""What of a graph the host computes: new contents of CPU tensors that follow from CPU tensors alone.

An optimizer keeps its step counters on the CPU, one for each parameter. Made on the device, their new values would have to be waited for
and copied back after every step; the host adds one to them while the device works. The device's program reads the old values.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .. import _torch_internals as internals
from ..plan import plan_for


@dataclass(frozen=True)
class HostSide:
    """`compute(*tensors)` gives the new contents of the inputs `changes`, in this order, from the inputs `needed`."""

    compute: GraphModule
    needed: tuple[int, ...]
    changes: tuple[int, ...]

    def values(self, inputs: Sequence[Any]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each changed input with its new contents; nothing is written yet."""
        with torch.no_grad():
            made = self.compute(*(inputs[i] for i in self.needed))
        return [(inputs[i], value) for i, value in zip(self.changes, made, strict=True)]


def split(graph: GraphModule) -> tuple[GraphModule, HostSide | None]:
    """A graph without the writes that the host can compute, and these; the graph itself and None if there are none."""
    places = {node: i for i, node in enumerate(n for n in graph.graph.nodes if n.op == "placeholder")}
    on_host = _computed_on_host(graph.graph)
    writes = [n for n in graph.graph.nodes if _is_write(n) and n.args[0] in places and set(n.args[:2]) <= on_host]
    changed = [n.args[0] for n in writes]
    if not writes or len(set(changed)) < len(changed) or any(_writes(n) & set(changed) for n in graph.graph.nodes if n not in writes):
        return graph, None
    copies: dict[Node, Node] = {}
    rest = Graph()
    outputs = rest.graph_copy(graph.graph, copies)
    for write in writes:
        rest.erase_node(copies[write])
    rest.output(outputs)
    return GraphModule(graph, rest), _host_side(graph, [n.args[1] for n in writes], [places[n] for n in changed], places)


def _computed_on_host(graph: Graph) -> set[Node]:
    """The CPU tensors among the inputs, and what pure operators make of them."""
    found: set[Node] = set()
    for node in graph.nodes:
        metas = _tensors(node.meta.get("val"))
        if not metas or any(meta.device.type != "cpu" for meta in metas):
            continue
        if node.op == "placeholder" or (
            node.op == "call_function" and set(node.all_input_nodes) <= found and node.all_input_nodes and _is_pure(node)
        ):
            found.add(node)
    return found


def _is_pure(node: Node) -> bool:
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, internals.OpOverload) or node.target._schema.is_mutable:
        return False
    lowering = plan_for(node.target).lowering
    return lowering is None or not lowering.random


def _is_write(node: Node) -> bool:
    """Whether a node is `copy_(target, value)`, the form in which AOTAutograd writes to inputs, with nobody using its result."""
    return node.target is torch.ops.aten.copy_.default and len(node.args) == 2 and not node.users and all(isinstance(a, Node) for a in node.args)


def _writes(node: Node) -> set[Node]:
    """The nodes an operator writes to."""
    if node.op != "call_function" or not isinstance(node.target, internals.OpOverload) or not node.target._schema.is_mutable:
        return set()
    return set(node.all_input_nodes)


def _host_side(graph: GraphModule, values: list[Any], changes: list[int], places: dict[Node, int]) -> HostSide:
    wanted: set[Node] = set()
    left = list(values)
    while left:
        node = left.pop()
        if node not in wanted:
            wanted.add(node)
            left += node.all_input_nodes
    made = Graph()
    copies: dict[Node, Node] = {}
    for node in (n for n in graph.graph.nodes if n in wanted):
        copies[node] = made.node_copy(node, lambda n: copies[n])
    made.output([copies[value] for value in values])
    return HostSide(GraphModule(torch.nn.Module(), made), tuple(places[n] for n in copies if n.op == "placeholder"), tuple(changes))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in internals.pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
