"""Runs an FX graph of ATen operators as one jax function, each operator by its lowering.

The graph is functional, as AOTAutograd makes it: nothing is written but graph inputs, by `copy_` and the like at the end
(an in-place operator on any tensor without views is understood too). Every operator is traced under
`jax.named_scope("n<index>:<op>")`, the index being the node's place in the graph, so that XLA's metadata leads back to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import torch
from jax import Array
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from ...lowering import bounds
from ...lowering.dtypes import to_jax
from ...lowering.promotion import Number, cast
from ...lowering.rng import Rng
from .. import _torch_internals as internals
from ..host import host_to_numpy
from ..plan import NOT_PASSED, Plan, is_view, plan_for, registry_name
from . import numeric
from .decompose import is_bookkeeping, unserved
from .structural import base_name, read_strided, structural, write_strided


class Unlowered(NotImplementedError):
    """A graph holds operators that have neither a lowering nor a decomposition. `ops` names them."""

    def __init__(self, ops: Sequence[Any]) -> None:
        self.ops = tuple(ops)
        names = ", ".join(str(op) for op in self.ops)
        super().__init__(f"no lowering for {names}; a graph for the device tpu can hold operators with a lowering or a decomposition only")


class GraphResult(NamedTuple):
    """What a run of a graph gives.

    `outputs` are the graph's outputs (arrays, Python numbers, None), nested lists opened; `changed` the new values of the
    inputs in `LoweredGraph.changes`, in that order; `out_of_range` a bool array, True if an index was outside its dimension
    (None if the graph does not index).
    """

    outputs: list[Any]
    changed: list[Array]
    out_of_range: Array | None


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

    def __call__(self, inputs: Sequence[Any], rng: Rng | None = None) -> GraphResult:
        """Runs the graph on arrays of the inputs' logical shapes. Raises ValueError if `rng` is missing for a random graph."""
        if self.random and rng is None:
            raise ValueError("the graph holds random operators; give an Rng")
        return _Run(self, list(inputs), rng).run()


def lower_graph(graph: GraphModule, constant: Callable[[torch.Tensor], Array] | None = None) -> LoweredGraph:
    """Prepares a graph. `constant` turns a tensor attribute into an array of its shape (default: a CPU tensor).

    Raises `Unlowered` naming all operators that cannot run, and ValueError for a graph that writes to a view.
    """
    missing = unserved(graph) + [
        n.target for n in graph.graph.nodes if n.op == "call_function" and isinstance(n.target, torch._ops.HigherOrderOperator)
    ]
    missing += [n.target for n in graph.graph.nodes if n.op in ("call_module", "call_method")]
    if missing:
        raise Unlowered(missing)
    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    written: dict[Node, None] = {}
    random = False
    for node in graph.graph.nodes:
        if not _is_operator(node) or is_bookkeeping(node.target):
            continue
        plan = plan_for(node.target)
        random = random or bool(plan.lowering and plan.lowering.random)
        for target in _written_nodes(plan, node):
            _require_own_memory(node, target)
            written[target] = None
    changes = tuple(i for i, n in enumerate(inputs) if n in written)
    wanted = _nodes_that_must_be_known(graph)
    known = frozenset(i for i, n in enumerate(inputs) if n in wanted)
    return LoweredGraph(graph, changes, known, random, constant or _host_constant)


def _host_constant(tensor: torch.Tensor) -> Array:
    return jnp.asarray(host_to_numpy(tensor).copy())


def _name(target: Any) -> str:
    return str(target).removesuffix(".default") if isinstance(target, torch._ops.OpOverload) else str(target.__name__)


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def _arguments(plan: Plan, node: Node) -> list[tuple[Any, Any]]:
    """Each argument of the schema with what the node gives for it."""
    given = [node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default) for i, a in enumerate(plan.arguments)]
    return list(zip(plan.arguments, given, strict=True))


def _written_nodes(plan: Plan, node: Node) -> list[Node]:
    found = [value for argument, value in _arguments(plan, node) if argument.written]
    return [n for value in found for n in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(n, Node)]


def _require_own_memory(node: Node, target: Node) -> None:
    viewed = [user for user in target.users if user is not node and _is_operator(user) and is_view(user.target)]
    if viewed or (_is_operator(target) and is_view(target.target)):
        raise ValueError(
            f"the graph is not functional: {node} writes to {target}, which shares its memory with a view; functionalize it first (AOTAutograd does)"
        )


