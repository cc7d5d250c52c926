"""The strict executor: each operator call runs alone, as one cached XLA program over whole storages.

A program is looked up by the split call's key. A miss asks PyTorch's meta kernels for the results (and so for the user's
mistakes), traces the lowering and compiles. Programs of ever-changing shapes run as host kernels first (`host_first`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import chain, islice
from typing import Any

import jax
import torch

from ..xla.executable import Executable, compile_program
from . import _torch_internals as internals
from . import checks, deferral, dtype_trial, events, host_first, memory, modes, overlap, policies, program_cache, refusals, state, tensors
from .call import Call, TensorSlot, input_types, split
from .events import OpProgram, TensorType
from .memory import Buffer
from .numbers import random_state
from .plan import Plan
from .program import FreshResult, Traced, meta_results, trace, written_slots
from .tensors import contiguous_stride, wrap


class Entry:
    """A program ready to run: how to run it and what its arrays are."""

    general = False

    __slots__ = (
        "avals",
        "bytes",
        "checked",
        "consume",
        "donated",
        "executable",
        "execute",
        "family",
        "fresh",
        "function",
        "handlers",
        "info",
        "last",
        "made",
        "moves",
        "needed",
        "offsets",
        "random",
        "rng_steps",
        "run",
        "takes",
        "work",
        "written",
    )

    def __init__(self, traced: Traced, executable: Any, info: OpProgram) -> None:
        self.run: Callable[[Sequence[jax.Array]], list[jax.Array]] = executable.run
        self.executable = executable
        self.execute, self.handlers, self.consume = executable.execute, executable.handlers, executable.consume
        self.function, self.avals = traced.function, traced.avals
        self.moves: tuple[bool, ...] | None = None
        self.offsets: tuple[int, ...] = ()
        self.info = info
        self.work: float | None = None
        self.family: Collection[int] = ()
        self.fresh = traced.fresh
        self.needed = traced.needed
        self.written = traced.written
        self.donated = tuple(i for i in traced.written if i in traced.needed)
        self.takes = tuple(i in traced.written for i in traced.needed)
        self.checked = traced.checked
        self.made = sum(f is not None for f in traced.fresh)
        self.random = traced.random
        self.rng_steps = traced.rng_steps
        self.bytes = sum(0 if f is None else f.layout.nbytes for f in traced.fresh)
        self.last = 0

    def pair(self, outputs: list[jax.Array]) -> list[tuple[FreshResult | None, Any]]:
        """Each fresh result with its array (None for an undefined one)."""
        position, pairs = 0, []
        for result in self.fresh:
            pairs.append((result, None if result is None else outputs[position]))
            position += result is not None
        return pairs


def run(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator that has a lowering. Raises PyTorch's exception for a call PyTorch refuses."""
    call = split(plan, args, kwargs)
    if plan.functional_base in _SIZED_BY_NUMBERS:
        call = dataclasses.replace(call, key=(*call.key, _length(plan, call)))
    return run_call(plan, call, args, kwargs)


_SIZED_BY_NUMBERS = frozenset({"arange", "range"})
"""Factories whose numbers, which are arguments of the program, decide the size of the result: the size belongs to the key."""


