"""Which indices are out of range: for every lowering that indexes by a tensor, a check the device turns into an IndexError.

A lowering cannot raise on values. A check takes the lowering's arguments and returns a 0-d bool array, True if any index lies
outside; the device computes it in the same program and looks at it at the latest when a result is read. The ranges are
ATen's on the CPU: positions that count from the end are accepted only where ATen accepts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from jax import Array, lax

from .axes import axis_of, with_axis
from .promotion import Number
from .scatter import single_mask

Check = Callable[..., Array]
CheckFunction = TypeVar("CheckFunction", bound=Check)

CHECKS: dict[str, Check] = {}


def check(*overloads: str) -> Callable[[CheckFunction], CheckFunction]:
    """Registers a function as the check of `overloads`. It takes the arguments of the lowering and returns a 0-d bool array."""

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS.update(dict.fromkeys(overloads, function))
        return function

    return register


def out_of_range(overload: str) -> Check | None:
    """The check of an overload, None if it does not index by a tensor or cannot fail."""
    return CHECKS.get(overload)


def _outside(index: Array, low: int, high: int) -> Array:
    """True if any index lies outside [low, high)."""
    if index.size == 0:
        return lax.full((), False, np.bool_)
    limits = np.iinfo(index.dtype)
    bad = lax.full(index.shape, False, np.bool_)
    if limits.min < low:
        bad = lax.bitwise_or(bad, lax.lt(index, lax.full_like(index, low)))
    if limits.max >= high:
        bad = lax.bitwise_or(bad, lax.ge(index, lax.full_like(index, high)))
    return lax.reduce_or(bad, tuple(range(index.ndim)))


def _length(self: Array, dim: int) -> int:
    return int(with_axis(self).shape[axis_of(dim, self.ndim)])


_ALONG_A_DIM = ("gather", "scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add", "scatter_reduce.two")
_SLICES = ("index_select", "index_add", "index_copy", "index_reduce")


@check(*_ALONG_A_DIM, *_SLICES)
def _along_a_dim(self: Array, dim: int, index: Array, *_: Any, **__: Any) -> Array:
    return _outside(index, 0, _length(self, dim))


@check("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(self: Array, dim: int, index: Array, *_: Any) -> Array:
    length = _length(self, dim)
    return _outside(index, -length, length)


@check("take", "put")
def _flat(self: Array, index: Array, *_: Any) -> Array:
    return _outside(index, -self.size, self.size)


def _any_of(flags: Sequence[Array]) -> Array:
    found = lax.full((), False, np.bool_)
    for flag in flags:
        found = lax.bitwise_or(found, flag)
    return found


@check("index.Tensor")
def _index(self: Array, indices: Sequence[Array | None]) -> Array:
    return _any_of([_outside(i, -self.shape[d], self.shape[d]) for d, i in enumerate(indices) if i is not None and i.dtype != np.bool_])


@check("index_put", "_index_put_impl")
def _index_put(self: Array, indices: Sequence[Array | None], values: Array | Number, *_: Any) -> Array:
    """For a bool mask: True if `values` are not as many as the mask chooses."""
    masked = single_mask(indices)
    if masked is None:
        return _index(self, indices)
    first, mask = masked
    shape = () if isinstance(values, Number) else values.shape
    at = first - (self.ndim - mask.ndim + 1 - len(shape))
    if at < 0 or shape[at] == 1:
        return lax.full((), False, np.bool_)
    chosen = lax.reduce_sum(mask.astype(np.int64), tuple(range(mask.ndim)))
    return lax.ne(chosen, np.int64(shape[at]))


@check("embedding", "embedding_renorm", "_embedding_bag", "_embedding_bag_forward_only")
def _rows(weight: Array, indices: Array, *_: Any) -> Array:
    return _outside(indices, 0, weight.shape[0])


@check("max_unpool2d", "max_unpool3d")
def _max_unpool(self: Array, indices: Array, output_size: Sequence[int], *_: Any) -> Array:
    return _outside(indices, 0, math.prod(output_size))


@check("multi_margin_loss")
def _multi_margin_loss(self: Array, target: Array, *_: Any) -> Array:
    return _outside(target, 0, self.shape[-1] if self.ndim else 1)


@check("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    """A target is a class or `ignore_index`."""
    classes = self.shape[0] if self.ndim == 1 else self.shape[1]
    counted = lax.ne(target, lax.full_like(target, ignore_index))
    return _outside(lax.select(counted, target, lax.full_like(target, 0)), 0, max(classes, 1))


@check("searchsorted.Tensor", "searchsorted.Scalar")
def _sorter(sorted_sequence: Array, self: Any, *, sorter: Array | None, **_: Any) -> Array:
    return lax.full((), False, np.bool_) if sorter is None else _outside(sorter, 0, sorted_sequence.shape[-1])
