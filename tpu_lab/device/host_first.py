"""When an operator's shapes keep changing, compiling each one would crawl: such a call runs as a host kernel until a compile pays.

The first shapes of a family (an overload with the same statics, dtypes and ranks) compile at once. Further ones run with
torch's CPU kernel on the same memory, recorded as kind `host`, until the time spent on one key passes what a compile costs
(buy once the rent paid equals the price: never worse than twice the best choice). The values are those of the program up
to rounding. Random operators and operators without a CPU kernel always compile.
"""

from __future__ import annotations

import time
from typing import Any

from . import _torch_internals as internals
from . import events, program_cache
from .call import Call, NumberSlot, Static, TensorSlot, input_types
from .events import OpProgram
from .fallback import run_on_cpu
from .plan import Plan
from .program import written_slots

COMPILED_AT_ONCE = 4
"""How many shapes of a family compile at first sight."""
_LIMIT = 200_000


class CompileCost:
    """What a compile costs here, in seconds: a running mean that starts at what was measured on two cores."""

    mean = 0.03

    @classmethod
    def note(cls, seconds: float) -> None:
        """Takes one more compile into account."""
        cls.mean += (seconds - cls.mean) * 0.1


_families: dict[Any, set[int]] = {}
_spent: dict[Any, float] = {}


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
    if plan.lowering is None or plan.lowering.random or plan.lowering.mutates:
        return False
    name = plan.op.name()
    return internals.has_backend_kernel(name, "CPU") or internals.has_backend_kernel(name, "CompositeExplicitAutograd")


def wants_host(plan: Plan, call: Call) -> bool:
    """True if a call whose program does not exist yet should run as a host kernel now."""
    seen = _families.setdefault(family(call), set())
    if len(seen) < COMPILED_AT_ONCE:
        seen.add(hash(call.key))
        return False
    return can_run_on_host(plan) and _spent.get((plan.name, call.key), 0.0) < CompileCost.mean


def run(plan: Plan, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call with torch's CPU kernel on the device's memory."""
    start = time.perf_counter_ns()
    result, crossing = run_on_cpu(plan.op, args, kwargs)
    end = time.perf_counter_ns()
    if len(_spent) > _LIMIT:
        _spent.clear()
    key = (plan.name, call.key)
    _spent[key] = _spent.get(key, 0.0) + (end - start) * 1e-9
    if events.observer is not None:
        outputs = crossing.device_results(result)
        info = OpProgram(plan.aten, "host", input_types(call), crossing.types(outputs), id=program_cache.next_id())
        written = [call.buffers[s.storage] for s in written_slots(plan, call)]
        events.observer.op(info, start, end, call.buffers, [*crossing.buffers(outputs), *written])
    return result
