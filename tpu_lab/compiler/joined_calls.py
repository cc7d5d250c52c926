"""Graphs of torch.compile as they are called, linked by the tensors that travel between them, as one program of arrays.

A `Capture` stands in the way of the device's compiled graphs (`device.graph.program.tap`). It notes each call; run or not, the
results of one call are recognised as the inputs of a later one, so forward, backward and an optimizer's graph become one function.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import torch

from ..device import tensors
from ..device.graph import program as graphs
from ..device.graph.program import GraphProgram
from ..device.graph.structural import read_strided
from ..errors import OptionError
from ..lowering.dtypes import to_jax
from ..lowering.promotion import Number
from ..lowering.rng import Rng
from ..record.program import SourceOp
from .source_ops import calling_place, source_ops
from .twins import memory_key

_RESULT, _CHANGED = "result", "changed"


@dataclass(frozen=True)
class Geometry:
    """How a tensor lies in its storage."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Source:
    """Where an input of a call comes from: `input` number, or `result`/`changed` number `place` of call `call`."""

    kind: str
    place: int
    call: int = -1
    held: Geometry | None = None
    """How the source's tensor lies in the storage, if the input is another view of it."""
    wanted: Geometry | None = None


@dataclass(eq=False)
class Call:
    """One call of a graph: its program, where its inputs come from, and the number of its first node."""

    program: GraphProgram
    inputs: list[Any]
    """A Source for each tensor, other values as they are."""
    first: int
    site: tuple[str, int, str]
    """File (as shown), line and function of the code that called the graph."""


@dataclass(eq=False)
class Input:
    """An array the joined program takes: a tensor no graph made."""

    size: tuple[int, ...]
    dtype: torch.dtype
    storage: int
    """Key of its memory."""
    number: bool
    """A 0-dim CPU tensor, which promotes like a Python number."""


@dataclass(eq=False)
class _Held:
    """What a tensor's memory holds at this point of the capture: by which source, lying how.

    The tensor itself is not held: autograd takes over a gradient only if nobody else has it. A storage outside the device is,
    because its key is good only while it lives.
    """

    source: Source
    geometry: Geometry
    dtype: torch.dtype
    storage: torch.UntypedStorage | None


@dataclass(eq=False)
class Capture:
    """The calls made while it was on.

    `runs`: the graphs run as well, and calls are noted until a graph comes a second time (the next round of a loop). Otherwise
    results are empty tensors and nothing runs.
    """

    runs: bool
    names: dict[int, str] = field(default_factory=dict)
    """What a tensor's memory is to the user, by `memory_key`."""
    repeats: bool = False
    """True once a graph came a second time while graphs ran."""
    calls: list[Call] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    _held: dict[int, _Held] = field(default_factory=dict)
    _nodes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def on(self) -> Any:
        """Takes the calls of compiled graphs inside the block. Captures do not nest: the inner one takes the calls."""
        outer, graphs.tap = graphs.tap, self
        try:
            yield self
        finally:
            graphs.tap = outer

    def called(self, program: GraphProgram, inputs: list[Any]) -> list[Any]:
        """Notes a call and answers it."""
        with self._lock:
            if self.runs and (self.repeats or any(call.program is program for call in self.calls)):
                self.repeats = True
                return program.run(inputs)
            given = list(inputs)
            sources = [self._source(value, position, program) for position, value in enumerate(given)]
            call = Call(program, sources, self._nodes, calling_place(sys._getframe(1)))
            number = len(self.calls)
            self.calls.append(call)
            self._nodes += len(program.lowered.graph.graph.nodes)
            if self.runs:
                results = program.run(inputs)
            else:
                results = _empty_results(program, given)
                inputs.clear()
            for place, result in enumerate(results):
                if isinstance(result, torch.Tensor):
                    self._hold(result, Source(_RESULT, place, number))
            for place, position in enumerate(program.lowered.changes):
                self._write(given[position], sources[position], Source(_CHANGED, place, number))
            return results

    def _source(self, value: Any, position: int, program: GraphProgram) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        key, geometry = memory_key(value), _geometry(value)
        held = self._held.get(key)
        if held is None:
            number = value.ndim == 0 and value.device.type == "cpu" and position not in program.lowered.changes
            self.inputs.append(Input(geometry.size, value.dtype, key, number))
            held = self._hold(value, Source("input", len(self.inputs) - 1))
        if held.dtype != value.dtype:
            raise OptionError(f"{program.name} takes a {held.dtype} tensor as {value.dtype}, which one program of several graphs cannot say")
        if held.geometry == geometry:
            return held.source
        return Source(held.source.kind, held.source.place, held.source.call, held.geometry, geometry)

    def _hold(self, tensor: torch.Tensor, source: Source) -> _Held:
        held = self._held[memory_key(tensor)] = _Held(
            source, _geometry(tensor), tensor.dtype, None if tensor.device.type == "tpu" else tensor.untyped_storage()
        )
        return held

    def _write(self, tensor: Any, before: Any, after: Source) -> None:
        if not isinstance(tensor, torch.Tensor):
            return
        if isinstance(before, Source) and before.wanted is not None:
            raise OptionError("a graph writes to a view of a tensor that another graph takes whole, which one program cannot say")
        self._hold(tensor, after)

    def result_of(self, tensor: torch.Tensor) -> Source | None:
        """Where a tensor's contents come from if a captured graph made them; None otherwise."""
        held = self._held.get(memory_key(tensor))
        if held is None or held.source.kind == "input":
            return None
        return held.source if held.geometry == _geometry(tensor) else None