def _length(plan: Plan, call: Call) -> int:
    """The elements of a range: counted here for small integers, by PyTorch's meta kernel for all else (and for what it refuses)."""
    given = {a.name: value for a, value in zip(plan.arguments, call.arguments, strict=True)}
    start, end, step = given.get("start", 0), given["end"], given.get("step", 1)
    if plan.functional_base == "arange" and all(v.__class__ is int and abs(v) < 2**52 for v in (start, end, step)) and (end - start) * step > 0:
        return -((start - end) // step)  # type: ignore[no-any-return]
    (meta,) = meta_results(plan, call)
    return 0 if meta is None else meta.numel()


def run_call(plan: Plan, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same for a call that is split already."""
    if call.shared and (plan.in_place or plan.out):
        overlap.refuse_shared_operands(plan, call)
    entry = plan.programs.get(call.key)
    if entry is None:
        if host_first.wants_host(plan, call):
            return host_first.run(plan, call, args, kwargs, compile_later)
        try:
            entry = build(plan, call)
        except Resized:
            call = split(plan, args, kwargs)
            entry = plan.programs.get(call.key) or build(plan, call)
    return execute(plan, call, entry)


def build(plan: Plan, call: Call) -> Any:
    """Makes the program of a call and puts it into the plan's cache."""
    assert plan.lowering is not None
    refusals.refuse_empty_reduction(plan, call)
    refusals.refuse_mixed_dtypes(plan, call)
    dtype_trial.refuse_unsupported_dtypes(plan, call)
    metas = meta_results(plan, call)
    overlap.refuse_expanded_target(plan, call)
    if plan.out:
        fit_outputs(plan, call, metas)
    traced = trace(plan, call, plan.lowering, metas)
    return compile_entry(plan, call, traced, metas)


def describe(op: str, kind: str, inputs: tuple[TensorType, ...], outputs: tuple[TensorType, ...], executable: Executable) -> OpProgram:
    """What observers are told about a compiled program, with the compiler's figures."""
    cost = executable.cost()
    return OpProgram(op, kind, inputs, outputs, cost.flops, cost.temp_bytes, cost.kernels, cost.bytes_accessed, program_cache.next_id())


def compile_later(plan: Plan, call: Call) -> Callable[[], None]:
    """A job that makes a call's program and holds none of its tensors. A failure leaves the host kernel in place."""
    metas = meta_results(plan, call)
    assert plan.lowering is not None
    traced = trace(plan, call, plan.lowering, metas)
    call.arguments.clear()

    def job() -> None:
        with contextlib.suppress(Exception):  # the call works as it is; an error here has nobody to go to
            if call.key not in plan.programs:
                compile_entry(plan, call, traced, metas)

    return job


def compile_entry(plan: Plan, call: Call, traced: Traced, metas: Sequence[torch.Tensor | None]) -> Entry:
    """Compiles a traced program and caches it under the call's key."""
    donate = [traced.needed.index(i) for i in traced.written if i in traced.needed]
    largest = max((layout.nbytes for layout in call.layouts), default=0)
    largest = max([largest, *(0 if m is None else m.numel() * m.element_size() for m in metas)])
    start = time.perf_counter()
    small = None if traced.random else largest  # random numbers have to be those of a graph, which is compiled in full
    executable = compile_program(traced.function, traced.avals, donate, largest=small, single=_is_single(plan, call), options=policies.for_xla())
    info = describe(plan.aten, "xla", input_types(call), tuple(_meta_type(m) for m in metas if m is not None), executable)
    entry = Entry(traced, executable, info)
    entry.offsets = moving_inputs(call)
    entry.family = host_first.shapes_of(call)
    seconds = time.perf_counter() - start
    if events.observer is not None:
        events.observer.compiled(info, seconds, executable.origin)
    program_cache.remember(plan.programs, call.key, entry, executable.nbytes)
    return entry


_SINGLE = frozenset({"add", "sub", "mul", "div", "neg", "sqrt", "rsqrt", "pow", "slice_backward"})
"""Operators that are one operation of XLA (or are in their usual form)."""


def _is_single(plan: Plan, call: Call) -> bool:
    """True if a program is one arithmetic operation on contiguous tensors of one shape."""
    slots = [s for s in call.slots if isinstance(s, TensorSlot)]
    return plan.functional_base in _SINGLE and all(s.size == slots[0].size and s.stride == contiguous_stride(s.size) for s in slots)


def moving_arguments(call: Call) -> tuple[bool, ...] | None:
    """For each argument whether its storage offset is an input; None if none is."""
    moves = tuple(isinstance(s, TensorSlot) and s.moving is not None for s in call.slots)
    return moves if any(moves) else None


def moving_inputs(call: Call) -> tuple[int, ...]:
    """Which of a call's inputs are storage offsets."""
    found = []
    for slot in call.slots:
        found += [s.moving for s in (slot if isinstance(slot, tuple) else (slot,)) if isinstance(s, TensorSlot) and s.moving is not None]
    return tuple(found)


def _meta_type(meta: torch.Tensor) -> TensorType:
    return TensorType(tuple(meta.shape), str(meta.dtype).removeprefix("torch."))


def execute(plan: Plan, call: Call, entry: Entry) -> Any:
    """Runs a program on the call's arrays and hands out its results as the schema says."""
    if modes.fusing and modes.defers_here():
        deferral.load()
        return deferral.execute(plan, call, entry)
    observer = events.observer
    start = time.perf_counter_ns() if observer is not None else 0
    if memory.ledger.live + entry.bytes > memory.ledger.limit:
        memory.refuse(entry.bytes, plan.aten)
    buffers = call.buffers
    arrays = [gather(buffers[i], i in entry.donated) for i in entry.needed]
    arrays += call.inputs
    if entry.random:
        arrays.append(random_state(call.generator, entry.rng_steps))
    outputs = run_and_write(entry.executable, arrays, [buffers[i] for i in entry.written], entry.made)
    entry.last = program_cache.tick()
    if entry.checked:
        check(plan, outputs.pop())
    results = [None if f is None else wrap(a, f.size, f.dtype, f.stride) for f, a in entry.pair(outputs)]
    if observer is not None:
        if observer.blocking:
            wait(outputs)
        made = [tensors.buffer_of(r) for r in results if r is not None]
        observer.op(entry.info, start, time.perf_counter_ns(), buffers, [*made, *(buffers[i] for i in entry.written)])
    elif modes.blocking:
        wait(outputs)
    return hand_out(plan, call, results)


_set_array: Callable[[Buffer, Any], None] = vars(Buffer)["array"].__set__
_exhaust = deque[None](maxlen=0).extend


def run_and_write(executable: Executable, arrays: list[jax.Array], targets: Sequence[Buffer], first: int) -> list[jax.Array]:
    """Runs a program and gives `targets` their new arrays, which are its results from number `first` on. Returns all results.

    Ctrl-C can come after any call, and an array that was donated is gone once the program ran. So the program runs within one
    call of C, and storing what it made is one more, prepared before and made whatever comes.
    """
    if state.journals:
        for buffer in targets:
            state.about_to_write(buffer)
    done: list[list[jax.Array]] = []
    stored = map(_set_array, targets, islice(chain.from_iterable(done), first, None))
    try:
        executable.run_into(done, arrays)
    finally:
        _exhaust(stored)
    for buffer in targets:
        buffer.shared = False
        buffer.label = None
    return done[0]


def gather(buffer: Buffer, donated: bool) -> jax.Array:
    """A buffer's array as a program argument; one that somebody else holds is copied before it is donated."""
    if donated and buffer.shared == memory.CAPTURED:
        deferral.cut("unknown")
    array = buffer.array
    if array is None:
        array = tensors.array_of(buffer)
    if donated and state.journals:
        state.about_to_write(buffer)
    return tensors.copied(array) if donated and buffer.shared else array


def wait(outputs: Sequence[jax.Array]) -> None:
    """Waits until results are there."""
    for array in outputs:
        array.block_until_ready()


def check(plan: Plan, flag: jax.Array) -> None:
    """Settles a check of values now (blocking modes) or at the next read."""
    line = memory.user_line()
    if modes.blocking or (events.observer is not None and events.observer.blocking):
        code = int(flag)
        if code:
            raise checks.error_of(code, plan.aten, line)
        return
    checks.defer(flag, plan.aten, line)


def hand_out(plan: Plan, call: Call, results: list[Any]) -> Any:
    """The Python value of a call: fresh results, or the arguments an in-place or `out=` call returns."""
    if plan.out:
        values = [v for a, v in zip(plan.arguments, call.arguments, strict=True) if a.name in plan.out]
        return values[0] if plan.return_count == 1 else (tuple(values) if plan.return_count else None)
    if plan.in_place:
        if plan.return_count == 0:
            return None
        values = [v for a, v in zip(plan.arguments, call.arguments, strict=True) if a.written]
        return values[0] if plan.return_count == 1 else tuple(values)
    if plan.returns_list:
        return results
    if plan.return_count == 1:
        return results[0]
    return tuple(results) if plan.return_count else None


def fit_outputs(plan: Plan, call: Call, metas: Sequence[torch.Tensor | None]) -> None:
    """Checks `out=` arguments as PyTorch does: castable dtype, right size (resized with a warning if they hold something else)."""
    wanted = [m for m in metas if m is not None]
    slots = written_slots(plan, call)
    outs = [v for a, v in zip(plan.arguments, call.arguments, strict=True) if a.name in plan.out]
    flat = [t for v in outs for t in (v if isinstance(v, (list, tuple)) else (v,))]
    resized = fit_targets(wanted, flat, _REFUSAL.get(plan.functional_base, RuntimeError))
    if resized or any(tuple(s.size) != tuple(o.shape) for s, o in zip(slots, flat, strict=False)):
        raise Resized


_REFUSAL: dict[str, type[Exception] | None] = {"cat": TypeError, "stack": TypeError, "bernoulli": None}
"""What ATen raises for a target that cannot hold the result's dtype, where it is not RuntimeError; None: it takes every target."""


def fit_targets(results: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], refusal: type[Exception] | None = RuntimeError) -> bool:
    """Gives `out=` targets the size of the results. Raises `refusal` for a dtype that cannot be cast; returns whether one was resized."""
    for result, out in zip(results, targets, strict=False):
        if refusal is not None and not torch.can_cast(result.dtype, out.dtype):
            raise refusal(f"result type {_name(result.dtype)} can't be cast to the desired output type {_name(out.dtype)}")
    resized = False
    for result, out in zip(results, targets, strict=False):
        if tuple(out.shape) != tuple(result.shape):
            internals.resize_out(out, result.shape)
            if result.stride() != out.stride() and tensors.extent(tuple(result.shape), result.stride()) == result.numel():
                out.as_strided_(result.shape, result.stride())  # a target that PyTorch sizes also gets the strides PyTorch chooses
            resized = True
    return resized


class Resized(Exception):
    """An `out=` argument got another size; the call has to be split again."""


def _name(dtype: torch.dtype) -> str:
    scalar = {
        torch.float32: "Float",
        torch.float64: "Double",
        torch.int64: "Long",
        torch.int32: "Int",
        torch.bool: "Bool",
        torch.float16: "Half",
        torch.uint8: "Byte",
    }
    return scalar.get(dtype, str(dtype).removeprefix("torch."))
