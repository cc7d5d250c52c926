"""From a split call to one XLA program: read the views, apply the lowering, lay out fresh results, write the changed storages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import torch

from ..lowering import bounds, strided
from ..lowering.dtypes import to_jax, to_torch
from ..lowering.promotion import Number, cast
from ..lowering.registry import Lowering
from ..lowering.rng import Rng
from .call import Call, NumberSlot, Static, TensorSlot
from .plan import NOT_PASSED, Plan, plan_for
from .tensors import Layout, aval, contiguous_stride, extent, layout_of


@dataclass(frozen=True)
class FreshResult:
    """A result in a storage of its own."""

    size: tuple[int, ...]
    stride: tuple[int, ...] | None  # None: row-major
    dtype: torch.dtype
    layout: Layout


@dataclass(eq=False)
class Traced:
    """A program not yet compiled. Inputs: the `needed` storages, offsets and numbers, the random state.

    Results in order: fresh ones, the new contents of `written` storages, then the check of values.
    """

    function: Callable[..., list[jax.Array]]
    avals: list[Any]
    fresh: tuple[FreshResult | None, ...]
    needed: tuple[int, ...]
    written: tuple[int, ...]
    checked: bool
    random: bool
    rng_steps: int = 0


def meta_results(plan: Plan, call: Call) -> tuple[torch.Tensor | None, ...]:
    """What PyTorch's own shape functions say the results are: meta tensors (None: an undefined result).

    Raises what PyTorch raises for these arguments: the exception of the user's mistake.
    """
    on_meta = meta_arguments(plan, call)
    target = plan.functional if plan.out else plan.op
    try:
        result = target(*on_meta[0], **on_meta[1])
    except (NotImplementedError, AttributeError):
        if plan.lowering is None or plan.lowering.wants_out_specs:
            raise
        return _shapes_by_jax(plan, call, plan.lowering)  # torch's meta kernel is missing, or stumbles over an absent bias
    if result is None:
        return ()
    if isinstance(result, (tuple, list)):
        return tuple(result)
    return (result,)


def _shapes_by_jax(plan: Plan, call: Call, lowering: Lowering) -> tuple[torch.Tensor | None, ...]:
    """The results' shapes and dtypes as jax sees the lowering; row-major."""
    avals = [layout.aval() for layout in call.layouts] + [aval(a.shape, a.dtype) for a in call.inputs]
    call = without_operands(call)

    def function(*arrays: jax.Array) -> list[Any]:
        count = len(call.layouts)
        positional, named = bind(plan, call, arrays[:count], arrays[count:])
        if lowering.random:
            named["rng"] = Rng(arrays[-1])
        return flatten(lowering.function(*positional, **named))

    avals += [aval((2,), np.uint64)] if lowering.random else []
    with jax.enable_x64(True):
        shapes = jax.eval_shape(function, *avals)
    count = len(shapes) if plan.returns_list else plan.return_count
    return tuple(None if s is None else torch.empty(s.shape, dtype=to_torch(s.dtype), device="meta") for s in shapes[:count])


