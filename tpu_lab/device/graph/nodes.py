"""Questions about the nodes of a graph."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .. import _torch_internals as internals
from .._torch_internals import pytree
from ..plan import Plan, is_view, plan_for
from .decompose import is_bookkeeping

if TYPE_CHECKING:
    from .run import OpCall


SIZED_BY_NUMBERS = frozenset({"arange", "range"})
"""Factories whose numbers decide the size of the result."""


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
    """Raises ValueError if `node` writes to a view, or to a tensor of which a view made before is read afterwards: it would be stale.

    A view among the outputs is none: AOTAutograd makes outputs that alias an input anew, from the input.
    """
    stale = [user for view in _views_before(node, target) for user in view.users if node < user and user.op != "output"]
    if stale or (is_operator(target) and is_view(target.target)):
        raise ValueError(
            f"the graph is not functional: {node} writes to {target}, which shares its memory with a view; functionalize it first (AOTAutograd does)"
        )


def _views_before(node: Node, target: Node) -> list[Node]:
    """The views of `target`, and views of those, that are made before `node`."""
    found = [user for user in target.users if user < node and is_operator(user) and is_view(user.target)]
    return found + [view for one in found for view in _views_before(node, one)]


def view_root(node: Node) -> Node:
    """The node whose memory the value of `node` shows: itself unless it is made by view operators."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], Node):
        base = node.args[0]
        part = node.target is operator.getitem and is_operator(base) and is_view(base.target)
        if not part and not (is_operator(node) and is_view(node.target)):
            break
        node = base
    return node


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
            own = plan.lowering is None or plan.functional_base in SIZED_BY_NUMBERS
            for argument, value in arguments(plan, node):
                if argument.kind == "static" or (own and argument.kind in ("number", "numbers")):
                    wanted.update(leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Node))
    return wanted
