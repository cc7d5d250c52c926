"""Dtypes that PyTorch refuses: a new call is first tried by torch's own CPU kernel, on stand-ins of one element.

jax computes much that PyTorch does not (`gelu` of integers, a product of bool matrices), and what it cannot it says in its
own words. A program that "works" on such operands would be refused on every other device.
"""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any

import torch

from . import _torch_internals as internals
from .call import Call, NumberSlot, TensorSlot
from .plan import Plan

_TRIED = frozenset(
    {"argmax", "argmin", "min", "max", "amin", "amax", "aminmax", "topk", "sort", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"}
    | {"trace", "dot", "vdot", "mv", "mm", "bmm", "addmv", "addmm", "baddbmm", "_cdist_forward", "index_add", "searchsorted", "bucketize"}
    | {"var", "std", "var_mean", "std_mean", "nansum", "logcumsumexp", "_softmax", "_log_softmax", "gelu", "native_layer_norm"}
    | {"nll_loss_forward", "nll_loss2d_forward", "binary_cross_entropy", "multinomial", "bernoulli"}
)
"""What is tried besides elementwise operators, those of lists, and all `out=` forms: overloads that take tensors whose dimensions all have size 1."""
_ABOUT_DTYPES = re.compile(
    r"not implemented for|support|dtype|scalar[ _]type|boolean|addcdiv|floating point (number|or complex)|expects \w+ tensor|can't be cast"
)
_OF_THE_CPU_ONLY = re.compile(r"for '(Half|BFloat16|ComplexHalf|Float8\w*|Float4\w*|UInt\w+)'|for bfloat16|Half|BFloat16|complex32")
"""Dtypes that CPU kernels lack here and there while devices have them."""
_SCRATCH = internals.Generator("cpu")


def refuse_unsupported_dtypes(plan: Plan, call: Call) -> None:
    """Raises the RuntimeError or NotImplementedError of torch's CPU kernel if the dtypes of a call are not for this operator."""
    pointwise = torch.Tag.pointwise in plan.op.tags or plan.name.startswith("_foreach_")
    if not pointwise and not plan.out and plan.name.partition(".")[0].removesuffix("_") not in _TRIED:
        return
    whole = 1 if pointwise else 0
    refused = _refusal(plan, *_stand_ins(plan, call, whole))
    if plan.out and refused is not None and not _ABOUT_DTYPES.search(str(refused)) and _is_small(call):
        refused = _refusal(plan, *_stand_ins(plan, call, whole, real_sizes=True))
    text = str(refused)
    if refused is not None and _ABOUT_DTYPES.search(text) and not _OF_THE_CPU_ONLY.search(text):
        raise refused.with_traceback(None)


_SMALL = 10_000
"""Elements of operands in all that a trial of an `out=` form runs with, where one element is not enough (`linalg.cross`)."""


def _is_small(call: Call) -> bool:
    slots = [s for slot in call.slots for s in (slot if isinstance(slot, tuple) else (slot,))]
    return sum(math.prod(s.size) for s in slots if isinstance(s, TensorSlot)) <= _SMALL


def _refusal(plan: Plan, positional: list[Any], named: dict[str, Any]) -> RuntimeError | None:
    """What torch's CPU kernel raises; what it says of shapes and values by other types does not count, they are not the call's own here."""
    with contextlib.suppress(IndexError, ValueError, TypeError):
        try:
            plan.op(*positional, **named)
        except RuntimeError as error:
            return error
    return None


def _stand_ins(plan: Plan, call: Call, integer: int, real_sizes: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """The call's arguments with CPU tensors of one element for the device's: ones, or `integer` where the dtype is no floating one."""

    def stand_in(slot: Any, value: Any) -> Any:
        if isinstance(slot, TensorSlot):
            fill = 1 if slot.dtype.is_floating_point or slot.dtype.is_complex else integer
            return torch.full(slot.size if real_sizes else (1,) * len(slot.size), fill, dtype=torch.float32, device="cpu").to(slot.dtype)
        if isinstance(slot, NumberSlot) and isinstance(value, torch.Tensor):
            return value.clone()
        return [stand_in(s, v) for s, v in zip(slot, value, strict=True)] if isinstance(slot, tuple) else value

    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument, slot, value in zip(plan.arguments, call.slots, call.arguments, strict=True):
        if argument.name == "generator":
            given: Any = _SCRATCH
        elif argument.name in ("device", "pin_memory", "layout"):
            given = None
        elif argument.name in plan.out:
            given = [torch.empty(0, dtype=v.dtype) for v in value] if isinstance(value, (list, tuple)) else torch.empty(0, dtype=value.dtype)
        else:
            given = stand_in(slot, value)
        if argument.keyword_only:
            named[argument.name] = given
        else:
            positional.append(given)
    return positional, named