def _nodes_that_must_be_known(graph: GraphModule) -> set[Node]:
    """Scalar nodes that end in a size, a dimension or another argument that is part of the program."""
    wanted: set[Node] = set()
    for node in reversed(list(graph.graph.nodes)):
        if node.op != "call_function":
            continue
        if not _is_operator(node):
            if node in wanted:
                wanted.update(node.all_input_nodes)
        elif not is_bookkeeping(node.target):
            plan = plan_for(node.target)
            own = plan.lowering is None
            for argument, value in _arguments(plan, node):
                if argument.kind == "static" or (own and argument.kind in ("number", "numbers")):
                    wanted.update(leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Node))
    return wanted


class _Run:
    """One pass over a graph's nodes."""

    def __init__(self, lowered: LoweredGraph, inputs: list[Any], rng: Rng | None) -> None:
        self.lowered = lowered
        self.inputs = inputs
        self.rng = rng
        self.values: dict[Node, Any] = {}
        self.flags: list[Array] = []

    def run(self) -> GraphResult:
        nodes = list(self.lowered.graph.graph.nodes)
        places = [n for n in nodes if n.op == "placeholder"]
        if len(places) != len(self.inputs):
            raise ValueError(f"the graph takes {len(places)} inputs, {len(self.inputs)} were given")
        for i, node in enumerate(places):
            self.values[node] = self.input(i, node.meta.get("val"), self.inputs[i])
        outputs: list[Any] = []
        for index, node in enumerate(nodes):
            if node.op == "get_attr":
                self.values[node] = self.attribute(node)
            elif node.op == "output":
                outputs = [_bare(v) for v in pytree.tree_leaves(self.resolve(node.args[0]))]
            elif node.op == "call_function":
                with jax.named_scope(f"n{index}:{_name(node.target)}"):
                    self.values[node] = self.call(node)
        changed = [self.values[places[i]] for i in self.lowered.changes]
        flag = None if not self.flags else jnp.any(jnp.stack([jnp.any(f) for f in self.flags]))
        return GraphResult(outputs, changed, flag)

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
        args, kwargs = self.resolve(node.args), self.resolve(node.kwargs)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if not _is_operator(node):
            return numeric.compute(node.target, args, kwargs)
        if is_bookkeeping(node.target):
            return numeric.bookkeeping(node.target, args, _meta_stride(node.args[0]) if node.args else None)
        plan = plan_for(node.target)
        results = self.results(plan, node)
        return self.written(plan, node, results) if any(a.written for a in plan.arguments) else self.typed(plan, node, results)

    def results(self, plan: Plan, node: Node) -> Any:
        """What the operator (of one that writes: its functional form) computes."""
        bound = [(a, self.resolve(v)) for a, v in _arguments(plan, node)]
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
        check = bounds.out_of_range(lowering.overload)
        flag = check(*args, **kwargs) if check is not None else None
        if flag is not None:
            self.flags.append(flag)
        if lowering.wants_out_specs:
            kwargs["out_specs"] = self.out_specs(node)
        if lowering.random:
            kwargs["rng"] = self.rng
        return lowering.function(*args, **kwargs)

    def out_specs(self, node: Node) -> tuple[jax.ShapeDtypeStruct, ...]:
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
        return tuple(jax.ShapeDtypeStruct(tuple(m.shape), to_jax(m.dtype)) for m in metas)  # type: ignore[no-untyped-call]

    def typed(self, plan: Plan, node: Node, results: Any) -> Any:
        """Results in the dtypes the graph states; a Tensor[] result stays a list, several results a list too."""
        value = node.meta.get("val")
        if isinstance(results, (list, tuple)):
            metas = value if isinstance(value, (list, tuple)) else [None] * len(results)
            return [_as_stated(plan, r, m) for r, m in zip(results, metas, strict=False)]
        return _as_stated(plan, results, value)

    def written(self, plan: Plan, node: Node, results: Any) -> Any:
        """Puts the results of an operator that writes into the values of what it writes to; returns what the operator returns."""
        values = _leaves(results)
        count = plan.return_count if plan.lowering is not None and plan.lowering.mutates else 0
        targets, new = _written_nodes(plan, node), [_bare(v) for v in values[count:] if v is not None]
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


def _strided_call(plan: Plan, node: Node, bound: dict[str, Any]) -> Array:
    names = [a.name for a in plan.arguments]
    first = node.args[0]
    stride, start = _meta_stride(first), _meta_offset(first)
    value = bound[names[0]]
    if stride is None:
        stride = numeric.row_major(value.shape)
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


def _as_stated(plan: Plan, result: Any, meta: Any) -> Any:
    if result is None:
        return None
    result = _bare(result)
    if not isinstance(meta, torch.Tensor):
        return result
    result = cast(jnp.asarray(result), to_jax(meta.dtype))
    if _is_concrete(meta) and result.shape != tuple(meta.shape):
        raise RuntimeError(
            f"the lowering of {registry_name(plan.op)} returned shape {list(result.shape)}, PyTorch's meta kernel says {list(meta.shape)}"
        )
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
