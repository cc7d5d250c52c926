"""Quick kernels: the strict executor's hot path, written out for one schema.

`strict.run` takes any call apart, in some 20 µs. Most calls look alike: tensors of the device in storages of their own,
numbers, a few statics. For an overload whose arguments are of these kinds (no lists of tensors) this module writes the
Python source of a kernel in which every step of the split is spelled out. Anything unusual in a call (a tensor of another
device, aliased storages, a snapshot to be kept) goes the general way, which gives the same answer.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from ..lowering import strided
from ..xla import _jax_internals as jax_internals
from . import _torch_internals as internals
from . import deferral, events, memory, modes, numbers, program_cache, state, strict, tensors
from .call import freeze, split
from .memory import Buffer
from .plan import Argument, Plan

NO_PART_OF_IT = ("device", "layout", "pin_memory", "generator")
_NAMES = frozenset({"observer", "start", "key", "entry", "arrays", "moves", "outputs", "done", "f", "result", "results", "made", "number", "check"})
_NAMES |= {"one", "block", "bucket", "written", "recent", "float_array", "free_slot", "new_slot", "keep_slot", "is_ready"}
"""Words of the kernel's text that no keyword-only argument may be called."""


def can_be_quick(plan: Plan) -> bool:
    """True if arguments are tensors (at least one), numbers and statics, and the results are tensors or the first argument itself."""
    kinds = [a.kind for a in plan.arguments]
    if plan.lowering is None or plan.lowering.mutates or plan.lowering.random or plan.lowering.wants_out_specs or plan.returns_list or plan.out:
        return False
    if "tensors" in kinds or "numbers" in kinds or "tensor" not in kinds or plan.return_count == 0:
        return False
    if any(a.name in NO_PART_OF_IT or (a.keyword_only and a.name in _NAMES) for a in plan.arguments):
        return False
    return not plan.in_place or (plan.arguments[0].written and sum(a.written for a in plan.arguments) == 1)


def quick_kernels(plan: Plan) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two kernels with the signature of the schema: one that runs, and one that defers. They raise what `strict.run` raises."""
    scope: dict[str, Any] = {
        "Buffer": Buffer,
        "array_of": tensors.array_of,
        "block": strict.wait,
        "check": strict.check,
        "create": internals.create_empty_tensor,
        "deferral": deferral,
        "float_default": torch.get_default_dtype,
        "events": events,
        "freeze": freeze,
        "general": strict.run,
        "integer": numbers.integer,
        "learn": functools.partial(_learn, plan),
        "journals": state.journals,
        "ledger": memory.ledger,
        "modes": modes,
        "now": time.perf_counter_ns,
        "float_array": numbers.float_array,
        "free_slot": numbers.free_slot,
        "is_ready": jax_internals.is_ready,
        "keep_slot": numbers.keep_slot,
        "new_slot": numbers.new_slot,
        "number": numbers.number,
        "numeric": frozenset({bool, int, float, complex}),
        "place": place,
        "plan": plan,
        "quick": {},
        "recent": numbers.recent,
        "refuse": memory.refuse,
        "tick": program_cache.tick,
        "wrap": tensors.wrap,
    }
    scope.update({f"default_{a.name}": a.default for a in plan.arguments if a.has_default})
    # a file name inside the package: Dynamo, the recorder and error messages leave its frames out as they do ours
    filename = os.path.join(os.path.dirname(__file__), f"<quick kernel of {plan.aten}>")
    found = []
    for source in (_source, _deferring_source):
        exec(compile(source(plan), filename, "exec"), scope)
        found.append(scope["kernel"])
    return found[0], found[1]


_aligned = functools.lru_cache(maxsize=65536)(strided.is_aligned)


def place(layout: tensors.Layout, tensor: torch.Tensor, offset: int) -> Any:
    """What of an offset belongs to the key: whether the view is a box of its storage; all of it where dtypes differ."""
    if tensor.dtype is not layout.torch_dtype:
        return offset + 2  # no bool is equal to it
    return _aligned(layout.count, tensor.shape, tensor.stride(), offset)


def _learn(plan: Plan, quick: dict[Any, Any], key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first call of a quick key: the general way answers, and its program is remembered under the quick key where that can run it."""
    call = split(plan, args, kwargs)
    moves = strict.moving_arguments(call)
    result = strict.run_call(plan, call, args, kwargs)
    entry = plan.programs.get(call.key)
    if isinstance(entry, strict.Entry) and entry.needed == tuple(range(len(call.buffers))):
        entry.moves = moves
        program_cache.also(quick, key, entry)
    elif entry is not None:
        quick[key] = GENERAL
    return result


