"""Decompositions: an operator without a lowering, written in operators that have one.

They come from torch: its table of Python decompositions, composite kernels, and the ATen form of each prim. An operator
that is served (by a lowering or structurally) is never decomposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from .. import _torch_internals as internals
from .._torch_internals import pytree
from ..plan import plan_for
from . import linalg_decompositions
from .structural import base_name, structural

_ROUNDS = 8
"""How often a trace is repeated because it still holds composite operators; each round takes one level away."""


def is_served(op: Any) -> bool:
    """True if a graph can run the overload as it is: it, or the functional form of it, has a lowering or is structural."""
    if op.namespace == "aten" and base_name(op).startswith("as_strided"):
        return True
    plan = plan_for(op)
    return plan.lowering is not None or structural(op) is not None or structural(plan.functional) is not None


@cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """What to hand to AOTAutograd as `decompositions=`: torch's decomposition of every overload that is not served.

    Some of them end in prims; a prim whose ATen counterpart is served is turned back into that.
    """
    table = {op: function for op, function in internals.decompositions().items() if isinstance(op, internals.OpOverload) and not is_served(op)}
    for name in dir(torch.ops.prims):
        prim = getattr(getattr(torch.ops.prims, name), "default", None)
        if isinstance(prim, internals.OpOverload) and not is_served(prim) and _aten_is_served(_ATEN_NAME.get(name, name)):
            table[prim] = prim.impl_aten  # type: ignore[attr-defined]
    return {**table, **linalg_decompositions.DECOMPOSITIONS}


_ATEN_NAME = {
    "rev": "flip",
    "shift_left": "bitwise_left_shift",
    "shift_right_arithmetic": "bitwise_right_shift",
    "erf_inv": "erfinv",
    "bessel_i0": "i0",
}
"""Prims that ATen calls something else."""


def _aten_is_served(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and any(is_served(getattr(packet, overload)) for overload in packet.overloads())


def decompose(op: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> GraphModule | None:
    """The graph of one call of `op`, in which every operator is served; None if there is none.

    `args` and `kwargs` are the call's arguments with meta (or fake) tensors in place of tensors. The graph's inputs are
    those tensors in the order of `pytree.tree_leaves((args, kwargs))`; everything else is part of it. Its outputs are the
    leaves of the result. An argument that `op` writes to is written by a `copy_` at the end (see `interpret`).
    """
    if not can_decompose(op):
        return None
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        again_args, again_kwargs = pytree.tree_unflatten(filled, spec)
        return pytree.tree_leaves(op(*again_args, **again_kwargs))

    table = dict(decomposition_table())
    own = _kernel(op)
    if own is not None:
        table.setdefault(op, own)
    for _ in range(_ROUNDS):
        try:
            graph = make_fx(torch.func.functionalize(call, remove="mutations"), decomposition_table=table)(*(leaves[i] for i in places))
        except Exception:  # a decomposition that looks at values, or an argument it refuses: whoever runs the operator next says so better
            return None
        graph.graph.eliminate_dead_code()
        graph.recompile()
        missing = unserved(graph)
        if not missing:
            return graph
        for other in missing:
            kernel = _kernel(other)
            if kernel is None or other in table:
                return None
            table[other] = kernel
    return None


def unserved(graph: GraphModule) -> list[Any]:
    """The operators of a graph that it cannot be run for, each once."""
    ops = dict.fromkeys(node.target for node in graph.graph.nodes if node.op == "call_function" and isinstance(node.target, internals.OpOverload))
    return [op for op in ops if not is_served(op) and not is_bookkeeping(op)]


def is_bookkeeping(op: Any) -> bool:
    """True for operators about sizes, numbers and assertions, which run while the program is built."""
    return base_name(op).startswith(("sym_", "_assert", "_local_scalar_dense")) or (
        op.namespace == "aten" and base_name(op) in ("item", "_make_dep_token")
    )


def can_decompose(op: Any) -> bool:
    """True if there is something to decompose an overload by; whether it works out depends on the call."""
    return isinstance(op, internals.OpOverload) and (op in decomposition_table() or _kernel(op) is not None or _is_composite(op))


def _is_composite(op: Any) -> bool:
    return internals.has_backend_kernel(op.name(), "CompositeImplicitAutograd")


def _kernel(op: Any) -> Callable[..., Any] | None:
    """A kernel that is written in other operators: a prim's ATen form, or a composite kernel of C++."""
    if op.namespace == "prims":
        return getattr(op, "impl_aten", None)
    if internals.has_backend_kernel(op.name(), "CompositeExplicitAutograd"):
        return internals.call_composite(op)
    return None
