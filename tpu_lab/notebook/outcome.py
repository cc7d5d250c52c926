"""What a cell left behind as numbers, and how far two modes' numbers are apart."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..record.comparison import Difference, NamedDifference
from .cell import Cell

MOST_NAMED = 5
"""Of the values that differ, this many are named."""
MOST_ITEMS = 2_000
"""Of a list or dict, this many entries are compared."""
_DEPTH = 3
_TOLERANCES = {
    torch.float64: 1e-7,
    torch.float32: 1.3e-6,
    torch.float16: 1e-3,
    torch.bfloat16: 1.6e-2,
    torch.complex128: 1e-7,
    torch.complex64: 1.3e-6,
}
"""Relative tolerances of `torch.testing.assert_close`, by dtype."""

Outcome = dict[str, torch.Tensor]
"""CPU copies by where they are found: `loss`, `model.0.weight`, `losses[3]`."""


def names_of(cell: Cell) -> list[str]:
    """The names a cell binds or reads at any place, in order of appearance; names with an underscore in front are left out."""
    names = (n.id for node in cell.nodes for n in ast.walk(node) if isinstance(n, ast.Name))
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def lines_of(cell: Cell) -> dict[str, int]:
    """For each name the line of the cell that binds it last, else the first that reads it."""
    found: dict[str, tuple[bool, int]] = {}
    for name in (n for node in cell.nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
        binds = isinstance(name.ctx, ast.Store)
        before = found.get(name.id)
        if before is None or (binds and (not before[0] or name.lineno > before[1])) or (not binds and not before[0] and name.lineno < before[1]):
            found[name.id] = (binds, name.lineno)
    return {name: line for name, (_, line) in found.items()}


def outcome(names: list[str], namespace: Mapping[str, Any]) -> Outcome:
    """The tensors, modules' parameters and buffers, arrays and numbers behind the names, copied to the host."""
    found: Outcome = {}
    for name in names:
        if name in namespace:
            for place, tensor in _numbers(name, namespace[name], _DEPTH):
                found[place] = tensor
    return found


def _numbers(place: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if value.layout == torch.strided:
            yield place, value.detach().cpu().clone().resolve_conj().resolve_neg()
    elif isinstance(value, torch.nn.Module):
        for name, part in value.state_dict().items():
            yield from _numbers(f"{place}.{name}", part, 0)
    elif type(value) in (int, float, complex, bool):
        yield place, torch.tensor(value, dtype=torch.complex128 if type(value) is complex else torch.float64)
    elif "numpy" in sys.modules and isinstance(value, (sys.modules["numpy"].ndarray, sys.modules["numpy"].number)):
        if value.dtype.kind in "fiub" and value.dtype.itemsize <= 8:
            yield place, torch.from_numpy(sys.modules["numpy"].array(value))
    elif depth and isinstance(value, (list, tuple)):
        for i, part in enumerate(value[:MOST_ITEMS]):
            yield from _numbers(f"{place}[{i}]", part, depth - 1)
    elif depth and isinstance(value, dict):
        for key in list(value)[:MOST_ITEMS]:
            if isinstance(key, (str, int)):
                yield from _numbers(f"{place}[{key!r}]", value[key], depth - 1)


def difference(ours: Outcome, reference: Outcome, lines: Mapping[str, int] | None = None) -> Difference:
    """The largest difference over everything both have.

    Relative means max|a - b| / max|b| over one tensor (b: the reference), so that elements near zero do not drown the rest.
    A NaN or infinity in one of the two only, or another shape, is reported as `nonfinite` with its name. `lines` is what
    `lines_of` says of the cell.
    """
    worst_abs, worst_rel, worst_name, tolerance, compared = 0.0, -1.0, "", None, 0
    apart = ""
    named: list[tuple[float, NamedDifference]] = []
    for place, theirs in reference.items():
        mine = ours.get(place)
        if mine is None:
            continue
        compared += 1
        if mine.shape != theirs.shape or not _same_nonfinite(mine, theirs):
            apart = apart or place
            named.append((float("inf"), NamedDifference(place, None, _line(place, lines))))
            continue
        absolute, relative = _distance(mine, theirs)
        worst_abs = max(worst_abs, absolute)
        if relative:
            named.append((relative, NamedDifference(place, relative, _line(place, lines))))
        if relative > worst_rel:
            worst_rel, worst_name, tolerance = relative, place, _TOLERANCES.get(theirs.dtype)
    if not compared:
        return Difference()
    largest = tuple(one for _, one in sorted(named, key=lambda pair: -pair[0])[:MOST_NAMED])
    if apart:
        return Difference(None, None, apart, True, compared, tolerance, largest)
    return Difference(worst_abs, max(worst_rel, 0.0), worst_name, False, compared, tolerance, largest)


def _line(place: str, lines: Mapping[str, int] | None) -> int:
    """The line of the variable that a place such as `losses[3]` starts with; 0 if it is not known."""
    return (lines or {}).get(re.split(r"[.\[]", place, maxsplit=1)[0], 0)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _same_nonfinite(a: torch.Tensor, b: torch.Tensor) -> bool:
    a, b = _wide(a), _wide(b)
    rest_a, rest_b = torch.where(torch.isfinite(a), 0, a), torch.where(torch.isfinite(b), 0, b)
    return torch.equal(torch.isnan(a), torch.isnan(b)) and bool(torch.allclose(rest_a, rest_b, rtol=0, atol=0, equal_nan=True))


def _distance(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    a, b = _wide(a), _wide(b)
    finite = torch.isfinite(a) & torch.isfinite(b)
    a, b = a[finite], b[finite]
    if not a.numel():
        return 0.0, 0.0
    absolute, scale = float((a - b).abs().max()), float(b.abs().max())
    return absolute, absolute / scale if scale else (0.0 if not absolute else float("inf"))
