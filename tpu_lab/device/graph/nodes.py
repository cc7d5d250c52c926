"""Questions about the nodes of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .. import _torch_internals as internals
from .._torch_internals import pytree
from ..plan import Plan, is_view, plan_for
from .decompose import is_bookkeeping

if TYPE_CHECKING:
    from .run import OpCall


def name_of(target: Any) -> str:
    """`aten.tanh`, `aten.add.Tensor`, `getitem`, `cond`."""
    return str(target).removesuffix(".default") if isinstance(target, internals.OpOverload) else str(target.__name__)


def is_operator(node: Node) -> bool:
    """True for a call of an operator of the dispatcher."""
    return node.op == "call_function" and isinstance(node.target, internals.OpOverload)


def is_higher_order(node: Node) -> bool:
    """True for a call of an operator that takes graphs or operators."""
    return node.op == "call_function" and isinstance(node.target, internals.HigherOrderOperator)


def arguments(plan: Plan, node: Node | OpCall) -> list[tuple[Any, Any]]:
    """Each argument of the schema with what the node gives for it."""
    given = [node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default) for i, a in enumerate(plan.arguments)]
    return list(zip(plan.arguments, given, strict=True))


def written_nodes(plan: Plan, node: Node | OpCall) -> list[Node]:
    """The nodes whose values an operator writes to, in schema order."""
    found = [value for argument, value in arguments(plan, node) if argument.written]
    return [n for value in found for n in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(n, Node)]


def require_own_memory(node: Node, target: Node) -> None:
    """Raises ValueError if `node` writes to a tensor that shares its memory with another value of the graph."""
    viewed = [user for user in target.users if user is not node and is_operator(user) and is_view(user.target)]
    if viewed or (is_operator(target) and is_view(target.target)):
        raise ValueError(
            f"the graph is not functional: {node} writes to {target}, which shares its memory with a view; functionalize it first (AOTAutograd does)"
        )


def must_be_known(graph: torch.fx.Graph) -> set[Node]:
    """Scalar nodes that end in a size, a dimension or another argument that is part of the program."""
    wanted: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function":
            continue
        if is_higher_order(node):
            wanted.update(n for n in node.all_input_nodes if not isinstance(n.meta.get("val"), torch.Tensor))
        elif not is_operator(node):
            if node in wanted:
                wanted.update(node.all_input_nodes)
        elif not is_bookkeeping(node.target):
            plan = plan_for(node.target)
            own = plan.lowering is None
            for argument, value in arguments(plan, node):
                if argument.kind == "static" or (own and argument.kind in ("number", "numbers")):
                    wanted.update(leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Node))
    return wanted
