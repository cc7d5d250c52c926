"""One run of a graph: the values of its nodes, and how an operator's arguments become what its lowering receives."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import torch
from jax import Array
from torch.fx import Node

from ...lowering import bounds
from ...lowering.dtypes import to_jax
from ...lowering.promotion import Number, cast
from ...lowering.rng import Rng
from .. import _torch_internals as internals
from .._torch_internals import pytree
from ..plan import NOT_PASSED, Plan, plan_for, registry_name
from ..tensors import aval, contiguous_stride
from . import geometry, higher_order, numeric
from .decompose import is_bookkeeping
from .nodes import arguments, is_operator, name_of, written_nodes
from .structural import base_name, read_strided, structural, write_strided

if TYPE_CHECKING:
    from .interpret import LoweredGraph


@dataclass(frozen=True)
class OpCall:
    """A call of an ATen operator that is no node of its own: the one a higher-order node makes. `args` and `kwargs` hold nodes."""

    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)


_ASSERTIONS = ("_assert_async", "_functional_assert_async")


class Run:
    """One pass over a graph's nodes."""

    def __init__(self, lowered: LoweredGraph, inputs: list[Any], rng: Rng | None, first: int = 0) -> None:
        self.lowered = lowered
        self.inputs = inputs
        self.rng = rng
        self.first = first
        self.values: dict[Node, Any] = {}
        self.flags: list[Array] = []
        self.asserted: list[tuple[Array, str]] = []
        self.bound: geometry.Bindings = {}

    def run(self) -> tuple[list[Any], list[Array], Array | None, list[tuple[Array, str]]]:
        """Outputs, new values of changed inputs, what a check of values found, and for each assertion whether it failed."""
        nodes = list(self.lowered.graph.graph.nodes)
        places = [n for n in nodes if n.op == "placeholder"]
        if len(places) != len(self.inputs):
            raise ValueError(f"the graph takes {len(places)} inputs, {len(self.inputs)} were given")
        self.bound = geometry.bindings(places, self.inputs)
        for i, node in enumerate(places):
            self.values[node] = self.input(i, node.meta.get("val"), self.inputs[i])
        outputs: list[Any] = []
        for index, node in enumerate(nodes):
            if node.op == "get_attr":
                self.values[node] = self.attribute(node)
            elif node.op == "output":
                outputs = [_bare(v) for v in pytree.tree_leaves(self.resolve(node.args[0]))]
            elif node.op == "call_function":
                with jax.named_scope(f"n{self.first + index}:{name_of(node.target)}"):
                    self.values[node] = self.call(node)
        changed = [self.values[places[i]] for i in self.lowered.changes]
        flag = None if not self.flags else jnp.max(jnp.stack(self.flags))
        return outputs, changed, flag, self.asserted

    def input(self, position: int, meta: Any, value: Any) -> Any:
        scalar = isinstance(value, Number) or isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float))
        if isinstance(value, (int, float, complex)) or not scalar:
            return value
        if position in self.lowered.known:
            raise TypeError(f"input {position} of the graph is a size: give a Python int, it is part of the program")
        return value if isinstance(value, Number) else Number(value)

    def attribute(self, node: Node) -> Any:
        value: Any = self.lowered.graph
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.fx.GraphModule):
            return self.lowered.subgraphs[str(node.target)]
        if not isinstance(value, torch.Tensor):
            return value
        array = self.lowered.constant(value)
        return Number(array) if value.ndim == 0 and value.device.type == "cpu" and internals.is_python_number(value) else array

    def resolve(self, value: Any) -> Any:
        """Nodes replaced by their values, lists kept as lists."""
        if isinstance(value, Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self.resolve(v) for v in value]
        if isinstance(value, dict):
            return {k: self.resolve(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self.resolve(value.start), self.resolve(value.stop), self.resolve(value.step))
        return value

    def call(self, node: Node) -> Any:
        if isinstance(node.target, internals.HigherOrderOperator):
            return higher_order.run(self, node)
        if is_operator(node):
            return self.operator(node)
        args, kwargs = self.resolve(node.args), self.resolve(node.kwargs)
        return args[0][args[1]] if node.target is operator.getitem else numeric.compute(node.target, args, kwargs)

    def operator(self, node: Node | OpCall, rng: Rng | None = None) -> Any:
        """The value of an ATen operator's call. `rng`: another random source than the run's."""
        if base_name(node.target) in _ASSERTIONS:
            return self.assertion(node)
        if is_bookkeeping(node.target):
            return numeric.bookkeeping(node.target, self.resolve(node.args), _meta_stride(node.args[0]) if node.args else None)
        plan = plan_for(node.target)
        results = self.results(plan, node, rng or self.rng)
        return self.written(plan, node, results) if any(a.written for a in plan.arguments) else self.typed(plan, node, results)

    def assertion(self, node: Node | OpCall) -> Any:
        """An assertion about a value, `(condition[, message[, token]])`: looked at when the host next waits."""
        condition, *rest = self.resolve(node.args)
        message = next((part for part in rest if isinstance(part, str)), "Expected Tensor with single nonzero value, but got zero")
        self.asserted.append((jnp.logical_not(jnp.asarray(_bare(condition)).astype(bool)).reshape(()), message))
        return rest[-1] if rest and not isinstance(rest[-1], str) else None

    def results(self, plan: Plan, node: Node | OpCall, rng: Rng | None) -> Any:
        """What the operator (of one that writes: its functional form) computes."""
        bound = [(a, self.resolve(v)) for a, v in arguments(plan, node)]
        if base_name(plan.op).startswith("as_strided"):
            return _strided_call(plan, node, {a.name: _bare(v) for a, v in bound})
        if plan.lowering is None:
            own = structural(plan.op) or structural(plan.functional)
            assert own is not None, "lower_graph lets served operators pass only"
            positional = [_bare(v) for a, v in bound if not a.keyword_only]
            named = {a.name: v for a, v in bound if a.keyword_only and a.name not in NOT_PASSED and a.name not in plan.out}
            return own(*positional, **{k: v for k, v in named.items() if k != "dtype"})
        lowering = plan.lowering
        args = [_bind(a.kind, v) for a, v in bound if not a.keyword_only and a.name not in NOT_PASSED]
        kwargs = {a.name: _bind(a.kind, v) for a, v in bound if a.keyword_only and a.name not in NOT_PASSED and a.name not in plan.out}
        if plan.out:  # the functional form has arguments (`dtype`) that the `out=` form leaves to the tensor it is given
            rest = [a for a in plan_for(plan.functional).arguments if a.keyword_only and a.name not in NOT_PASSED]
            kwargs = {a.name: a.default for a in rest} | kwargs
        check = bounds.values_checked(lowering.overload, [v.dtype for v in _leaves([v for _, v in bound]) if isinstance(v, Array)])
        flag = check(*args, **kwargs) if check is not None else None
        if flag is not None:
            self.flags.append(flag)
        if lowering.wants_out_specs:
            kwargs["out_specs"] = self.out_specs(node)
        if lowering.random:
            kwargs["rng"] = rng
        return lowering.function(*args, **kwargs)

    def out_specs(self, node: Node | OpCall) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The results' shapes and dtypes by PyTorch's meta kernels, for the shapes at hand."""
        metas = [m for m in _leaves(node.meta.get("val")) if isinstance(m, torch.Tensor)]
        if not metas or not all(_is_concrete(m) for m in metas):

            def on_meta(value: Any) -> Any:
                if isinstance(value, (list, tuple)):
                    return [on_meta(v) for v in value]
                return numeric.meta_of(value)

            target: Any = node.target
            kwargs = {k: on_meta(v) for k, v in self.resolve(node.kwargs).items() if k not in ("device", "pin_memory", "layout")}
            factory = any(a.name == "device" for a in plan_for(target).arguments)
            result = target(*on_meta(self.resolve(node.args)), **kwargs, **({"device": "meta"} if factory else {}))
            metas = [m for m in _leaves(result) if isinstance(m, torch.Tensor)]
        return tuple(aval(m.shape, to_jax(m.dtype)) for m in metas)

    def typed(self, plan: Plan, node: Node | OpCall, results: Any) -> Any:
        """Results in the dtypes the graph states; a Tensor[] result stays a list, several results a list too."""
        value = node.meta.get("val")
        if isinstance(results, (list, tuple)):
            metas = value if isinstance(value, (list, tuple)) else [None] * len(results)
            return [_as_stated(plan, r, m, self.bound) for r, m in zip(results, metas, strict=False)]
        return _as_stated(plan, results, value, self.bound)

    def written(self, plan: Plan, node: Node | OpCall, results: Any) -> Any:
        """Puts the results of an operator that writes into the values of what it writes to; returns what the operator returns."""
        values = _leaves(results)
        count = plan.return_count if plan.lowering is not None and plan.lowering.mutates else 0
        targets, new = written_nodes(plan, node), [_bare(v) for v in values[count:] if v is not None]
        for target, value in zip(targets, new, strict=True):
            old = self.values[target]
            self.values[target] = jnp.broadcast_to(cast(value, old.dtype), old.shape)
        if count:
            return self.typed(plan, node, values[:count] if count > 1 else values[0])
        after = [self.values[t] for t in targets]
        return after[0] if plan.return_count == 1 and not plan.returns_list else after


def _bind(kind: str, value: Any) -> Any:
    """A value as the registry promises it to a lowering."""
    if isinstance(value, (list, tuple)):
        return [_bind(kind.removesuffix("s") if kind in ("tensors", "numbers") else kind, v) for v in value]
    if kind == "static":
        if isinstance(value, (Number, Array)):
            raise TypeError("an argument that is part of the program depends on a number known only at run time")
        return value
    if value is None or isinstance(value, Number):
        return value
    if isinstance(value, Array):
        return Number(value) if kind == "number" else value
    return numeric.number(value)


def _strided_call(plan: Plan, node: Node | OpCall, bound: dict[str, Any]) -> Array:
    names = [a.name for a in plan.arguments]
    first = node.args[0]
    stride, start = _meta_stride(first), _meta_offset(first)
    value = bound[names[0]]
    if stride is None:
        stride = contiguous_stride(value.shape)
    size, steps, offset = bound["size"], bound["stride"], bound.get("storage_offset")
    if "scatter" in base_name(plan.op):
        return write_strided(value, stride, start, bound["src"], size, steps, offset)
    return read_strided(value, stride, start, size, steps, offset)


def _meta_stride(node: Any) -> tuple[int, ...] | None:
    """The strides of a node's tensor where they are known numbers."""
    meta = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(meta, torch.Tensor) or not all(isinstance(s, int) for s in meta.stride()):
        return None
    return tuple(meta.stride())


def _meta_offset(node: Any) -> int:
    meta = node.meta.get("val") if isinstance(node, Node) else None
    offset = meta.storage_offset() if isinstance(meta, torch.Tensor) else 0
    return offset if isinstance(offset, int) else 0


def _as_stated(plan: Plan, result: Any, meta: Any, bound: geometry.Bindings) -> Any:
    if result is None:
        return None
    result = _bare(result)
    if not isinstance(meta, torch.Tensor):
        return result
    result = cast(jnp.asarray(result), to_jax(meta.dtype))
    stated = geometry.sizes(meta, bound)
    if stated is not None and result.shape != stated:
        raise RuntimeError(f"the lowering of {registry_name(plan.op)} returned shape {list(result.shape)}, PyTorch's meta kernel says {list(stated)}")
    return result


def _is_concrete(meta: torch.Tensor) -> bool:
    return all(isinstance(n, int) for n in meta.shape)


def _bare(value: Any) -> Any:
    """The array of a run-time number; anything else as it is."""
    if isinstance(value, list):
        return [_bare(v) for v in value]
    return value.value if isinstance(value, Number) else value


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]
