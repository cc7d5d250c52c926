"""A call of an operator as Python text that can be pasted: small operands with their values, larger ones made up anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_LITERAL = 12
"""Elements up to which a tensor's values stand in the text."""
_LONGEST = 900


@dataclass(frozen=True)
class Example:
    """`code` has a line for each operand and the call at the end; the smaller `rank`, the better it reads."""

    code: str
    rank: tuple[int, int]


class _Untold(Exception):
    """An argument that has no text."""


def example_of(op: Any, args: Any, kwargs: Any) -> Example | None:
    """The call `torch.ops.aten.<op>(*args, **kwargs)`; None where an argument has no text."""
    base, _, overload = op.name().removeprefix("aten::").partition(".")
    return _example(f"torch.ops.aten.{base}.{overload or 'default'}", args, kwargs)


def from_sample(op: Any, sample: Any) -> Example | None:
    """The call of an OpInfo's function by the name it has in torch; None where it has none."""
    found: Any = torch
    for part in op.name.split("."):
        found = getattr(found, part, None)
    return _example(f"torch.{op.name}", (sample.input, *sample.args), sample.kwargs) if callable(found) else None


def _example(callee: str, args: Any, kwargs: Any) -> Example | None:
    operands: list[torch.Tensor] = []
    try:
        words = [_text(arg, operands) for arg in args] + [f"{name}={_text(arg, operands)}" for name, arg in kwargs.items()]
        lines = [f"{_name(i)} = {_tensor(operand)}" for i, operand in enumerate(operands)]
    except _Untold:
        return None
    code = "\n".join([*lines, f"{callee}({', '.join(words)})"])
    elements = sum(operand.numel() for operand in operands)
    empty = any(operand.numel() == 0 for operand in operands) or not operands
    return Example(code, (int(empty), elements + len(code) // 20)) if len(code) <= _LONGEST else None


def _name(position: int) -> str:
    return "xyzw"[position] if position < 4 else f"x{position}"


def _text(value: Any, operands: list[torch.Tensor]) -> str:
    if isinstance(value, torch.Tensor):
        known = next((i for i, operand in enumerate(operands) if operand is value), None)
        if known is None:
            operands.append(value)
            known = len(operands) - 1
        return _name(known)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_text(item, operands) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return '"tpu"'
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    raise _Untold


def _tensor(tensor: torch.Tensor) -> str:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise _Untold
    dtype = "" if tensor.dtype in (torch.float32, torch.int64, torch.bool) else f", dtype={tensor.dtype}"
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.numel() <= _LITERAL and plain.dtype not in (torch.complex32,):
        values = plain.float() if plain.dtype in (torch.bfloat16, torch.float16) else plain
        if plain.numel() == 0:
            return f"torch.empty({_shape(plain)}{dtype})"
        return f"torch.tensor({_rounded(values.tolist())}{dtype})"
    if plain.dtype == torch.bool:
        return f"torch.rand({_shape(plain)}) < 0.5"
    if plain.is_floating_point() or plain.is_complex():
        return f"torch.rand({_shape(plain)}{dtype})"
    low, high = int(plain.min()), int(plain.max())
    return f"torch.randint({low}, {high + 1}, ({_shape(plain)},){dtype})"


def _shape(tensor: torch.Tensor) -> str:
    return ", ".join(map(str, tensor.shape)) or "()"


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.3g}") if isinstance(value, float) and value == value and abs(value) != float("inf") else value
