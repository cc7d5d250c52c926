"""Writes that PyTorch refuses because of shared memory: through an expanded tensor, and over part of an operand.

A program reads all operands before it writes, so either would have a definite result here; on a CPU or GPU it has not, and
code that relies on it would break there. The rules are those of ATen's MemoryOverlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .call import Call
from .plan import Plan
from .program import written_slots
from .tensors import offset_of

_FILLS = frozenset({"fill", "zero", "full", "zeros", "eye", "tril", "triu", "sum"})
"""Operators that may write through an expanded tensor: they write every position, and the last one of an element counts."""
_BY_ELEMENT = frozenset({"copy", "where", "cat", "stack", "cumsum", "cumprod", "sort"})
"""Operators without the tag `pointwise` that refuse an operand which partly overlaps the target."""
_BY_INDEX = frozenset(
    {"gather", "index_select", "take", "put", "index_put", "_index_put_impl", "index_copy", "index_add", "index_reduce"}
    | {"scatter", "scatter_add", "scatter_reduce"}
)
"""Operators that refuse any operand in the target's memory."""


def refuse_expanded_target(plan: Plan, call: Call) -> None:
    """Raises RuntimeError for a write through an expanded tensor, where several positions are one element."""
    if _packet(plan) in _FILLS:
        return
    for slot in written_slots(plan, call):
        if any(step == 0 and n > 1 for n, step in zip(slot.size, slot.stride, strict=True)) and 0 not in slot.size:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )


def refuse_shared_operands(plan: Plan, call: Call) -> None:
    """Raises RuntimeError if an operand and a target of an elementwise or indexing operator are in part the same memory."""
    by_index = _packet(plan) in _BY_INDEX
    if not by_index and _packet(plan) not in _BY_ELEMENT and torch.Tag.pointwise not in plan.op.tags:
        return
    targets = list(_tensors(plan, call, written=True))
    for operand in _tensors(plan, call, written=False):
        for target in targets:
            if (by_index or operand is not target) and overlap(target, operand) in (("part", "full") if by_index else ("part",)):
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                    "Please clone() the tensor before performing the operation."
                )


def overlap(a: torch.Tensor, b: torch.Tensor) -> str:
    """How the memory of two tensors overlaps: `none`, `part`, `full`, or `unknown` if one of them has gaps."""
    if a.untyped_storage() is not b.untyped_storage() or not a.numel() or not b.numel():
        return "none"
    if not (_is_dense(a) and _is_dense(b)):
        return "unknown"
    a_start, b_start = offset_of(a) * a.element_size(), offset_of(b) * b.element_size()
    a_end, b_end = a_start + a.numel() * a.element_size(), b_start + b.numel() * b.element_size()
    if (a_start, a_end) == (b_start, b_end):
        return "full" if a.stride() == b.stride() else "part"
    return "part" if a_start < b_end and b_start < a_end else "none"


def _is_dense(tensor: torch.Tensor) -> bool:
    """True if the elements fill the memory between the first and the last one, each in a place of its own."""
    step = 1
    for stride, size in sorted((s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def _packet(plan: Plan) -> str:
    """`add` for `aten.add_.Tensor` and `aten.add.out`."""
    return plan.name.partition(".")[0].removesuffix("_")


def _tensors(plan: Plan, call: Call, written: bool) -> Iterator[torch.Tensor]:
    for argument, value in zip(plan.arguments, call.arguments, strict=True):
        if argument.written != written:
            continue
        values: Any = value if isinstance(value, (list, tuple)) else (value,)
        yield from (v for v in values if isinstance(v, torch.Tensor) and v.device.type == "tpu")
