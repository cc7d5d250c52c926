"""Sizes, strides and offsets that a graph states as expressions, as numbers for the inputs at hand.

With `dynamic=True` the fake tensors of a graph have symbolic sizes. Every symbol stands in the sizes, strides or offset of an input, or is
an input itself, so each expression is known when the inputs are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import torch

Bindings = Mapping[Any, int]
"""What each symbol of a graph is."""
Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Size, stride and storage offset, in elements."""


def bindings(placeholders: Sequence[torch.fx.Node], inputs: Sequence[Any]) -> Bindings:
    """The symbols that stand alone in the geometry of an input, with the numbers of the inputs given (tensors, or arrays of their shapes)."""
    found: dict[Any, int] = {}
    for node, value in zip(placeholders, inputs, strict=True):
        for stated, actual in zip(_numbers(node.meta.get("val")), _numbers(value), strict=False):
            if isinstance(stated, torch.SymInt) and stated.node.expr.is_Symbol and isinstance(actual, int):
                found.setdefault(stated.node.expr, actual)
    return found


def sizes(meta: torch.Tensor, bound: Bindings) -> tuple[int, ...] | None:
    """The shape of a fake tensor as numbers; None if a symbol is not known."""
    found = [_number(n, bound) for n in meta.shape]
    known = tuple(n for n in found if n is not None)
    return known if len(known) == len(found) else None


def symbols(placeholders: Iterable[torch.fx.Node]) -> frozenset[Any]:
    """The symbols that `bindings` will know."""
    stated = [n for node in placeholders for n in _numbers(node.meta.get("val"))]
    return frozenset(n.node.expr for n in stated if isinstance(n, torch.SymInt) and n.node.expr.is_Symbol)


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, jax.Array):
        yield from value.shape
    elif isinstance(value, torch.Tensor):
        if value.layout == torch.strided:
            yield from (*value.shape, *value.stride(), value.storage_offset())
    elif isinstance(value, (int, torch.SymInt)):
        yield value


def is_known(meta: torch.Tensor, known: frozenset[Any]) -> bool:
    """Whether the geometry of a fake tensor follows from these symbols."""
    return all(isinstance(n, int) or n.node.expr.free_symbols <= known for n in _numbers(meta))


def of(meta: torch.Tensor, bound: Bindings) -> Geometry | None:
    """The geometry of a fake tensor as numbers; None if a symbol is not known."""
    numbers = [_number(n, bound) for n in _numbers(meta)]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return None
    rank = meta.dim()
    return tuple(known[:rank]), tuple(known[rank : 2 * rank]), known[-1]


def _number(stated: Any, bound: Bindings) -> int | None:
    if isinstance(stated, int):
        return stated
    value = stated.node.expr.subs(dict(bound))
    return int(value) if value.is_number else None
