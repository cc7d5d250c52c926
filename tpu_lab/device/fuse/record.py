"""A call in the mode `DEFER_AND_FUSE`: deferred where a known cluster may be under way, else run at once and noted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch

from .. import _torch_internals as internals
from .. import events, forks, memory, strict, tensors
from .._torch_internals import create_empty_tensor, graph_task
from ..memory import Buffer
from ..numbers import random_state
from ..program_cache import tick
from . import clusters, governor
from .finish import current, cut, give_up, involved
from .loops import GRAPH_LIMIT, next_limit
from .trace import Trace, lock, promise, promise_single, results_of, step_key

if TYPE_CHECKING:
    from ..call import Call
    from ..plan import Plan
    from ..strict import Entry


def execute(plan: Plan, call: Call, entry: Entry) -> Any:
    """`strict.execute` in this mode."""
    buffers = call.buffers
    inputs = list(call.inputs)
    if entry.random:
        inputs.append(random_state(call.generator, entry.rng_steps))
    results = run(plan, entry, [buffers[i] for i in entry.needed], inputs, [buffers[i] for i in entry.written])
    return strict.hand_out(plan, call, results)


def run_single(plan: Plan, entry: Entry, buffers: Sequence[Buffer], inputs: list[Any]) -> Any:
    """`run` for a call with one result that writes nothing, and the short way where it goes on as a known cluster does."""
    trace = current.trace
    if trace.deferring and events.observer is None and len(entry.family) < governor.rules.shapes and graph_task() in (-1, _backward):
        with lock:
            ledger = memory.ledger
            if current.trace is trace and trace.deferring and ledger.live + trace.bytes + entry.bytes <= ledger.limit:
                step: list[Any] = [entry]
                for buffer in buffers:
                    label = buffer.label
                    step.append(label[1] if label is not None and label[0] is trace else trace.capture(buffer))
                node = trace.node.next.get(tuple(step))
                if node is not None and node.single is not None and entry.work is not None:
                    trace.work += entry.work
                    if trace.work < governor.rules.launch and node.depth < current.limit:
                        return promise_single(trace, node, node.single, inputs)
                    trace.work -= entry.work
                return run(plan, entry, buffers, inputs, ())[0]  # in the lock: what was captured belongs to a call of this trace
    return run(plan, entry, buffers, inputs, ())[0]


def run(plan: Plan, entry: Entry, buffers: Sequence[Buffer], inputs: list[Any], targets: Sequence[Buffer]) -> list[torch.Tensor | None]:
    """Defers or runs a call that reads `buffers` and `inputs` and writes `targets`; returns its fresh results."""
    observer = events.observer
    start = time.perf_counter_ns() if observer is not None else 0
    with lock:
        trace = current.trace
        alone = len(entry.family) >= governor.rules.shapes
        if alone:
            results = _alone(plan, entry, buffers, inputs, targets)
        elif trace.deferring or trace.may_defer(clusters.root):
            results = _defer(plan, entry, buffers, inputs, targets)
        else:
            results = _at_once(plan, entry, buffers, inputs, targets)
    if observer is not None:
        made = [tensors.buffer_of(r) for r in results if r is not None]
        observer.op(entry.info, start, time.perf_counter_ns(), buffers, [*made, *targets])
    task = graph_task()
    if task != -1 and task != _backward:
        _cut_after_backward(task)
    if not alone:
        trace, work = current.trace, entry.work
        if work is None:
            work = entry.work = governor.work(entry.info)
        trace.work += work
        if trace.work >= governor.rules.launch:
            cut("graph_limit")
        elif len(trace) >= current.limit:
            _cut_at_limit(trace)
    return results


def _defer(plan: Plan, entry: Entry, buffers: Sequence[Buffer], inputs: list[Any], targets: Sequence[Buffer]) -> list[torch.Tensor | None]:
    """The results as promises; where no known cluster goes on like this, everything deferred runs, and this call too."""
    trace, ledger = current.trace, memory.ledger
    if ledger.live + trace.bytes + entry.bytes > ledger.limit:
        forks.raise_in_child()
        cut("memory_pressure")
        if ledger.live + entry.bytes > ledger.limit:
            memory.refuse(entry.bytes, plan.aten)
        trace = current.trace
    step = step_key(trace, entry, buffers)
    node = trace.node.next.get(step)
    if node is None:
        if not clusters.forced():
            give_up(trace)
            return _at_once(plan, entry, buffers, inputs, targets)
        node = clusters.grow(trace.node, step)
    return promise(trace, node, inputs, targets, (plan.aten, memory.user_line()) if entry.checked else None)


def _at_once(plan: Plan, entry: Entry, buffers: Sequence[Buffer], inputs: list[Any], targets: Sequence[Buffer]) -> list[torch.Tensor | None]:
    """Runs the call with its strict program and notes it."""
    if memory.ledger.live + entry.bytes > memory.ledger.limit:
        memory.refuse(entry.bytes, plan.aten)
    trace = current.trace
    arrays: list[Any] = []
    step: list[Any] = [entry]
    for buffer in buffers:
        label = buffer.label
        step.append(label[1] if label is not None and label[0] is trace else trace.outside(buffer))
        array = buffer.array
        arrays.append(array if array is not None else tensors.array_of(buffer))
    if targets:
        arrays = [strict.gather(b, takes) for b, takes in zip(buffers, entry.takes, strict=True)]
        outputs = strict.run_and_write(entry.executable, arrays + inputs, targets, entry.made)
    else:
        arrays += inputs
        outputs = entry.execute(arrays).consume_with_handlers(entry.handlers)
    entry.last = tick()
    if entry.checked:
        strict.check(plan, outputs.pop())
    slot = trace.count
    trace.steps.append(tuple(step))
    if trace.lines is not None:
        trace.lines.append(memory.user_line())
    if entry.offsets:
        trace.offsets += [inputs[i] for i in entry.offsets]
    trace.count = slot + results_of(entry)
    results: list[torch.Tensor | None] = []
    for fresh, array in zip(entry.fresh, outputs, strict=False) if None not in entry.fresh else entry.pair(outputs):
        if fresh is None:
            results.append(None)
            continue
        if fresh.stride is None:
            tensor = create_empty_tensor(fresh.size, fresh.dtype)
            made = tensor.untyped_storage().buffer = Buffer(array, fresh.layout, fresh.layout.nbytes)  # type: ignore[attr-defined]
        else:
            tensor = tensors.wrap(array, fresh.size, fresh.dtype, fresh.stride)
            made = tensor.untyped_storage().buffer  # type: ignore[attr-defined]
        made.label = label = (trace, slot)
        trace.owners.append((made.death, label))
        results.append(tensor)
        slot += 1
    for buffer in targets:
        buffer.label = label = (trace, slot)
        trace.owners.append((buffer.death, label))
        slot += 1
    return results


def _alone(plan: Plan, entry: Entry, buffers: Sequence[Buffer], inputs: list[Any], targets: Sequence[Buffer]) -> list[torch.Tensor | None]:
    """Runs a call that is to be in no cluster; the trace ends if it has to do with what the call reads or writes."""
    if any(involved(b) for b in chain(buffers, targets)):
        cut("graph_limit")
    if memory.ledger.live + entry.bytes > memory.ledger.limit:
        memory.refuse(entry.bytes, plan.aten)
    arrays = [strict.gather(b, takes) for b, takes in zip(buffers, entry.takes, strict=True)]
    outputs = strict.run_and_write(entry.executable, arrays + inputs, targets, entry.made)
    entry.last = tick()
    if entry.checked:
        strict.check(plan, outputs.pop())
    return [None if f is None else tensors.wrap(a, f.size, f.dtype, f.stride) for f, a in entry.pair(outputs)]


def _cut_at_limit(trace: Trace) -> None:
    """Cuts a long trace; one that is a loop is cut after whole turns from then on."""
    limit = next_limit([*(node.entry for node, _ in trace.log), *(step[0] for step in trace.steps)])
    cut("graph_limit" if current.limit == GRAPH_LIMIT else "repeated_op_heuristic")
    current.limit = limit


_backward = -1


def _cut_after_backward(task: int) -> None:
    """Has the trace cut at the end of a backward pass, which is where a training loop comes back to."""
    global _backward
    _backward = task
    internals.after_backward(lambda: cut("autograd_post_backward"))
