"""Operators without a lowering of their own: through their decomposition as one program if that exists, else on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from . import dtype_trial, strict
from ._torch_internals import pytree
from .call import Call, split
from .fallback import fall_back
from .graph.decompose import decompose
from .graph.interpret import Unlowered
from .graph.program import GraphProgram
from .plan import Plan, plan_for
from .program import meta_arguments

_NO_WAY = object()


def run_decomposed(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `op` through its decomposition; falls back to the CPU, recorded, where there is none."""
    plan = plan_for(op)
    if plan.out and plan.functional is not None:
        return _through_functional(plan, args, kwargs)
    if plan.out or not any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves((args, kwargs))):
        return fall_back(op, args, kwargs, "no lowering for this overload")
    call = split(plan, args, kwargs)
    way = plan.programs.get(call.key)
    if way is None:
        way = plan.programs[call.key] = _find_way(plan, call)
    if way is _NO_WAY:
        return fall_back(op, args, kwargs, "no lowering and no decomposition")
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    results = way(tensors, call.generator)
    return strict.hand_out(plan, call, [r for r in results if r is not None] if plan.returns_list else results)


def _through_functional(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An `out=` form as its functional form, whose results are written into the targets (resized and cast as torch does)."""
    _refuse_dtypes(plan, args, kwargs)
    given = {a.name: args[i] if i < len(args) else kwargs.get(a.name, a.default) for i, a in enumerate(plan.arguments)}
    wanted = plan_for(plan.functional).arguments
    positional = tuple(given[a.name] for a in wanted if not a.keyword_only)
    named = {a.name: given[a.name] for a in wanted if a.keyword_only and given.get(a.name) is not None}
    # never through the dispatcher: torch's composite of the functional form would call the out= form again
    results = run_decomposed(plan.functional, positional, named)
    fresh = list(results) if isinstance(results, (tuple, list)) else [results]
    targets = [given[name] for name in plan.out]
    flat = [t for value in targets for t in (value if isinstance(value, (tuple, list)) else (value,))]
    strict.fit_targets(fresh, flat)
    for target, value in zip(flat, fresh, strict=True):
        target.copy_(value)
    return targets[0] if plan.return_count == 1 else tuple(targets)


def _refuse_dtypes(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses, as torch does, the targets' dtypes: once for each kind of call."""
    call = split(plan, args, kwargs)
    if call.key not in plan.programs:
        dtype_trial.refuse_unsupported_dtypes(plan, call)
        plan.programs[call.key] = _NO_WAY


def _find_way(plan: Plan, call: Call) -> Any:
    dtype_trial.refuse_unsupported_dtypes(plan, call)
    positional, named = meta_arguments(plan, call)
    graph = decompose(plan.op, positional, named)
    if graph is None:
        return _NO_WAY
    try:
        return GraphProgram(graph, plan.aten, kind="xla")
    except (Unlowered, ValueError):
        return _NO_WAY
