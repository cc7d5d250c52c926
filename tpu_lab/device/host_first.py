"""When an operator's shapes keep changing, compiling each one would crawl: further shapes start as host kernels.

The first shapes of a family (an overload with the same statics, dtypes and ranks) compile at first sight. A later one runs
with torch's CPU kernel on the same memory, recorded as kind `host`; when it comes back, its program is compiled on a
background thread and takes over once it is ready. The values are those of the program up to rounding. Random operators,
operators with an index check and those without a CPU kernel always compile at once.
"""

from __future__ import annotations

import atexit
import dataclasses
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from ..lowering import bounds
from . import _torch_internals as internals
from . import deferral, events, memory, program_cache
from .call import Call, NumberSlot, Static, TensorSlot, input_types
from .events import OpProgram
from .fallback import run_on_cpu
from .plan import Plan
from .program import meta_results, written_slots

COMPILED_AT_ONCE = 6
"""How many shapes of a family compile at first sight."""
SIGHTINGS = 3
"""A host-run shape seen so often is worth a program."""
_COUNTED = 64
_WAITING = 16
_DUTY = 0.5
_LIMIT = 100_000

_families: dict[Any, set[int]] = {}
_seen: dict[int, tuple[int, int]] = {}
"""How often the host ran a call and how many bytes its results take, by the hash of its key: the keys themselves would take 1 kB each."""


def family(call: Call) -> Any:
    """What a call has in common with the same call on other shapes."""

    def part(slot: Any) -> Any:
        if isinstance(slot, TensorSlot):
            return (slot.dtype, len(slot.size))
        if isinstance(slot, NumberSlot):
            return slot.dtype
        if isinstance(slot, Static):
            return type(slot.value)
        return tuple(part(s) for s in slot) if isinstance(slot, tuple) else None

    return (call.plan.name, tuple(part(s) for s in call.slots))


def can_run_on_host(plan: Plan) -> bool:
    """True if torch's CPU kernel gives the operator's values: not for random ones, nor where the CPU has no kernel."""
    if plan.host_kernel is None:
        lowering, name = plan.lowering, plan.op.name()
        fits = lowering is not None and not lowering.random and not lowering.mutates and bounds.values_checked(lowering.overload) is None
        plan.host_kernel = fits and (internals.has_backend_kernel(name, "CPU") or internals.has_backend_kernel(name, "CompositeExplicitAutograd"))
    return plan.host_kernel


def wants_host(plan: Plan, call: Call) -> bool:
    """True if a call whose program does not exist yet should run as a host kernel now."""
    if not can_run_on_host(plan):
        return False
    seen = shapes_of(call)
    late = len(seen) >= COMPILED_AT_ONCE
    if len(seen) < _COUNTED:
        seen.add(hash(call.key))
    return late


def shapes_of(call: Call) -> set[int]:
    """The shapes met so far of a call's family, by hash; at most `_COUNTED`. It grows with the family."""
    return _families.setdefault(family(call), set())


def run(plan: Plan, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], compile_later: Callable[[Plan, Call], Callable[[], None]]) -> Any:
    """Runs a call with torch's CPU kernel on the device's memory. `compile_later(plan, call)` gives the job that makes its program."""
    key = hash((plan.name, call.key))
    sightings, nbytes = _seen.get(key) or (0, _result_bytes(plan, call))
    if memory.ledger.live + nbytes > memory.ledger.limit:
        memory.refuse(nbytes, plan.aten)
    deferral.before_host_kernel(call.buffers, len(shapes_of(call)))
    start = time.perf_counter_ns()
    result, crossing = run_on_cpu(plan.op, args, kwargs)
    end = time.perf_counter_ns()
    if len(_seen) > _LIMIT:
        _seen.clear()
    sightings += 1
    _seen[key] = sightings, nbytes
    if (sightings == SIGHTINGS or (sightings > SIGHTINGS and sightings % 16 == 0)) and not _worker.jobs.full():
        _worker.offer(compile_later(plan, dataclasses.replace(call, buffers=[])))
    if events.observer is not None:
        outputs = crossing.device_results(result)
        info = OpProgram(plan.aten, "host", input_types(call), crossing.types(outputs), id=program_cache.next_id())
        written = [call.buffers[s.storage] for s in written_slots(plan, call)]
        events.observer.op(info, start, end, call.buffers, [*crossing.buffers(outputs), *written])
    return result


def _result_bytes(plan: Plan, call: Call) -> int:
    """What a call's results take; 0 if it cannot be much. Raises what PyTorch raises for these arguments."""
    if plan.in_place or plan.out or _WIDEST * _elements_at_most(call.arguments) < memory.ledger.limit - memory.ledger.live:
        return 0
    return sum(m.numel() * m.element_size() for m in meta_results(plan, call) if m is not None)


_WIDEST = 16


def _elements_at_most(value: Any) -> float:
    """A bound for the elements of an operator's results: the product of all sizes and numbers it is given (a meta kernel takes 0.4 ms)."""
    if isinstance(value, torch.Tensor):
        return 1.0 + value.numel()
    if isinstance(value, (list, tuple)):
        return math.prod(map(_elements_at_most, value), start=1.0)
    return 1.0 + abs(value) if isinstance(value, (int, float)) else 1.0


class _Worker:
    """The background compiler: one thread, a short queue (a job that finds it full is offered again at a later sighting), pauses between jobs."""

    def __init__(self) -> None:
        self.jobs: queue.Queue[Callable[[], None]] = queue.Queue(_WAITING)
        self.thread: threading.Thread | None = None
        self.ending = threading.Event()

    def offer(self, job: Callable[[], None]) -> bool:
        """Takes a job if there is room; returns whether."""
        try:
            self.jobs.put_nowait(job)
        except queue.Full:
            return False
        if self.thread is None:
            self.thread = threading.Thread(target=self.work, name="tpu_lab background compiler", daemon=True)
            self.thread.start()
            atexit.register(self.end)
        return True

    def work(self) -> None:
        """Does jobs until the interpreter ends, half of the time at most."""
        while True:
            job = self.jobs.get()
            start = time.perf_counter()
            if not self.ending.is_set():
                job()
            self.jobs.task_done()
            if self.ending.wait((time.perf_counter() - start) * (1 - _DUTY) / _DUTY):
                return

    def end(self) -> None:
        """Waits for the job at work: a thread that the interpreter ends inside XLA would abort the process."""
        self.ending.set()
        self.offer(lambda: None)
        if self.thread is not None:
            self.thread.join(timeout=60)


_worker = _Worker()


def in_background(job: Callable[[], None]) -> bool:
    """Has the background compiler do a job, which must not raise; False if it has too much to do."""
    return _worker.offer(job)


def finish() -> None:
    """Waits until the background compiler has nothing to do (for tests and benchmarks)."""
    if _worker.thread is not None:
        _worker.jobs.join()


def forget() -> None:
    """Waits for the background compiler, then takes every shape as never seen (tests that count programs start here)."""
    finish()
    _families.clear()
    _seen.clear()