def meta_arguments(plan: Plan, call: Call) -> tuple[list[Any], dict[str, Any]]:
    """A call's arguments with meta tensors (that share storages as the call's do) for the device's; `out=` left away."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    storages: dict[int, torch.Tensor] = {}

    for argument, slot, value in zip(plan.arguments, call.slots, call.arguments, strict=True):
        if argument.name in plan.out:
            continue
        if argument.name == "generator":
            if argument.keyword_only:
                named["generator"] = None
            else:
                positional.append(None)
            continue
        if argument.name in ("device", "pin_memory", "layout"):
            converted: Any = torch.device("meta") if argument.name == "device" and value is not None else None
        else:
            converted = _meta(slot, value, call, storages)
        if argument.keyword_only:
            if converted is not None or value is not None:
                named[argument.name] = converted
        else:
            positional.append(converted)
    return positional, named | dtype_of_target(plan, call)


def _meta(slot: Any, value: Any, call: Call, storages: dict[int, torch.Tensor]) -> Any:
    """An argument with meta tensors; `storages` holds the ones made so far. (No closure: one that calls itself would keep the tensors alive.)"""
    if isinstance(slot, TensorSlot):
        base = storages.get(slot.storage)
        if base is None:
            base = storages[slot.storage] = torch.empty(call.layouts[slot.storage].nbytes, dtype=torch.uint8, device="meta")
        return torch.empty(0, dtype=slot.dtype, device="meta").set_(base.untyped_storage(), value.storage_offset(), slot.size, slot.stride)
    if isinstance(slot, NumberSlot) and isinstance(value, torch.Tensor) and not slot.weak:
        return torch.empty((), dtype=value.dtype, device="meta")
    if isinstance(slot, tuple):
        return [_meta(s, v, call, storages) for s, v in zip(slot, value, strict=True)]
    return value


def read_slot(slot: TensorSlot, storages: Sequence[jax.Array], inputs: Sequence[jax.Array]) -> jax.Array:
    """The logical value of a tensor argument inside a program."""
    storage = storages[slot.storage]
    dtype = to_jax(slot.dtype)
    if storage.dtype != dtype:
        storage = strided.reinterpret(storage, dtype)
    if slot.moving is not None:
        value = strided.read(storage, slot.size, slot.stride, inputs[slot.moving], aligned=slot.aligned)
    else:
        value = strided.read(storage, slot.size, slot.stride, slot.offset)
    if slot.conjugate:
        value = jax.lax.conj(value)
    return -value if slot.negative else value


def write_slot(slot: TensorSlot, storages: list[jax.Array], inputs: Sequence[jax.Array], value: jax.Array) -> None:
    """Writes a logical value into a tensor argument's storage (`storages` is updated in place)."""
    if slot.conjugate:
        value = jax.lax.conj(value)
    if slot.negative:
        value = -value
    storage = storages[slot.storage]
    dtype = to_jax(slot.dtype)
    own, count = storage.dtype, storage.shape[0]
    value = jax.numpy.broadcast_to(cast(value, dtype), slot.size)
    if own != dtype:
        storage = strided.reinterpret(storage, dtype)
    if slot.moving is not None:
        storage = strided.write(storage, slot.size, slot.stride, inputs[slot.moving], value, aligned=slot.aligned)
    else:
        storage = strided.write(storage, slot.size, slot.stride, slot.offset, value)
    storages[slot.storage] = strided.reinterpret(storage, own, count) if own != dtype else storage


def covers(slot: TensorSlot, count: int) -> bool:
    """True if writing the tensor replaces the whole storage."""
    return slot.moving is None and extent(slot.size, slot.stride) == count and int(np.prod(slot.size)) == count and slot.offset == 0


def without_operands(call: Call) -> Call:
    """A call as a program may keep it: jax's caches hold on to what they traced, and memory must not stay alive for that."""
    return dataclasses.replace(call, buffers=[], inputs=[], arguments=[], generator=None)


