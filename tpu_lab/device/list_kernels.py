"""Quick kernels for operators that take lists of tensors (`cat`, `stack`, `_foreach_*`): what `fastpath` does for single ones.

A list may hold any number of tensors, so there is no text to write out: one loop looks at each tensor once. As there,
anything unusual goes the general way, and the first call of a key does too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from . import deferral, events, fastpath, memory, modes, numbers, program_cache, state, strict, tensors
from .call import Call, NumberSlot, TensorSlot, freeze, split
from .plan import Plan


def can_be_quick(plan: Plan) -> bool:
    """True if a list of tensors is among the arguments, and what is written is the first argument, such a list, or nothing."""
    kinds = [a.kind for a in plan.arguments]
    if plan.lowering is None or plan.lowering.mutates or plan.lowering.random or plan.lowering.wants_out_specs or plan.out or "tensors" not in kinds:
        return False
    if any(a.name in fastpath.NO_PART_OF_IT for a in plan.arguments):
        return False
    if plan.in_place:
        return plan.return_count == 0 and kinds[0] == "tensors" and [a.written for a in plan.arguments].index(True) == 0 and _writes_once(plan)
    return plan.returns_list or plan.return_count == 1


def _writes_once(plan: Plan) -> bool:
    return sum(a.written for a in plan.arguments) == 1


class _Unusual(Exception):
    """This call has to go the general way."""


class _Scan:
    """One pass over a call's arguments: the key, the buffers, and what may become an input (offsets as int, numbers as arrays).

    The first `written` tensors are written to; a buffer of theirs may not come again. `reads`: whether the arrays are wanted.
    """

    __slots__ = ("arrays", "buffers", "inputs", "key", "positions", "reads", "written")

    def __init__(self, written: int, reads: bool) -> None:
        self.key: list[Any] = [torch.get_default_dtype()]
        self.buffers: list[memory.Buffer] = []
        self.positions: dict[memory.Buffer, int] = {}
        self.arrays: list[Any] = []
        self.inputs: list[Any] = []
        self.written = written
        self.reads = reads

    def list(self, values: Any) -> None:
        """A list of tensors. Raises _Unusual for a tensor of another device, an absent one, and a written one that comes again."""
        buffers, arrays, inputs, key, positions = self.buffers, self.arrays, self.inputs, self.key, self.positions
        key.append(len(values))
        for tensor in values:
            buffer = None if tensor is None else getattr(tensor.untyped_storage(), "buffer", None)
            if buffer is None:
                raise _Unusual
            count = len(buffers)
            position = positions.setdefault(buffer, count)
            if position == count:
                buffers.append(buffer)
                if self.reads:
                    arrays.append(buffer.array if buffer.array is not None else tensors.array_of(buffer))
            elif position < self.written:
                raise _Unusual
            else:
                key.append(("again", position))
            offset = tensor.storage_offset()
            inputs.append(offset)
            key += (buffer.layout, tensor.shape, tensor.stride(), tensor.dtype)
            if offset:
                key.append(fastpath.place(buffer.layout, tensor, offset))

    def number(self, value: Any) -> None:
        """A Python number."""
        self.key.append(value.__class__)
        self.inputs.append(numbers.number(value))

    def argument(self, value: Any, kind: str) -> None:
        """An argument of the kind its plan says."""
        if kind == "tensors":
            self.list(value)
        elif kind == "tensor" and isinstance(value, torch.Tensor):
            self.list((value,))
        elif value is None:
            self.key.append(None)
        elif kind in ("tensor", "number"):
            self.number(value)
        elif kind == "numbers":
            self.key.append(len(value))
            for one in value:
                self.number(one)
        else:
            frozen = freeze(value)
            self.key += (frozen, frozen.__class__)


def list_kernels(plan: Plan) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two kernels of the operator: one that runs, and one that defers. They raise what `strict.run` raises."""
    quick: dict[Any, Any] = {}
    return _kernel(plan, quick, defers=False), _kernel(plan, quick, defers=True)


