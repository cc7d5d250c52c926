"""An FX graph to run: one XLA program for each way its inputs lie in memory.

The guards of Dynamo, and the trace of a decomposition, cover shapes, dtypes and strides, not storage offsets, aliases or how
large a storage is; those are part of the key here, so a graph is never run on memory it was not built for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
import torch

from ...lowering.promotion import Number
from ...lowering.rng import Rng
from ...xla.executable import Executable, compile_program
from .. import _torch_internals as internals
from .. import checks, deferral, events, memory, modes, policies, program_cache, strict, tensors
from ..call import NumberSlot, Splitter, Static, TensorSlot
from ..events import OpProgram, TensorType
from ..host import host_to_numpy
from ..numbers import random_state
from ..program import FreshResult, fresh_result, laid_out, read_slot, write_slot
from ..transfer import on_host, to_device
from . import geometry, host_side
from .interpret import LoweredGraph, lower_graph
from .nodes import view_root

MOST_PROGRAMS = 64
"""Of one graph; for the next size the one that was not used for the longest time goes."""


@dataclass(eq=False)
class _Built:
    """A program and what its arrays are."""

    executable: Executable
    info: OpProgram
    outputs: tuple[Any, ...]  # FreshResult, SharedResult, or the constant an output is
    needed: tuple[int, ...]
    donated: frozenset[int]
    written: tuple[int, ...]
    checked: bool
    asserts: tuple[str, ...]
    steps: int
    bytes: int
    last: int = 0


@dataclass(frozen=True)
class SharedResult:
    """An output that shows the memory of another one, at position `root`: a write to either shows in both."""

    root: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Tap(Protocol):
    """Who stands in the way of graphs of torch.compile."""

    def called(self, program: GraphProgram, inputs: list[Any]) -> list[Any]:
        """Takes a call; answers with the results, from `program.run(inputs)` or otherwise."""
        ...


tap: Tap | None = None
"""One listener for the calls of compiled graphs; set by `compiler.joined_calls`."""


class GraphProgram:
    """A callable AOTAutograd can run: takes a list of tensors (which it empties, so that dead inputs die early) and gives a list.

    `kind` is what the record says of it (`compiled`, or `xla` for one operator's decomposition). `aliases`: outputs that are
    views of one tensor share its memory (AOTAutograd sees to it only where gradients are involved). `xla`: more options for XLA.
    `phase` is what AOTAutograd made the graph for (`forward`, `backward`, `inference`); graphs of one `pair` were made from one of Dynamo's.
    """

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        name: str,
        kind: str = "compiled",
        aliases: bool = False,
        xla: Mapping[str, Any] | None = None,
        phase: str = "inference",
        pair: str = "",
    ) -> None:
        self._boxed_call = True  # on the instance: torch copies it along when it wraps the callable
        self.name, self.kind, self.phase, self.pair = name, kind, phase, pair
        self._xla = dict(xla or {})
        graph, self._host_side = host_side.split(graph) if kind == "compiled" else (graph, None)
        outputs = next(n for n in graph.graph.nodes if n.op == "output").args[0]
        self._single = not isinstance(outputs, (tuple, list))
        given = [outputs] if self._single else list(outputs)
        self._placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        known = geometry.symbols(self._placeholders)
        roots = shared_roots(given, known) if aliases else []
        self.count = len(given)
        self.outputs = given + [r for r in roots if r not in given]
        shown = {i: self.outputs.index(root) for i, o in enumerate(given) if (root := _shown_root(o, roots, known)) is not None}
        self.shared = {i: root for i, root in shown.items() if root != i}
        self.lowered: LoweredGraph = lower_graph(
            _returning(graph, self.outputs) if len(self.outputs) > len(given) else graph, constant=constant_array
        )
        self._programs: dict[Any, _Built] = {}
        self._on_host = [i for i, o in enumerate(given) if _is_host_tensor(o)]
        self._numbers = [i for i, o in enumerate(given) if _is_symbol(o)]

    @property
    def program_count(self) -> int:
        """How many programs were made of the graph and are kept: one for each way its inputs lay in memory, and for each size."""
        return len(self._programs)

    @internals.never_traced
    def __call__(self, inputs: list[Any], generator: Any = None) -> Any:
        if tap is not None and self.kind == "compiled":
            results = tap.called(self, inputs)
            return results[0] if self._single else results
        results = self.run(inputs, generator)
        return results[0] if self._single else results

    def run(self, inputs: list[Any], generator: Any = None) -> list[Any]:
        """Runs the graph as a program of the device; the results are always a list."""
        splitter = Splitter()
        brought = {i: to_device(v) for i, v in enumerate(inputs) if self._is_brought(i, v)}
        slots = [self._slot(splitter, i, brought.get(i, value)) for i, value in enumerate(inputs)]
        key = (*splitter.key, torch.get_default_dtype())
        built = self._programs.get(key)
        if built is None:
            built = self._build(slots, splitter, inputs, key)
        changed_on_host: list[tuple[torch.Tensor, torch.Tensor]] = [(inputs[i], brought[i]) for i in self.lowered.changes if i in brought]
        if self._host_side is not None:
            changed_on_host += self._host_side.values(inputs)
        inputs.clear()
        results = self._run(built, splitter, generator)
        for host, new in changed_on_host:
            host.copy_(new)
        for place in self._on_host:
            if results[place] is not None:  # the token of an operator that may raise
                results[place] = results[place].cpu()
        for place in self._numbers:
            if isinstance(results[place], torch.Tensor):
                results[place] = results[place].item()
        return results

    def _is_brought(self, position: int, value: Any) -> bool:
        """True for a CPU tensor that the program needs as an array: all but 0-dim ones it only reads, which are numbers."""
        return isinstance(value, torch.Tensor) and value.device.type == "cpu" and (value.ndim > 0 or position in self.lowered.changes)

    def _slot(self, splitter: Splitter, position: int, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return splitter.tensor(value, f"input {position}", self.name)
        if position in self.lowered.known or not isinstance(value, (int, float, complex)):
            return splitter.static(value)
        return splitter.number(value)

    def _build(self, slots: list[Any], splitter: Splitter, inputs: Sequence[Any], key: Any) -> _Built:
        layouts = [b.layout for b in splitter.buffers]
        written_slots = [slots[i] for i in self.lowered.changes]
        written = tuple(dict.fromkeys(s.storage for s in written_slots))
        bound = geometry.bindings(self._placeholders, inputs)
        outputs: list[Any] = []
        steps, flagged = 0, False
        messages: list[str] = []

        def function(*arrays: jax.Array) -> list[jax.Array]:
            nonlocal steps, flagged
            storages = list(arrays[: len(layouts)])
            rest = arrays[len(layouts) :]
            values = [_value(slot, storages, rest) for slot in slots]
            rng = Rng(arrays[-1]) if self.lowered.random else None
            result = self.lowered(values, rng)
            outputs.clear()
            made = []
            for place, (node, value) in enumerate(zip(self.outputs, result.outputs, strict=True)):
                fresh = self._shared_result(place, bound) or _described(node, value, bound)
                outputs.append(fresh)
                if isinstance(fresh, FreshResult):
                    made.append(laid_out(value, fresh))
            for slot, value in zip(written_slots, result.changed, strict=True):
                write_slot(slot, storages, rest, value)
            made += [storages[i] for i in written]
            flagged = result.found is not None
            steps = rng.consumed if rng is not None else 0
            messages[:] = [message for _, message in result.asserted]
            made += [failed for failed, _ in result.asserted]
            return [*made, result.found] if result.found is not None else made

        avals = [layout.aval() for layout in layouts] + [tensors.aval(a.shape, a.dtype) for a in splitter.inputs]
        if self.lowered.random:
            avals.append(tensors.aval((2,), np.uint64))
        start = time.perf_counter()
        executable = compile_program(function, avals, written, options={**policies.for_xla(), **self._xla})
        fresh = [o for o in outputs if isinstance(o, FreshResult)]
        kinds = tuple(TensorType(tuple(v.shape), str(v.dtype).removeprefix("torch.")) for v in inputs if isinstance(v, torch.Tensor))
        results = tuple(TensorType(f.size, str(f.dtype).removeprefix("torch.")) for f in fresh)
        info = strict.describe(self.name, self.kind, kinds, results, executable)
        needed = tuple(range(len(layouts)))
        size = sum(f.layout.nbytes for f in fresh)
        built = _Built(executable, info, tuple(outputs), needed, frozenset(written), written, flagged, tuple(messages), steps, size)
        if events.observer is not None:
            events.observer.compiled(info, time.perf_counter() - start, executable.origin)
        if len(self._programs) >= MOST_PROGRAMS:
            program_cache.forget(min(self._programs.values(), key=lambda one: one.last))
        program_cache.remember(self._programs, key, built, executable.nbytes)
        return built

    def _check(self, built: _Built, made: list[jax.Array]) -> None:
        """Takes the checks off the results. Where each call is waited for and nothing was written yet, a failed one raises here."""
        at_once = not built.written and not self.lowered.random and (modes.blocking or (events.observer is not None and events.observer.blocking))
        line = memory.user_line()
        found: list[tuple[Any, str, str, Callable[[str, str], Exception] | None]] = []
        if built.checked:
            found.append((made.pop(), self.name, line, None))
        found += [(made.pop(), message, line, checks.false_assertion) for message in reversed(built.asserts)]
        for failed, name, at, error in found:
            if not at_once:
                checks.defer(failed, name, at, error)
            elif code := int(failed):
                raise checks.error_of(code, name, at) if error is None else error(name, at)

    def _shared_result(self, place: int, bound: geometry.Bindings) -> SharedResult | None:
        """How an output lies in the memory of another; None for a tensor of its own."""
        if place not in self.shared:
            return None
        found = geometry.of(self.outputs[place].meta["val"], bound)
        assert found is not None, "outputs whose geometry cannot be known are never shared"
        return SharedResult(self.shared[place], *found)

    def _run(self, built: _Built, splitter: Splitter, generator: Any) -> list[Any]:
        if self.kind == "compiled":
            deferral.cut("compile_mode_execution")
        observer = events.observer
        start = time.perf_counter_ns() if observer is not None else 0
        if memory.ledger.live + built.bytes > memory.ledger.limit:
            memory.refuse(built.bytes, self.name)
        buffers = splitter.buffers
        arrays = [strict.gather(b, i in built.donated) for i, b in enumerate(buffers)] + splitter.inputs
        if self.lowered.random:
            arrays.append(random_state(generator, built.steps))
        fresh_count = sum(isinstance(o, FreshResult) for o in built.outputs)
        made = strict.run_and_write(built.executable, arrays, [buffers[i] for i in built.written], fresh_count)
        built.last = program_cache.tick()
        self._check(built, made)
        place, results = 0, []
        for output in built.outputs:
            if isinstance(output, FreshResult):
                results.append(tensors.wrap(made[place], output.size, output.dtype, output.stride))
                place += 1
            else:
                results.append(output)
        for i, output in enumerate(built.outputs):
            if isinstance(output, SharedResult):
                results[i] = results[output.root].as_strided(output.size, output.stride, output.offset)
        del results[self.count :]
        if observer is not None:
            if observer.blocking:
                strict.wait(made)
            fresh = [tensors.buffer_of(r) for r in results if isinstance(r, torch.Tensor)]
            observer.op(built.info, start, time.perf_counter_ns(), buffers, [*fresh, *(buffers[i] for i in built.written)])
        elif modes.blocking:
            strict.wait(made)
        return results


def _is_host_tensor(node: Any) -> bool:
    """True for a graph output that is a tensor on the CPU."""
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(meta, torch.Tensor) and meta.device.type == "cpu"


def _is_symbol(node: Any) -> bool:
    """True for a graph output that is a Python number, known only when the program has run."""
    return isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


def shared_roots(outputs: Sequence[Any], known: frozenset[Any] = frozenset()) -> list[torch.fx.Node]:
    """The tensors made in a graph of which several outputs are views (or the tensor and a view of it)."""
    nodes = [o for o in outputs if isinstance(o, torch.fx.Node)]
    roots = [view_root(o) for o in nodes]
    return [r for r in dict.fromkeys(roots) if roots.count(r) > 1 and r.op == "call_function" and _is_plain(r, known)]


def _is_plain(node: torch.fx.Node, known: frozenset[Any]) -> bool:
    """True for a tensor of the device whose geometry follows from the inputs', with no conjugation pending."""
    meta = node.meta.get("val")
    if not isinstance(meta, torch.Tensor) or meta.device.type != "tpu" or meta.is_conj() or meta.is_neg():
        return False
    return geometry.is_known(meta, known)


def _shown_root(node: Any, roots: Sequence[torch.fx.Node], known: frozenset[Any]) -> torch.fx.Node | None:
    """The one of `roots` in whose memory an output lies; None if it is a tensor of its own."""
    root = view_root(node) if isinstance(node, torch.fx.Node) else None
    if root is None or root not in roots or not _is_plain(node, known) or node.meta["val"].dtype != root.meta["val"].dtype:
        return None
    return root


def _returning(graph: torch.fx.GraphModule, outputs: Sequence[torch.fx.Node]) -> torch.fx.GraphModule:
    """A copy of a graph that returns `outputs`, nodes of the original."""
    new = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    new.graph_copy(graph.graph, copies)
    new.output(tuple(copies[o] if isinstance(o, torch.fx.Node) else o for o in outputs))
    return torch.fx.GraphModule(graph, new)


def constant_array(tensor: torch.Tensor) -> jax.Array:
    """A tensor held by the graph, as an array of its shape."""
    host = on_host(tensor) if tensor.device.type == "tpu" else tensor
    return jax.numpy.asarray(np.array(host_to_numpy(host)))


def _value(slot: Any, storages: Sequence[jax.Array], inputs: Sequence[jax.Array]) -> Any:
    if isinstance(slot, TensorSlot):
        return read_slot(slot, storages, inputs)
    if isinstance(slot, NumberSlot):
        return Number(inputs[slot.position]) if slot.weak else inputs[slot.position]
    return slot.value if isinstance(slot, Static) else None


def _described(node: Any, value: Any, bound: geometry.Bindings) -> Any:
    """What an output is: a fresh tensor laid out as the graph's fake tensor, or a constant."""
    if not isinstance(value, jax.Array):
        return value
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    size = tuple(value.shape)
    found = geometry.of(meta, bound) if isinstance(meta, torch.Tensor) else None
    if isinstance(meta, torch.Tensor) and found is not None and found[0] == size:
        return fresh_result(size, found[1], meta.dtype)
    return fresh_result(size, tensors.contiguous_stride(size), tensors.dtype_of(value))
