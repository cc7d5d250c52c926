"""Whether the device answers as the CPU does: values within OpInfo's tolerance, shapes, dtypes, and the type of an exception."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo

CPU_KERNEL_MISSING = re.compile(r"not implemented for '|is_contiguous\(memory_format\)")
"""What the CPU says where only its kernel lacks the dtype: such a sample says nothing about the device."""


class Disagreement(Exception):
    """The device's answer differs."""


class Agreement(enum.IntEnum):
    """How two answers agree, the best first. `UNCOMPARED`: there is nothing to compare."""

    UNCOMPARED = 0
    SAME = 1
    """Within OpInfo's tolerance of the CPU's result, or an exception of its type."""
    EXACT = 2
    """Within that tolerance of the result in double precision; the CPU's own is farther off."""
    NEAR = 3
    """Outside it, and as near to the result in double precision as the CPU's own."""
    DIFFERENT = 4


@dataclass(frozen=True)
class Tolerance:
    """None: what `torch.testing.assert_close` takes for the dtype. Otherwise the larger of that and OpInfo's override."""

    rtol: float | None = None
    atol: float | None = None


_DEFAULTS = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""The relative and absolute tolerances of `torch.testing.assert_close`."""


def tolerance_of(info: Any, dtype: torch.dtype) -> Tolerance:
    """The widest tolerance among those an OpInfo or ModuleInfo states for a dtype (`toleranceOverride`, `precisionOverride`)."""
    rtol, atol = _DEFAULTS.get(dtype, (0.0, 0.0))
    stated = False
    for entry in info.decorators:
        scoped = isinstance(entry, DecorateInfo)
        if scoped and ((entry.dtypes is not None and dtype not in entry.dtypes) or entry.device_type not in (None, "cpu", "cuda")):
            continue
        for decorator in entry.decorators if scoped else [entry]:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                rtol, atol, stated = max(rtol, decorator.d[dtype].rtol), max(atol, decorator.d[dtype].atol), True
            elif isinstance(decorator, precisionOverride) and dtype in decorator.d:
                atol, stated = max(atol, decorator.d[dtype]), True
    return Tolerance(rtol, atol) if stated else Tolerance()


def same(actual: Any, expected: Any, tolerance: Tolerance, where: str, values: bool = True) -> None:
    """Raises Disagreement unless `actual` is `expected`; without `values` only shapes and dtypes count (random results)."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            raise Disagreement(f"{where}: {type(actual).__name__} for a tensor")
        if actual.dtype != expected.dtype or actual.shape != expected.shape:
            raise Disagreement(f"{where}: {_short(actual.dtype)}{list(actual.shape)} for {_short(expected.dtype)}{list(expected.shape)}")
        if not values:
            return
        given, wanted = actual.detach().cpu().resolve_conj().resolve_neg(), expected.detach().resolve_conj().resolve_neg()
        try:
            torch.testing.assert_close(given, wanted, rtol=_for(wanted, tolerance.rtol), atol=_for(wanted, tolerance.atol), equal_nan=True)
        except AssertionError as error:
            raise Disagreement(f"{where}: values: {_worst(str(error))}") from None
    elif isinstance(expected, dict):
        if actual.keys() != expected.keys():
            raise Disagreement(f"{where}: other keys")
        for key, value in expected.items():
            same(actual[key], value, tolerance, f"{where}[{key!r}]", values)
    elif isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            raise Disagreement(f"{where}: another number of results")
        for i, (left, right) in enumerate(zip(actual, expected, strict=True)):
            same(left, right, tolerance, f"{where}[{i}]" if len(expected) > 1 else where, values)
    elif isinstance(expected, (int, float, complex)) and values:
        try:
            torch.testing.assert_close(actual, expected, equal_nan=True)
        except AssertionError:
            raise Disagreement(f"{where}: {actual!r} for {expected!r}") from None


def by_double_precision(actual: Any, expected: Any, exact: Any, tolerance: Tolerance) -> Agreement:
    """How device results agree with the `exact` ones (double precision) where they are outside the tolerance of the CPU's.

    Nearness is the largest error in units of the tolerance at that element.
    """
    if isinstance(expected, torch.Tensor):
        if not actual.shape == expected.shape == exact.shape or actual.dtype != expected.dtype:
            return Agreement.DIFFERENT
        if not (expected.is_floating_point() or expected.is_complex()):
            return Agreement.SAME if torch.equal(actual.cpu(), expected) else Agreement.DIFFERENT
        return _nearness(actual, expected, exact, tolerance)
    if isinstance(expected, dict):
        return max((by_double_precision(actual[k], expected[k], exact[k], tolerance) for k in expected), default=Agreement.SAME)
    if isinstance(expected, (list, tuple)):
        if len(exact) != len(expected):
            return Agreement.DIFFERENT
        return max((by_double_precision(*three, tolerance) for three in zip(actual, expected, exact, strict=True)), default=Agreement.SAME)
    return Agreement.SAME if actual == expected else Agreement.DIFFERENT


def _nearness(actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor, tolerance: Tolerance) -> Agreement:
    rtol, atol = _DEFAULTS.get(expected.dtype, (0.0, 0.0))
    rtol, atol = tolerance.rtol or rtol, tolerance.atol or atol
    wide = exact.detach().resolve_conj().resolve_neg()
    ours, theirs = (t.detach().cpu().resolve_conj().resolve_neg().to(wide.dtype) for t in (actual, expected))
    finite = ours.isfinite() & wide.isfinite()
    alike = torch.isclose(ours, wide, rtol=0, atol=0, equal_nan=True) | torch.isclose(ours, theirs, rtol=0, atol=0, equal_nan=True)
    if not (finite | alike).all():
        return Agreement.DIFFERENT
    errors = [((t - wide).abs() / (atol + rtol * wide.abs()))[finite].nan_to_num(torch.inf) for t in (ours, theirs)]
    largest, bound = (e.max().item() if e.numel() else 0.0 for e in errors)
    if largest <= 1:
        return Agreement.EXACT
    return Agreement.NEAR if largest <= bound else Agreement.DIFFERENT


def _for(tensor: torch.Tensor, bound: float | None) -> float | None:
    """A bound counts for floating values only."""
    return bound if tensor.is_floating_point() or tensor.is_complex() else (None if bound is None else 0.0)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _worst(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "difference" in line or "Mismatched" in line or "Expected" in line]
    return "; ".join(lines)[:200] or text[:200]


@dataclass(frozen=True)
class Outcome:
    """What a call came to: a value or an exception."""

    value: Any = None
    error: Exception | None = None


def outcome(function: Callable[[], Any]) -> Outcome:
    """Calls a function; its exceptions become part of the outcome."""
    try:
        return Outcome(value=function())
    except Exception as error:
        return Outcome(error=error)


def same_error(actual: Outcome, expected: Exception, where: str) -> None:
    """Raises Disagreement unless the device raised an exception of the CPU's type."""
    if actual.error is None:
        raise Disagreement(f"{where}: no {type(expected).__name__} ({_first_line(expected)})")
    if not isinstance(actual.error, type(expected)) and not isinstance(expected, type(actual.error)):
        raise Disagreement(
            f"{where}: {type(actual.error).__name__} ({_first_line(actual.error)}) for {type(expected).__name__} ({_first_line(expected)})"
        )


def raised(error: Exception, where: str) -> Disagreement:
    """The disagreement of a device that raised where the CPU did not."""
    return Disagreement(f"{where}: raised {type(error).__name__}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