def _kernel(plan: Plan, quick: dict[Any, Any], defers: bool) -> Callable[..., Any]:
    arguments = plan.arguments
    defaults = tuple(a.default for a in plan.arguments)
    keywords = tuple((a.name, a.default) for a in plan.arguments if a.keyword_only)
    positional = len(arguments) - len(keywords)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns() if events.observer is not None else 0
        values = args + defaults[len(args) : positional] + tuple([kwargs.get(name, default) for name, default in keywords])
        scan = _Scan(len(args[0]) if plan.in_place else 0, reads=not defers)
        try:
            for argument, value in zip(arguments, values, strict=True):
                scan.argument(value, argument.kind if not argument.is_absent_factor(value) else "static")
        except _Unusual:
            return strict.run(plan, args, kwargs)
        key = tuple(scan.key)
        entry = quick.get(key)
        if entry is None:
            return _learn(plan, quick, key, args, kwargs)
        if defers and not entry.general:
            return _defer(plan, entry, scan)
        if entry.general or (plan.in_place and (state.journals or any(b.shared for b in scan.buffers[: scan.written]))):
            return strict.run(plan, args, kwargs)
        return _run(plan, entry, scan, start)

    return kernel


def _learn(plan: Plan, quick: dict[Any, Any], key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first call of a quick key: the general way answers, and its program is remembered under the quick key where that can run it."""
    call = split(plan, args, kwargs)
    result = strict.run_call(plan, call, args, kwargs)
    entry = plan.programs.get(call.key)
    if isinstance(entry, strict.Entry):
        if entry.needed == tuple(range(len(call.buffers))) and not entry.checked and None not in entry.fresh:
            entry.moves = _inputs(call)
            program_cache.also(quick, key, entry)
        else:
            quick[key] = fastpath.GENERAL
    return result


def _inputs(call: Call) -> tuple[bool, ...]:
    """For each tensor and number of a call whether it has an input of its own: a number has, a tensor whose offset moves."""
    found = []
    for slot in call.slots:
        for one in slot if isinstance(slot, tuple) else (slot,):
            if isinstance(one, TensorSlot):
                found.append(one.moving is not None)
            elif isinstance(one, NumberSlot):
                found.append(True)
    return tuple(found)


def _run_inputs(entry: Any, scan: _Scan) -> list[Any]:
    """Offsets and numbers as arrays."""
    return [numbers.integer(x) if x.__class__ is int else x for x, is_input in zip(scan.inputs, entry.moves, strict=True) if is_input]


def _defer(plan: Plan, entry: Any, scan: _Scan) -> Any:
    """Hands a learned program to the deferred executor."""
    results = deferral.run(plan, entry, scan.buffers, _run_inputs(entry, scan), scan.buffers[: scan.written] if plan.in_place else ())
    if plan.in_place:
        return None
    return results if plan.returns_list else results[0]


def _run(plan: Plan, entry: Any, scan: _Scan, start: int) -> Any:
    """Runs a learned program."""
    observer = events.observer
    if memory.ledger.live + entry.bytes > memory.ledger.limit:
        memory.refuse(entry.bytes, plan.aten)
    buffers = scan.buffers
    arrays = scan.arrays + _run_inputs(entry, scan)
    outputs = strict.run_and_write(entry.executable, arrays, buffers[: scan.written] if plan.in_place else [], 0)
    entry.last = program_cache.tick()
    if modes.blocking or (observer is not None and observer.blocking):
        strict.wait(outputs)
    if plan.in_place:
        if observer is not None:
            observer.op(entry.info, start, time.perf_counter_ns(), buffers, buffers[: scan.written])
        return None
    results = [tensors.wrap(array, f.size, f.dtype, f.stride) for f, array in zip(entry.fresh, outputs, strict=True)]
    if observer is not None:
        observer.op(entry.info, start, time.perf_counter_ns(), buffers, [tensors.buffer_of(r) for r in results])
    return results if plan.returns_list else results[0]