def _geometry(tensor: torch.Tensor) -> Geometry:
    return Geometry(tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))


def _empty_results(program: GraphProgram, inputs: Sequence[Any]) -> list[Any]:
    """What the graph would return, with empty tensors: a factory call that touches no memory."""
    results: list[Any] = []
    for node in program.outputs:
        meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
        if isinstance(meta, torch.Tensor):
            meta = torch.empty_strided(_known(meta.shape), _known(meta.stride()), dtype=meta.dtype, device=meta.device)
        elif isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise OptionError(f"{program.name} returns a number that is known only when it runs", accepted="programs of fixed shapes")
        results.append(meta)
    for place, root in program.shared.items():
        view = results[place]
        results[place] = results[root].as_strided(view.shape, view.stride(), program.outputs[place].meta["val"].storage_offset())
    return results[: program.count]


def _known(sizes: Sequence[Any]) -> list[int]:
    if not all(isinstance(n, int) for n in sizes):
        raise OptionError("a result's size depends on values", accepted="programs of fixed shapes", remedy="torch.where(mask, x, 0) keeps the size")
    return list(sizes)


@dataclass(frozen=True)
class Joined:
    """The calls of a capture as one function of flat arrays, ready to be lowered."""

    function: Callable[..., list[jax.Array]]
    avals: list[Any]
    donate: tuple[int, ...]
    labels: dict[int, str]
    ops: tuple[SourceOp, ...]


def join(capture: Capture, results: Sequence[torch.Tensor] | None) -> Joined:
    """One program of all captured calls.

    It returns `results` as far as a graph made them (None: every result that no later call takes), and the new contents of what
    graphs changed.
    """
    wanted = _unused(capture) if results is None else [source for tensor in results if (source := capture.result_of(tensor)) is not None]
    changed = _last_changes(capture)
    random = any(call.program.lowered.random for call in capture.calls)
    avals = [tensors.aval(i.size, to_jax(i.dtype)) for i in capture.inputs]
    if random:
        avals.append(tensors.aval((2,), np.uint64))

    def function(*arrays: jax.Array) -> list[jax.Array]:
        rng = Rng(arrays[-1]) if random else None
        made: list[Any] = []
        for call in capture.calls:
            values = [_value(source, capture, arrays, made) for source in call.inputs]
            made.append(call.program.lowered(values, rng if call.program.lowered.random else None, call.first))
        return [jax.numpy.asarray(_value(source, capture, arrays, made)) for source in [*wanted, *(s for _, s in changed)]]

    donate = tuple(position for position, _ in changed)
    labels = {i: capture.names.get(one.storage) or f"input {i}" for i, one in enumerate(capture.inputs)}
    if random:
        labels[len(capture.inputs)] = "random state"
    return Joined(function, avals, donate, labels, tuple(_ops(capture)))


def _unused(capture: Capture) -> list[Source]:
    """The results that no later call takes."""
    taken = {(s.call, s.place) for call in capture.calls for s in call.inputs if isinstance(s, Source) and s.kind == _RESULT}
    return [
        Source(_RESULT, place, number)
        for number, call in enumerate(capture.calls)
        for place, node in enumerate(call.program.outputs[: call.program.count])
        if (number, place) not in taken and isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def _last_changes(capture: Capture) -> list[tuple[int, Source]]:
    """Input positions that graphs write to, with the last contents of each."""
    last: dict[int, Source] = {}
    owner: dict[tuple[int, int], int] = {}
    for number, call in enumerate(capture.calls):
        for place, position in enumerate(call.program.lowered.changes):
            before = call.inputs[position]
            if not isinstance(before, Source):
                continue
            origin = before.place if before.kind == "input" else owner.get((before.call, before.place)) if before.kind == _CHANGED else None
            if origin is not None:
                owner[(number, place)] = origin
                last[origin] = Source(_CHANGED, place, number)
    return sorted(last.items())


def _value(source: Any, capture: Capture, arrays: Sequence[jax.Array], made: Sequence[Any]) -> Any:
    if not isinstance(source, Source):
        return source
    if source.kind == "input":
        given = capture.inputs[source.place]
        value: Any = Number(arrays[source.place]) if given.number else arrays[source.place]
    else:
        call = made[source.call]
        value = call.outputs[source.place] if source.kind == _RESULT else call.changed[source.place]
    if source.wanted is None or source.held is None:
        return value
    held, wanted = source.held, source.wanted
    return read_strided(value, held.stride, held.offset, wanted.size, wanted.stride, wanted.offset)


def _ops(capture: Capture) -> list[SourceOp]:
    """The ops of all calls, backward ones linked to the forward ops of their pair."""
    sequences: dict[str, dict[int, str]] = {}
    found: list[SourceOp] = []
    after_backward = False
    for call in capture.calls:
        phase = call.program.phase
        after_backward |= phase == "backward"
        shown = "backward" if phase == "backward" else "optimizer" if after_backward and call.program.lowered.changes else "forward"
        found += source_ops(call.program.lowered.graph.graph, call.first, shown, sequences.setdefault(call.program.pair, {}), call.site)
    return found