def bind(plan: Plan, call: Call, storages: Sequence[jax.Array], inputs: Sequence[jax.Array]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments a lowering receives (see `tpu_lab.lowering.registry`)."""

    def value_of(slot: Any, kind: str) -> Any:
        if isinstance(slot, TensorSlot):
            return read_slot(slot, storages, inputs)
        if isinstance(slot, NumberSlot):
            return Number(inputs[slot.position]) if slot.weak else inputs[slot.position]
        if isinstance(slot, Static):
            if kind in ("number", "numbers"):
                return Number(jax.numpy.asarray(slot.value, dtype=np.int64))
            return Number(jax.numpy.asarray(slot.value)) if kind in ("tensor", "tensors") else slot.value
        if isinstance(slot, tuple):
            return [value_of(s, kind) for s in slot]
        return None

    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument, slot in zip(plan.arguments, call.slots, strict=True):
        if argument.name in NOT_PASSED or argument.name in plan.out:
            continue
        if argument.keyword_only:
            named[argument.name] = value_of(slot, argument.kind)
        else:
            positional.append(value_of(slot, argument.kind))
    if plan.out:
        rest = [a for a in plan_for(plan.functional).arguments if a.keyword_only and a.name not in NOT_PASSED]
        named = {a.name: a.default for a in rest} | named | dtype_of_target(plan, call)
    return positional, named


_TARGET_DECIDES = frozenset({"cumsum", "cumprod", "sum", "nansum", "prod", "mean"})
"""Reductions that compute in the dtype of their `out=` target unless they are given another."""


def dtype_of_target(plan: Plan, call: Call) -> dict[str, Any]:
    """The `dtype` that an `out=` form leaves to the tensor it is given: that of a factory, or of a reduction without one; else empty."""
    if not plan.out or all(a.name != "dtype" for a in plan_for(plan.functional).arguments):
        return {}
    stated = [s for a, s in zip(plan.arguments, call.slots, strict=True) if a.name == "dtype"]
    if stated and (plan.functional_base not in _TARGET_DECIDES or stated[0] is not None):
        return {}
    return {"dtype": next(s.dtype for a, s in zip(plan.arguments, call.slots, strict=True) if a.name in plan.out)}


def flatten(result: Any) -> list[Any]:
    """Results of a lowering, lists and tuples opened."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flatten(part)]
    return [result]


def written_slots(plan: Plan, call: Call) -> list[TensorSlot]:
    """The tensors a call writes to (lists opened): `out=` targets, then the others, each in schema order."""
    found: list[TensorSlot] = []
    for argument, slot in sorted(zip(plan.arguments, call.slots, strict=True), key=lambda pair: pair[0].name not in plan.out):
        if argument.written and slot is not None:
            found += [s for s in (slot if isinstance(slot, tuple) else (slot,)) if isinstance(s, TensorSlot)]
    return found


def trace(plan: Plan, call: Call, lowering: Lowering, metas: Sequence[torch.Tensor | None]) -> Traced:
    """Describes the program of a call served by `lowering`, whose results PyTorch describes as `metas`."""
    avals = [layout.aval() for layout in call.layouts] + [aval(a.shape, a.dtype) for a in call.inputs]
    call = without_operands(call)
    written = written_slots(plan, call)
    storage_order = tuple(dict.fromkeys(s.storage for s in written))
    returns_fresh = not plan.in_place and not plan.out
    fresh: tuple[FreshResult | None, ...] = tuple(_fresh(m) for m in metas) if returns_fresh else ()
    read_before = {s.storage for s in _tensor_slots(call.slots, plan, {*plan.out, *lowering.unread})}
    partly = {s.storage for s in written if not covers(s, call.layouts[s.storage].count)}
    needed = tuple(i for i in range(len(call.layouts)) if i in read_before or i in partly)
    check = bounds.values_checked(lowering.overload, [to_jax(s.dtype) for s in _tensor_slots(call.slots, plan, set(plan.out))])
    steps = 0

    def function(*arrays: jax.Array) -> list[jax.Array]:
        nonlocal steps
        storages = [jax.numpy.zeros(layout.count, layout.dtype) for layout in call.layouts]  # of these only the unread ones stay, and XLA drops them
        for position, array in zip(needed, arrays, strict=False):
            storages[position] = array
        inputs = arrays[len(needed) :]
        positional, named = bind(plan, call, storages, inputs)
        flag = check(*positional, **named) if check is not None else None
        if lowering.wants_out_specs:
            named["out_specs"] = tuple(aval(m.shape, to_jax(m.dtype)) for m in metas if m is not None)
        if lowering.random:
            rng = Rng(arrays[-1])
            named["rng"] = rng
        results = flatten(lowering.function(*positional, **named))
        if lowering.random:
            steps = rng.consumed
        outputs = []
        if returns_fresh:
            outputs = [laid_out(r, f) for r, f in zip(results, fresh, strict=False) if f is not None]
            results = results[len(fresh) :]
        for slot, value in zip(written, results, strict=False):
            write_slot(slot, storages, inputs, value)
        outputs += [storages[i] for i in storage_order]
        return outputs if flag is None else [*outputs, flag]

    avals = [*(avals[i] for i in needed), *avals[len(call.layouts) :]]
    if lowering.random:
        avals.append(aval((2,), np.uint64))
    traced = Traced(function, avals, fresh, needed, storage_order, check is not None, lowering.random)
    if lowering.random:
        with jax.enable_x64(True):
            jax.eval_shape(function, *avals)
        traced.rng_steps = steps
    return traced


def _tensor_slots(slots: Sequence[Any], plan: Plan, skip: set[str]) -> list[TensorSlot]:
    found: list[TensorSlot] = []
    for argument, slot in zip(plan.arguments, slots, strict=True):
        if argument.name in skip:
            continue
        found += [s for s in (slot if isinstance(slot, tuple) else (slot,)) if isinstance(s, TensorSlot)]
    return found


def _fresh(meta: torch.Tensor | None) -> FreshResult | None:
    return None if meta is None else fresh_result(tuple(meta.shape), meta.stride(), meta.dtype)


def fresh_result(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> FreshResult:
    """Describes a result of this geometry."""
    plain = stride == contiguous_stride(size) and 0 not in size
    return FreshResult(size, None if plain else stride, dtype, layout_of(extent(size, stride), dtype))


def laid_out(value: Any, fresh: FreshResult) -> jax.Array:
    """A result's flat array. Raises RuntimeError if the lowering returned another shape than PyTorch's meta kernel."""
    if isinstance(value, Number):
        value = value.value
    if value is None:
        raise RuntimeError("the lowering returned no value where PyTorch's meta kernel promises a tensor")
    value = cast(jax.numpy.asarray(value), to_jax(fresh.dtype))
    if value.shape != fresh.size:
        raise RuntimeError(f"the lowering returned shape {list(value.shape)}, PyTorch's meta kernel says {list(fresh.size)}")
    return value.reshape(-1) if fresh.stride is None else strided.lay_out(value, fresh.stride)
