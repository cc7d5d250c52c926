"""One call of an overload on chosen CPU tensors, by its lowering and by torch; and the values worth choosing."""

from __future__ import annotations

import math
from typing import Any

import torch

from tests.lowering.replay import call, compare
from tpu_lab.lowering.registry import find

_FLOATS = (0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2, -2, 3, -3, 6, -6, 3.5, 7.25, 20, -20, 100, -100, 1e-3, 1e-10, 1e10, -1e10, 1e30, -1e30)
_INTEGERS = (0, 1, -1, 2, -2, 3, 7, -7, 8, -8, 63, 64, 100, -100, 126, -127)


def floats(dtype: torch.dtype, finite: bool = False) -> torch.Tensor:
    """Numbers at which elementwise functions turn; infinities and NaN last. Without subnormal numbers, which XLA flushes to zero."""
    return torch.tensor(_FLOATS if finite else (*_FLOATS, math.inf, -math.inf, math.nan), dtype=dtype)


def integers(dtype: torch.dtype) -> torch.Tensor:
    """Small integers and the ends of the dtype's range."""
    info = torch.iinfo(dtype)
    return torch.tensor(sorted({min(max(v, info.min), info.max) for v in _INTEGERS} | {info.min, info.max}), dtype=dtype)


def grid(values: torch.Tensor, others: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair of the values, as two tensors that broadcast: [n, 1] and [m]."""
    return values[:, None], values if others is None else others


def assert_same(overload: str, *args: Any, rtol: float | None = None, atol: float | None = None, **kwargs: Any) -> None:
    """Asserts that the lowering of `overload` gives what torch gives for these arguments, within the dtype's usual tolerance or the given one."""
    packet, _, name = overload.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), name or "default")
    found = find(overload)
    assert found is not None, f"{overload} has no lowering"
    if rtol is not None or atol is not None:
        rtol, atol = rtol or 0.0, atol if atol is not None else 1e-6
    expected = op(*args, **kwargs)
    compare(call(found, op, args, kwargs), expected, f"{overload}{args[1:] if args else ()}", rtol, atol)
