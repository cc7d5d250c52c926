"""Proves that a graph of ATen operators treats the rows along one dimension of changing size apart from one another.

If every value that has the changing size `s` has it in one dimension, and every operator computes row i of its results from row i of its
operands only, then rows added to the inputs change nothing in the rows that were there: the graph may be run on padded inputs and
its results cut. The proof is by operator, from a closed list of rules; anything else is a reason not to pad.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..device import _torch_internals as internals

Rows = dict[torch.fx.Node, int]
"""The dimension that has the changing size, for each value that has one."""


@dataclass(frozen=True)
class Proof:
    """`symbol` is the changing size. `reason` says why padding is not proven safe; empty: it is."""

    symbol: Any = None
    reason: str = ""


class _Refused(Exception):
    pass


def prove(graph: torch.fx.GraphModule) -> Proof:
    """The proof for a graph in which one changing size stands first in the inputs and results that have it."""
    try:
        return Proof(_Prover(graph).symbol)
    except _Refused as refused:
        return Proof(reason=str(refused))


class _Prover:
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.rows: Rows = {}
        self.symbol = self._symbol(graph)
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "output":
                self._outputs(node)
            elif node.op == "get_attr" or node.op == "call_function":
                self._value(node)

    def _symbol(self, graph: torch.fx.GraphModule) -> Any:
        """The symbol that stands first in inputs; other sizes may change too, each of theirs has its own programs."""
        inputs = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
        first: list[Any] = [v.shape[0] for v in inputs if isinstance(v, torch.Tensor) and v.dim()]
        found = {n.node.expr for n in first if isinstance(n, torch.SymInt)}
        if len(found) != 1 or not next(iter(found)).is_Symbol:
            raise _Refused(f"{len(found)} first sizes change")
        return found.pop()

    def has(self, value: Any) -> bool:
        return isinstance(value, torch.SymInt) and self.symbol in value.node.expr.free_symbols

    def is_size(self, value: Any) -> bool:
        return isinstance(value, torch.SymInt) and value.node.expr == self.symbol

    def dimension(self, node: torch.fx.Node, value: Any) -> int | None:
        """The dimension of a tensor that is the changing size; None for a tensor without. Refuses any other use of the size."""
        where = [d for d, size in enumerate(value.shape) if self.has(size)]
        if not where:
            return None
        if len(where) > 1 or not self.is_size(value.shape[where[0]]):
            raise _Refused(f"{node.name} has the changing size in more than one dimension, or computed with")
        return where[0]

    def _input(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            at = self.dimension(node, value)
            if at is not None:
                if at != 0 or not value.is_contiguous():
                    raise _Refused(f"the input {node.name} does not have the changing size first, or is not contiguous")
                self.rows[node] = 0
        elif self.has(value) and not self.is_size(value):
            raise _Refused(f"the input {node.name} is computed from the changing size")

    def _outputs(self, node: torch.fx.Node) -> None:
        given: Any = node.args[0]
        for out in given if isinstance(given, (tuple, list)) else [given]:
            value = out.meta.get("val") if isinstance(out, torch.fx.Node) else out
            if self.has(value) and not self.is_size(value):
                raise _Refused("a result is a number computed from the changing size")
            if isinstance(value, torch.Tensor) and isinstance(out, torch.fx.Node) and self.rows.get(out, 0) != 0:
                raise _Refused(f"the result {out} does not have the changing size first")

    def _value(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        used = [n for n in node.all_input_nodes if n in self.rows]
        if node.target is operator.getitem:
            base: Any = node.args[0]
            if base in self.rows and isinstance(value, torch.Tensor) and self.dimension(node, value) is not None:
                self.rows[node] = self.rows[base]
            return
        if isinstance(node.target, internals.OpOverload) and node.target._schema.is_mutable:
            raise _Refused(f"{node.name} writes to its operand")
        tensors = [v for v in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(v, torch.Tensor)]
        where = {self.dimension(node, v) for v in tensors}
        if not used and where <= {None}:
            if not isinstance(value, torch.SymInt) and any(self.has(n.meta.get("val")) for n in node.all_input_nodes):
                raise _Refused(f"{node.name} computes with the changing size")
            return
        name = str(getattr(node.target, "_schema", node.target)).partition("(")[0].partition("::")[2].partition(".")[0]
        if isinstance(value, torch.SymInt):
            if not self.is_size(value):
                raise _Refused(f"{node.name} computes with the changing size")
            return
        rule = _RULES.get(name) or (_pointwise if torch.Tag.pointwise in getattr(node.target, "tags", ()) else None)
        if rule is None or not used:
            raise _Refused(f"there is no rule for {name}")
        if rule is not _reshaped and any(self.has(n.meta.get("val")) for n in node.all_input_nodes):
            raise _Refused(f"{name} computes with the changing size")
        at = rule(self, node)
        if at is None or where != {at}:
            raise _Refused(f"{name} mixes the rows")
        self.rows[node] = at


Rule = Callable[[_Prover, torch.fx.Node], int | None]
"""The dimension of the rows in the result; None: the operator mixes them, or may."""


def _rank(node: Any) -> int:
    return int(node.meta["val"].dim())


def _pointwise(prover: _Prover, node: torch.fx.Node) -> int | None:
    rank = _rank(node)
    aligned = {at + rank - _rank(operand) for operand, at in prover.rows.items() if operand in node.all_input_nodes}
    return aligned.pop() if len(aligned) == 1 else None


def _first_only(prover: _Prover, node: torch.fx.Node) -> int | None:
    """Rows of the first operand stay in place, the other operands have none."""
    first, *others = node.all_input_nodes
    return prover.rows.get(first) if node.args[0] is first and not any(o in prover.rows for o in others) else None


def _product(prover: _Prover, node: torch.fx.Node) -> int | None:
    left, right = node.args[-2:]
    if len(node.args) == 3 and node.args[0] in prover.rows:
        return None
    return 0 if prover.rows.get(left) == 0 and right not in prover.rows else None  # type: ignore[arg-type]


def _batched_product(prover: _Prover, node: torch.fx.Node) -> int | None:
    return 0 if prover.rows.get(node.args[0]) == 0 == prover.rows.get(node.args[1]) else None  # type: ignore[arg-type]


def _reshaped(prover: _Prover, node: torch.fx.Node) -> int | None:
    return 0 if prover.rows.get(node.args[0]) == 0 and prover.is_size(node.meta["val"].shape[0]) else None  # type: ignore[arg-type]


def _permuted(prover: _Prover, node: torch.fx.Node) -> int | None:
    at, rank = prover.rows[node.args[0]], _rank(node)  # type: ignore[index]
    order = list(range(rank))
    if len(node.args) == 3:
        one, other = (int(d) % rank for d in node.args[1:])  # type: ignore[arg-type]
        order[one], order[other] = order[other], order[one]
    elif len(node.args) == 2:
        order = [int(d) % rank for d in node.args[1]]  # type: ignore[arg-type, union-attr]
    else:
        order.reverse()
    return order.index(at)


def _along(prover: _Prover, node: torch.fx.Node) -> int | None:
    """An operator over some dimensions, none of them that of the rows; they stay (softmax) or go (sum without keepdim)."""
    operand: Any = node.args[0]
    at, rank = prover.rows[operand], _rank(operand)
    given: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if given is None or given == []:
        return None
    dims = {int(d) % rank for d in (given if isinstance(given, (list, tuple)) else [given])}
    value = node.meta["val"]
    result = value[0] if isinstance(value, (tuple, list)) else value
    gone = sum(d < at for d in dims) if result.dim() < rank else 0
    return None if at in dims else at - gone


def _normalized(prover: _Prover, node: torch.fx.Node) -> int | None:
    operand: Any = node.args[0]
    lasts: Any = node.args[1]
    at = _first_only(prover, node)
    return at if at is not None and at < _rank(operand) - len(lasts) else None


def _images(prover: _Prover, node: torch.fx.Node) -> int | None:
    return 0 if _rank(node.args[0]) == 4 and _first_only(prover, node) == 0 else None


def _looked_up(prover: _Prover, node: torch.fx.Node) -> int | None:
    weight, index = node.args[0], node.args[1]
    return prover.rows.get(index) if weight not in prover.rows else None  # type: ignore[arg-type]


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("mm", "addmm"), _product),
    **dict.fromkeys(("view", "_unsafe_view", "reshape"), _reshaped),
    **dict.fromkeys(("permute", "transpose", "t"), _permuted),
    **dict.fromkeys(("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "_softmax", "_log_softmax", "cumsum", "var_mean"), _along),
    **dict.fromkeys(("clone", "_to_copy", "detach", "alias"), _first_only),
    "bmm": _batched_product,
    "native_layer_norm": _normalized,
    "embedding": _looked_up,
    "convolution": _images,
}
