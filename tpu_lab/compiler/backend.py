"""The Dynamo backend `tpu`: AOTAutograd makes forward and backward graphs of ATen operators, each becomes one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from functorch.compile import config as functorch_config  # type: ignore[import-untyped]
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from ..device import _torch_internals as internals
from ..device.graph.decompose import decomposition_table
from ..device.graph.interpret import Unlowered
from ..device.graph.program import GraphProgram
from . import events, whole_step
from .capture import capture, changing_sizes, depends_on_values, op_by_op
from .events import Captured
from .interface import register_interface
from .options import Options, read
from .padded import PaddedProgram
from .rows import prove

HOOKED = "a tensor whose gradient is computed inside the compiled function has a hook on it; call backward() outside the compiled function"


def _compiler(kind: str, captured: Captured, options: Options) -> Callable[[torch.fx.GraphModule, Sequence[Any]], Any]:
    def compile_graph(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        shown = "step" if captured.is_step and kind == "inference" else kind
        program = GraphProgram(graph, f"{captured.name} ({shown})", aliases=kind == "inference", xla=options.xla, phase=kind, pair=captured.name)
        captured.programs.append(program)
        return _padded(graph, program, captured, options) if kind == "inference" and options.buckets is not None else program

    return compile_graph


def _padded(graph: torch.fx.GraphModule, program: GraphProgram, captured: Captured, options: Options) -> Any:
    """The program on padded inputs, where the graph's rows are proven apart and it writes and draws nothing; else as it is."""
    plain = not program.lowered.changes and not program.lowered.random and isinstance(_results(graph), (tuple, list))
    proof = prove(graph) if plain else None
    if proof is None or proof.reason:
        return program
    captured.sizes = "padded"
    return PaddedProgram(graph, program, proof.symbol, options.buckets)


def _results(graph: torch.fx.GraphModule) -> Any:
    return next(node for node in graph.graph.nodes if node.op == "output").args[0]


def tpu(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: Any = None) -> Callable[..., Any]:
    """Compiles a Dynamo graph for the device. Returns a function of the graph's inputs.

    `mode` and `options` are those of `torch.compile` (see `options.py`). Raises OptionError for one that is not accepted.

    The function runs the original graph op by op for a call whose inputs overlap in memory in a way that makes the
    compiled one wrong (an input that is written to shares its storage with another).
    """
    chosen = read(mode, options)
    register_interface()
    if not _uses_device(graph, example_inputs):
        return graph  # nothing of it is on the device: torch's own kernels run it
    captured = capture(graph)
    captured.is_step = whole_step.holds_backward(graph)
    captured.sizes = "exact" if changing_sizes(graph) else "static"
    start = time.perf_counter_ns()
    ready = _ready(graph, example_inputs, captured, chosen)
    compiled = _watched(_closing(graph, ready) if captured.is_step else ready, captured)
    captured.compile_ns = time.perf_counter_ns() - start
    if events.observer is not None:
        events.observer.captured(captured)
    return compiled


def _watched(function: Callable[..., Any], captured: Captured) -> Callable[..., Any]:
    """The function, which tells whoever listens that the graph runs, and notes whether it ended."""
    progress = events.progress

    def run(*args: Any) -> Any:
        if events.observer is not None:
            events.observer.ran(captured)
        progress.begun += 1
        result = function(*args)
        progress.changed += 1
        return result

    return run