class _General:
    """Stands in the quick table for calls that the general way has to answer."""

    general = True


GENERAL = _General()


def _variable(i: int, a: Argument) -> str:
    """What the kernel calls an argument: positional ones by number, as their ATen names could be names used here."""
    return a.name if a.keyword_only else f"arg{i}"


def _signature(arguments: tuple[Argument, ...]) -> str:
    parts, starred = [], False
    for i, a in enumerate(arguments):
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{_variable(i, a)}=default_{a.name}" if a.has_default else _variable(i, a))
    return ", ".join(parts)


def _head(plan: Plan, arrays: bool) -> list[str]:
    """A kernel's text up to its program. Local names: b<i> buffer, a<i> its array, o<i> offset, k<i> key part, n<i> number array, s<i> slot
    of argument i. Without `arrays` the contents are not asked for, and numbers get no slots.
    """
    positional = "".join(f"{_variable(i, a)}, " for i, a in enumerate(plan.arguments) if not a.keyword_only)
    keywords = ", ".join(f"{a.name!r}: {a.name}" for a in plan.arguments if a.keyword_only)
    general = _general(plan)
    tensors_at = [i for i, a in enumerate(plan.arguments) if a.kind == "tensor"]
    lines = [f"def kernel({_signature(plan.arguments)}):"]
    key: list[str] = []
    pending = _pending(plan)
    for i, a in enumerate(plan.arguments):
        lines += _take(i, a, pending, general, arrays)
        key.append(f"*k{i}" if a.kind == "tensor" else f"k{i}")
    if _may_be_one(plan):
        lines.append("    one = b{1} is b{0} and b{0} is not None".format(*tensors_at))
        key.append("one")
    else:
        lines += [f"    if b{x} is b{y} and b{y} is not None: {general}" for x in tensors_at for y in tensors_at if y < x]
    return [
        *lines,
        f"    key = ({', '.join(key)}, float_default())",
        "    entry = quick.get(key)",
        f"    if entry is None: return learn(quick, key, ({positional}), {{{keywords}}})",
        f"    if entry.general: {general}",
    ]


def _may_be_one(plan: Plan) -> bool:
    """True if a quick kernel serves two tensors in one storage too, as in `x * x`: such a program takes the storage once."""
    return not plan.in_place and sum(a.kind == "tensor" for a in plan.arguments) == 2


def _given(plan: Plan, letter: str) -> str:
    """The list of what is there of `b<i>` or `a<i>`, as an expression."""
    at = [i for i, a in enumerate(plan.arguments) if a.kind == "tensor"]
    every = f"[{', '.join(f'{letter}{i}' for i in at)}]"
    if len(at) == 1:
        return every
    found = f"{every} if {' and '.join(f'{letter}{i} is not None' for i in at)} else [x for x in {every} if x is not None]"
    return f"[{letter}{at[0]}] if one else {found}" if _may_be_one(plan) else found


def _general(plan: Plan) -> str:
    """The line of a kernel that goes the general way."""
    positional = "".join(f"{_variable(i, a)}, " for i, a in enumerate(plan.arguments) if not a.keyword_only)
    keywords = ", ".join(f"{a.name!r}: {a.name}" for a in plan.arguments if a.keyword_only)
    return f"return general(plan, ({positional}), {{{keywords}}})"


