"""What is known of a graph when Dynamo hands it over: the function it comes from, where it begins, and the break at its end."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from . import break_text
from .events import BreakTold, Captured, Frame

_numbers = itertools.count()
_OPERATORS = ("call_function", "call_method", "call_module")


def capture(graph: torch.fx.GraphModule) -> Captured:
    """The facts of a Dynamo graph. A graph made by hand has no function and no break."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    frames = break_text.frames_of(reason.user_stack) if reason is not None else []
    nodes = [node for node in graph.graph.nodes if node.op in _OPERATORS]
    root = frames[0] if frames else Frame("", 0)
    resumed = break_text.resumed_at(root.function)
    return Captured(
        f"graph {next(_numbers)}",
        Frame(root.filename, resumed or _first_line(nodes, root) or root.line, root.function),
        len(nodes),
        resumed,
        _broken(reason, frames),
    )


def op_by_op(captured: Captured, reason: str, words: str, node: torch.fx.Node | None = None) -> None:
    """Notes that a graph runs op by op: the reason's id, in words, and the node it is about (else the function's first line)."""
    frames = break_text.frames_in(node.meta.get("stack_trace") or "") if node is not None else []
    captured.broken = break_text.with_stack(BreakTold(words, reason=reason, uncompiled=True), frames or [captured.frame])


def _broken(reason: Any, frames: list[Frame]) -> BreakTold | None:
    if reason is None or not reason.graph_break:
        return None
    return break_text.with_stack(break_text.parse(str(reason.reason)), frames)


def changing_sizes(graph: torch.fx.GraphModule) -> bool:
    """Whether an input has a size that is a symbol of the graph."""
    metas = [node.meta.get("example_value") for node in graph.graph.nodes if node.op == "placeholder"]
    return any(isinstance(size, torch.SymInt) for meta in metas if isinstance(meta, torch.Tensor) for size in meta.shape)


def depends_on_values(graph: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The first node whose result has a size that is known only when values are, and that no input tells; None if there is none."""
    told: set[Any] = set()
    for node in graph.graph.nodes:
        meta = node.meta.get("example_value")
        unknown = free_unbacked_symbols(meta.shape) if isinstance(meta, torch.Tensor) else set()
        if node.op == "placeholder":
            told |= unknown | (free_unbacked_symbols(meta) if isinstance(meta, torch.SymInt) else set())
        elif unknown - told:
            return node  # type: ignore[no-any-return]
    return None


def _first_line(nodes: list[torch.fx.Node], root: Frame) -> int:
    """The line of the function at which its first operator stands."""
    for node in nodes:
        for frame in break_text.frames_in(node.meta.get("stack_trace") or ""):
            if frame.filename == root.filename:
                return frame.line
    return 0