def _closing(graph: torch.fx.GraphModule, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a graph that holds a backward pass, with what autograd would have done besides."""
    places = whole_step.spent_outputs(graph)

    def run(*args: Any) -> Any:
        if whole_step.hooked(args):
            raise NotImplementedError(HOOKED)
        results = function(*args)
        if not places:
            return results
        return [whole_step.spent(result) if place in places else result for place, result in enumerate(results)]

    return run


def _op_by_op(graph: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        events.progress.changed += 1
        return graph(*args)

    return run


def _ready(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], captured: Captured, options: Options) -> Callable[..., Any]:
    """The graph as a function of its inputs."""
    unknown = depends_on_values(graph)
    if unknown is not None:  # XLA needs every size before a program runs
        op_by_op(captured, "dynamic_size", f"the size of {unknown.name} depends on values", unknown)
        return _op_by_op(graph)
    if _writes(graph) and _overlap(example_inputs):  # AOTAutograd's results are wrong for some of these, or it raises half way
        op_by_op(captured, "mutation", "two inputs overlap in memory and one is written")
        return _op_by_op(graph)
    compile_both = aot_autograd(
        fw_compiler=_compiler("forward", captured, options),
        bw_compiler=_compiler("backward", captured, options),
        inference_compiler=_compiler("inference", captured, options),
        decompositions=decomposition_table(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    with functorch_config.patch(activation_memory_budget=options.memory_budget) if options.memory_budget < 1 else nullcontext():
        try:
            compiled: Callable[..., Any] = compile_both(graph, list(example_inputs))
        except Unlowered as missing:  # an operator of the user's own, say: op by op it runs with its CPU kernel
            captured.programs.clear()
            op_by_op(captured, "backend", str(missing), _calling(graph, missing.ops))
            return _op_by_op(graph)
    if not _writes(graph):
        return compiled
    traced_sharing, plainly = _sharing(example_inputs), _op_by_op(graph)

    def guarded(*args: Any) -> Any:
        return compiled(*args) if _sharing(args) == traced_sharing else plainly(*args)

    return guarded


def _calling(graph: torch.fx.GraphModule, ops: Sequence[Any]) -> torch.fx.Node | None:
    """The first node that calls one of the operators itself; None where another operator's decomposition does."""
    names = {op.name().partition(".")[0] for op in ops if hasattr(op, "_schema")}
    named = (
        (node, getattr(node.target, "_qualname", None) or str(node.target).replace(".", "::", 1).partition(".")[0]) for node in graph.graph.nodes
    )
    return next((node for node, name in named if name in names), None)


def _uses_device(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """True if an input, or a value made in the graph, is a tensor of the device."""
    metas = [n.meta.get("example_value", n.meta.get("val")) for n in graph.graph.nodes]
    held = list(graph.parameters()) + list(graph.buffers())
    return any(isinstance(v, torch.Tensor) and v.device.type == "tpu" for v in [*example_inputs, *metas, *held])


def _writes(graph: torch.fx.GraphModule) -> bool:
    """True if the graph holds an operator that writes to a tensor."""
    for node in graph.graph.nodes:
        if node.op == "call_method" and str(node.target).endswith("_") and not str(node.target).startswith("__"):
            return True
        if node.op == "call_function":
            name = getattr(node.target, "__name__", str(node.target))
            if "out" in node.kwargs or name in ("setitem", "iadd", "isub", "imul", "itruediv", "ipow", "ior", "iand") or name.endswith("_"):
                return True
    return False


def _overlap(values: Sequence[Any]) -> bool:
    """True if two of the tensors have elements of one storage in common, or may have: what counts is from first to last element."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for value in values:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            continue
        numbers = (*value.shape, *value.stride(), value.storage_offset())
        known = all(isinstance(n, int) for n in numbers)
        first: Any = value.storage_offset() if known else 0
        last: Any = first + sum((n - 1) * abs(s) for n, s in zip(value.shape, value.stride(), strict=True)) if known else 1 << 62
        held = spans.setdefault(internals.storage_key(value.untyped_storage()), [])
        if any(first <= other_last and other_first <= last for other_first, other_last in held):
            return True
        held.append((first, last))
    return False


def _sharing(values: Sequence[Any]) -> tuple[int, ...]:
    """For each input the first input with the same storage."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(internals.storage_key(v.untyped_storage()), i) if isinstance(v, torch.Tensor) else -1 for i, v in enumerate(values))