def _deferring_source(plan: Plan) -> str:
    """The text of the kernel that defers."""
    lines = [*_head(plan, arrays=False), f"    buffers = {_given(plan, 'b')}", "    arrays = []", *_inputs(plan)]
    targets = "(b0,)" if plan.in_place else "()"
    call = f"deferral.run(plan, entry, buffers, arrays, {targets})"
    if plan.in_place:
        return "\n".join([*lines, f"    {call}", "    return arg0"]) + "\n"
    single = "deferral.run_single(plan, entry, buffers, arrays)"
    return "\n".join([*lines, f"    return {single}" if plan.return_count == 1 else f"    return tuple({call})"]) + "\n"


def _inputs(plan: Plan) -> list[str]:
    """Lines that add offsets and numbers to `arrays`."""
    kinds = [(i, a) for i, a in enumerate(plan.arguments) if a.kind in ("tensor", "number")]
    lines = ["    moves = entry.moves", "    if moves:", *(f"        {_append_inputs(i, a, moving=True)}" for i, a in kinds)]
    return [*lines, "    else:", *(f"        {_append_inputs(i, a, moving=False)}" for i, a in kinds)]


def _source(plan: Plan) -> str:
    """The text of the kernel that runs."""
    general = _general(plan)
    signature, *head = _head(plan, arrays=True)
    lines = [signature, "    observer = events.observer", "    if observer is not None: start = now()", *head]
    if plan.in_place:
        lines.append(f"    if b0.shared or journals: {general}")
    lines += [
        "    if ledger.live + entry.bytes > ledger.limit: refuse(entry.bytes, plan.aten)",
        f"    arrays = {_given(plan, 'a')}",
        *_inputs(plan),
        *_run(plan),
        "    entry.last = tick()",
        "    if entry.checked: check(plan, outputs.pop())",
        f"    if modes.blocking or (observer is not None and observer.blocking): {_wait(plan)}",
        *_results(plan),
    ]
    return "\n".join(lines) + "\n"


def _run(plan: Plan) -> list[str]:
    """Runs the program. A result is asked whether it is ready only while no other thread can give it away: XLA crashes on a deleted one."""
    numbers_at = [i for i, a in enumerate(plan.arguments) if a.kind in ("tensor", "number")]
    if not plan.in_place:
        keep = [f"    if s{i} is not None and is_ready(outputs[0]): keep_slot(s{i})" for i in numbers_at]
        return ["    outputs = entry.execute(arrays).consume_with_handlers(entry.handlers)", *keep]
    return [  # the target's array is donated: see Executable.run_into
        "    done = []",
        "    try:",
        "        done.extend(map(entry.consume, map(entry.execute, (arrays,))))",
        *(f"        if s{i} is not None and is_ready(done[0][0]): keep_slot(s{i})" for i in numbers_at),
        "    finally:",
        "        if done: b0.array = done[0][0]",
        "    outputs = done[0]",
    ]


def _wait(plan: Plan) -> str:
    if plan.return_count > 1:
        return "block(outputs)"
    return "outputs[0].block_until_ready()" if plan.in_place else "outputs[0].is_ready() or outputs[0].block_until_ready()"


def _append_inputs(i: int, a: Argument, moving: bool) -> str:
    number = f"if n{i} is not None: arrays.append(n{i})"
    if not moving or a.kind == "number":
        return number
    return f"if moves[{i}]: arrays.append(integer(o{i}))\n        " + number


def _pending(plan: Plan) -> list[str]:
    """Methods that tell of a conjugation or sign still to apply: torch leaves it to operators registered for that, else applies it first."""
    kinds = {"Conjugate": "is_conj", "Negative": "is_neg"}
    return [method for key, method in kinds.items() if internals.has_backend_kernel(plan.op.name(), key)]


