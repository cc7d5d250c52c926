"""An FX graph to run: one XLA program for each way its inputs lie in memory.

The guards of Dynamo, and the trace of a decomposition, cover shapes, dtypes and strides, not storage offsets, aliases or how
large a storage is; those are part of the key here, so a graph is never run on memory it was not built for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import torch

from ...lowering.promotion import Number
from ...lowering.rng import Rng
from ...xla.executable import Executable, compile_program
from .. import checks, events, memory, modes, policies, program_cache, strict, tensors
from ..call import NumberSlot, Splitter, Static, TensorSlot
from ..events import OpProgram, TensorType
from ..host import host_to_numpy
from ..numbers import random_state
from ..program import FreshResult, fresh_result, laid_out, read_slot, write_slot
from ..transfer import on_host, to_device
from .interpret import LoweredGraph, lower_graph


@dataclass(eq=False)
class _Built:
    """A program and what its arrays are."""

    executable: Executable
    info: OpProgram
    outputs: tuple[Any, ...]  # FreshResult, or the constant an output is
    needed: tuple[int, ...]
    donated: frozenset[int]
    written: tuple[int, ...]
    checked: bool
    steps: int
    bytes: int
    last: int = 0


class GraphProgram:
    """A callable AOTAutograd can run: takes a list of tensors (which it empties, so that dead inputs die early) and gives a list.

    `kind` is what the record says of it (`compiled`, or `xla` for one operator's decomposition).
    """

    def __init__(self, graph: torch.fx.GraphModule, name: str, kind: str = "compiled") -> None:
        self._boxed_call = True  # on the instance: torch copies it along when it wraps the callable
        self.name, self.kind = name, kind
        self.lowered: LoweredGraph = lower_graph(graph, constant=_constant)
        self._programs: dict[Any, _Built] = {}
        outputs = next(n for n in graph.graph.nodes if n.op == "output").args[0]
        self._outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        self._single = not isinstance(outputs, (tuple, list))
        self._on_host = [i for i, o in enumerate(self._outputs) if _is_host_tensor(o)]

    def __call__(self, inputs: list[Any]) -> Any:
        splitter = Splitter()
        brought = {i: to_device(v) for i, v in enumerate(inputs) if self._is_brought(i, v)}
        slots = [self._slot(splitter, i, brought.get(i, value)) for i, value in enumerate(inputs)]
        key = (*splitter.key, torch.get_default_dtype())
        built = self._programs.get(key)
        if built is None:
            built = self._build(slots, splitter, inputs, key)
        changed_on_host = [(inputs[i], brought[i]) for i in self.lowered.changes if i in brought]
        inputs.clear()
        results = self._run(built, splitter)
        for host, twin in changed_on_host:
            host.copy_(twin)
        for place in self._on_host:
            results[place] = results[place].cpu()
        return results[0] if self._single else results

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
        outputs: list[Any] = []
        steps, flagged = 0, False

        def function(*arrays: jax.Array) -> list[jax.Array]:
            nonlocal steps, flagged
            storages = list(arrays[: len(layouts)])
            rest = arrays[len(layouts) :]
            values = [_value(slot, storages, rest) for slot in slots]
            rng = Rng(arrays[-1]) if self.lowered.random else None
            result = self.lowered(values, rng)
            outputs.clear()
            made = []
            for node, value in zip(self._outputs, result.outputs, strict=True):
                fresh = _described(node, value)
                outputs.append(fresh)
                if isinstance(fresh, FreshResult):
                    made.append(laid_out(value, fresh))
            for slot, value in zip(written_slots, result.changed, strict=True):
                write_slot(slot, storages, rest, value)
            made += [storages[i] for i in written]
            flagged = result.out_of_range is not None
            steps = rng.consumed if rng is not None else 0
            return [*made, result.out_of_range] if result.out_of_range is not None else made

        avals = [layout.aval() for layout in layouts] + [tensors.aval(a.shape, a.dtype) for a in splitter.inputs]
        if self.lowered.random:
            avals.append(tensors.aval((2,), np.uint64))
        start = time.perf_counter()
        executable = compile_program(function, avals, written, options=policies.for_xla())
        fresh = [o for o in outputs if isinstance(o, FreshResult)]
        kinds = tuple(TensorType(tuple(v.shape), str(v.dtype).removeprefix("torch.")) for v in inputs if isinstance(v, torch.Tensor))
        results = tuple(TensorType(f.size, str(f.dtype).removeprefix("torch.")) for f in fresh)
        info = strict.describe(self.name, self.kind, kinds, results, executable)
        needed = tuple(range(len(layouts)))
        built = _Built(executable, info, tuple(outputs), needed, frozenset(written), written, flagged, steps, sum(f.layout.nbytes for f in fresh))
        if events.observer is not None:
            events.observer.compiled(info, time.perf_counter() - start, "miss")
        program_cache.remember(self._programs, key, built, executable.nbytes)
        return built

    def _run(self, built: _Built, splitter: Splitter) -> list[Any]:
        observer = events.observer
        start = time.perf_counter_ns() if observer is not None else 0
        if memory.ledger.live + built.bytes > memory.ledger.limit:
            memory.refuse(built.bytes, self.name)
        buffers = splitter.buffers
        arrays = [strict.gather(b, i in built.donated) for i, b in enumerate(buffers)] + splitter.inputs
        if self.lowered.random:
            arrays.append(random_state(None, built.steps))
        done: list[list[jax.Array]] = []
        try:
            built.executable.run_into(done, arrays)
        finally:
            if done and built.written:
                new = done[0][len(done[0]) - len(built.written) - built.checked :]
                for position, array in zip(built.written, new, strict=False):
                    tensors.replace(buffers[position], array)
        made = done[0]
        built.last = program_cache.tick()
        if built.checked:
            checks.defer(made.pop(), self.name, memory.user_line())
        place, results = 0, []
        for output in built.outputs:
            if isinstance(output, FreshResult):
                results.append(tensors.wrap(made[place], output.size, output.dtype, output.stride))
                place += 1
            else:
                results.append(output)
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


def _constant(tensor: torch.Tensor) -> jax.Array:
    """A tensor held by the graph, as an array of its shape."""
    host = on_host(tensor) if tensor.device.type == "tpu" else tensor
    return jax.numpy.asarray(np.array(host_to_numpy(host)))


def _value(slot: Any, storages: Sequence[jax.Array], inputs: Sequence[jax.Array]) -> Any:
    if isinstance(slot, TensorSlot):
        return read_slot(slot, storages, inputs)
    if isinstance(slot, NumberSlot):
        return Number(inputs[slot.position]) if slot.weak else inputs[slot.position]
    return slot.value if isinstance(slot, Static) else None


def _described(node: Any, value: Any) -> Any:
    """What an output is: a fresh tensor laid out as the graph's fake tensor, or a constant."""
    if not isinstance(value, jax.Array):
        return value
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    size = tuple(value.shape)
    if isinstance(meta, torch.Tensor) and tuple(meta.shape) == size and all(isinstance(s, int) for s in meta.stride()):
        return fresh_result(size, meta.stride(), meta.dtype)
    return fresh_result(size, tensors.contiguous_stride(size), tensors.dtype_of(value))