def _take(i: int, a: Argument, pending: list[str], general: str, arrays: bool) -> list[str]:
    """Lines that take one argument apart."""
    name = _variable(i, a)
    if a.kind == "tensor":
        geometry = f"b{i}.layout, {name}.shape, {name}.stride(), {name}.dtype"
        contents = [f"        a{i} = b{i}.array", f"        if a{i} is None: a{i} = array_of(b{i})"]
        return [
            f"    n{i} = s{i} = None",
            f"    if {name}.__class__ in numeric:",
            f"        b{i} = a{i} = None; k{i} = ({name}.__class__,)",
            f"        if {name}.__class__ is float:",
            *("    " + line for line in _take_float(i, name, arrays)),
            f"        else: n{i} = number({name})",
            f"    elif {name} is None: b{i} = a{i} = None; k{i} = (None,)",
            "    else:",
            *(f"        if {name}.{method}(): {general}" for method in pending),
            f"        b{i} = getattr({name}.untyped_storage(), 'buffer', None)",
            f"        if b{i} is None: {general}",
            *(contents if arrays else []),
            f"        o{i} = {name}.storage_offset()",
            f"        k{i} = ({geometry}, place(b{i}.layout, {name}, o{i})) if o{i} else ({geometry})",
        ]
    if a.kind == "number":
        return [
            f"    s{i} = None",
            f"    if {name}.__class__ is float:",
            f"        k{i} = float",
            *_take_float(i, name, arrays),
            f"    elif {name} is None{f' or ({name}.__class__ is int and {name} == 1)' if a.is_absent_factor(1) else ''}: n{i} = None; k{i} = {name}",
            f"    else: k{i} = {name}.__class__; n{i} = number({name})",
        ]
    text = f"    k{i} = freeze({name}) if {name}.__class__ is list else {name}"
    return [text if not _is_number_like(a) else f"    k{i} = ({name}, {name}.__class__)"]


def _take_float(i: int, name: str, slots: bool) -> list[str]:
    """Lines that put a float on the device: in its own array if it came before, else in a slot (see `numbers`)."""
    if not slots:
        return [f"        n{i} = number({name})"]
    return [
        f"        n{i} = float_array({name})",
        f"        if n{i} is None:",
        f"            bucket = hash({name}) & {len(numbers.recent) - 1}",
        f"            if recent[bucket] == {name}: n{i} = number({name})",
        "            else:",
        f"                recent[bucket] = {name}",
        f"                try: n{i}, written = s{i} = free_slot()",
        f"                except IndexError: n{i}, written = s{i} = new_slot()",
        f"                written[0] = {name}",
    ]


def _is_number_like(a: Argument) -> bool:
    return a.default.__class__ is float or a.name in ("exponent", "p", "ord", "value", "negative_slope")


def _results(plan: Plan) -> list[str]:
    buffers = _given(plan, "b")
    if plan.in_place:
        return [
            f"    if observer is not None: observer.op(entry.info, start, now(), ({buffers}), (b0,))",
            "    return arg0",
        ]
    if plan.return_count > 1:
        return [
            "    results = tuple([None if f is None else wrap(x, f.size, f.dtype, f.stride) for f, x in entry.pair(outputs)])",
            "    if observer is not None:",
            "        made = [r.untyped_storage().buffer for r in results if r is not None]",
            f"        observer.op(entry.info, start, now(), ({buffers}), made)",
            "    return results",
        ]
    return [
        "    f = entry.fresh[0]",
        "    if f.stride is None:",
        "        result = create(f.size, f.dtype)",
        "        made = result.untyped_storage().buffer = Buffer(outputs[0], f.layout, f.layout.nbytes, False)",
        "    else:",
        "        result = wrap(outputs[0], f.size, f.dtype, f.stride)",
        "        made = result.untyped_storage().buffer",
        f"    if observer is not None: observer.op(entry.info, start, now(), ({buffers}), (made,))",
        "    return result",
    ]
