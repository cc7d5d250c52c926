"""Which values an operator refuses: indices out of range, probabilities that are none, whole numbers divided by zero.

A lowering cannot raise on values. A check takes the lowering's arguments and returns a 0-d bool array, True if any value is
refused; the device computes it in the same program and looks at it at the latest when a result is read. Ranges and
exception types are ATen's on the CPU: positions that count from the end are accepted only where ATen accepts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from jax import Array, lax

from .axes import axis_of, with_axis
from .linalg import cholesky_ex
from .promotion import Number, cast, is_floating, is_integral
from .registry import lowering
from .scatter import single_mask

Check = Callable[..., Array]
CheckFunction = TypeVar("CheckFunction", bound=Check)


class Complaint(IntEnum):
    """What is wrong with a value; a program returns the highest one it found, or 0."""

    INDEX = 1
    PLACE = 2
    """An index too, where ATen raises RuntimeError."""
    PROBABILITY = 3
    DIVISOR = 4
    SINGULAR = 5
    ASSERTION = 6


@dataclass(frozen=True)
class ValueCheck:
    """The check of an overload: it takes the arguments of the lowering and returns a 0-d bool array, True for `complaint`."""

    refused: Check
    complaint: Complaint

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """0, or the complaint, as a 0-d uint8 array."""
        flag = self.refused(*args, **kwargs)
        return lax.select(flag, np.uint8(self.complaint), np.uint8(0))


CHECKS: dict[str, ValueCheck] = {}
_OF_INTEGERS: set[str] = set()


def check(*overloads: str, complaint: Complaint = Complaint.INDEX, integers_only: bool = False) -> Callable[[CheckFunction], CheckFunction]:
    """Registers a function as the check of `overloads`; with `integers_only` for calls on integer and bool tensors alone."""

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS.update(dict.fromkeys(overloads, ValueCheck(function, complaint)))
        _OF_INTEGERS.update(overloads if integers_only else ())
        return function

    return register


def values_checked(overload: str, dtypes: Sequence[Any] = ()) -> ValueCheck | None:
    """The check of an overload called on tensors of these jax dtypes, None if it cannot fail."""
    if overload in _OF_INTEGERS and not all(is_integral(d) or d == np.bool_ for d in dtypes):
        return None
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


@check(*_ALONG_A_DIM, complaint=Complaint.PLACE)
@check("index_select", "index_add", "index_copy", "index_reduce")
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


@check("_embedding_bag", "_embedding_bag_forward_only", complaint=Complaint.PLACE)
@check("embedding", "embedding_renorm")
def _rows(weight: Array, indices: Array, *_: Any) -> Array:
    return _outside(indices, 0, weight.shape[0])


@check("max_unpool2d", "max_unpool3d", complaint=Complaint.PLACE)
def _max_unpool(self: Array, indices: Array, output_size: Sequence[int], *_: Any) -> Array:
    return _outside(indices, 0, math.prod(output_size))


@check("multi_margin_loss", complaint=Complaint.PLACE)
def _multi_margin_loss(self: Array, target: Array, *_: Any) -> Array:
    return _outside(target, 0, self.shape[-1] if self.ndim else 1)


@check("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Array:
    """A target is a class or `ignore_index`."""
    classes = self.shape[0] if self.ndim == 1 else self.shape[1]
    counted = lax.ne(target, lax.full_like(target, ignore_index))
    return _outside(lax.select(counted, target, lax.full_like(target, 0)), 0, max(classes, 1))


@check("searchsorted.Tensor", "searchsorted.Scalar", complaint=Complaint.PLACE)
def _sorter(sorted_sequence: Array, self: Any, *, sorter: Array | None, **_: Any) -> Array:
    return lax.full((), False, np.bool_) if sorter is None else _outside(sorter, 0, sorted_sequence.shape[-1])


def _some(flags: Array) -> Array:
    return lax.reduce_or(flags, tuple(range(flags.ndim)))


def _outside_unit(value: Array) -> Array:
    """True if any number (NaN too) lies outside [0, 1]."""
    return _some(lax.bitwise_not(lax.bitwise_and(lax.ge(value, lax.full_like(value, 0)), lax.le(value, lax.full_like(value, 1)))))


@check("bernoulli", complaint=Complaint.PROBABILITY)
def _bernoulli(self: Array, **_: Any) -> Array:
    return _outside_unit(self) if is_floating(self.dtype) else lax.full((), False, np.bool_)


@check("bernoulli.Tensor", complaint=Complaint.PROBABILITY)
def _bernoulli_by(self: Array, p: Array, **_: Any) -> Array:
    return _bernoulli(p)


@check("binary_cross_entropy", complaint=Complaint.PROBABILITY)
def _binary_cross_entropy(self: Array, target: Array, *_: Any) -> Array:
    return lax.bitwise_or(_outside_unit(self), _outside_unit(target))


@check("multinomial", complaint=Complaint.PROBABILITY)
def _multinomial(self: Array, *_: Any, **__: Any) -> Array:
    """A weight is finite and not negative, and some weight of each row is positive."""
    weights = cast(self, np.float32) if self.dtype.itemsize < 4 else self
    zero = lax.full_like(weights, 0)
    fine = lax.bitwise_and(lax.ge(weights, zero), lax.is_finite(weights))
    possible = lax.reduce_or(lax.gt(weights, zero), (weights.ndim - 1,))
    return lax.bitwise_or(_some(lax.bitwise_not(fine)), _some(lax.bitwise_not(possible)))


@check("poisson", "normal.float_Tensor", complaint=Complaint.PROBABILITY)
def _negative_last(*given: Any, **_: Any) -> Array:
    """The last tensor holds a rate, or a standard deviation: not negative."""
    value = given[-1]
    return _some(lax.lt(value, lax.full_like(value, 0)))


@check("normal.Tensor_Tensor", complaint=Complaint.PROBABILITY)
def _negative_deviation(mean: Array, std: Array, **_: Any) -> Array:
    return _negative_last(std)


_DIVISIONS = ("floor_divide", "remainder.Tensor", "remainder.Scalar_Tensor", "fmod.Tensor", "div.Tensor_mode")


@check(*_DIVISIONS, complaint=Complaint.DIVISOR, integers_only=True)
def _divides_by_zero(self: Any, other: Any, *, rounding_mode: str | None = "floor") -> Array:
    """Whole numbers by a tensor; a Python number is looked at before the program runs."""
    if isinstance(other, Number) or rounding_mode is None:
        return lax.full((), False, np.bool_)
    return _some(lax.eq(other, lax.full_like(other, 0)))


@check("_assert_async", "_assert_async.msg", complaint=Complaint.ASSERTION)
def _fails(self: Array, *_: Any) -> Array:
    return _some(lax.bitwise_not(cast(self, np.bool_)))


@lowering("_assert_async", "_assert_async.msg")
def _assert_async(self: Array, *_: Any) -> tuple[()]:
    """Nothing but its check."""
    return ()


@check("_linalg_check_errors", complaint=Complaint.SINGULAR)
def _linalg_failed(info: Array, *_: Any, **__: Any) -> Array:
    return _some(lax.ne(info, lax.full_like(info, 0)))


@check("cholesky", complaint=Complaint.SINGULAR)
def _not_positive_definite(self: Array, upper: bool) -> Array:
    return _linalg_failed(cholesky_ex(self, upper=upper, check_errors=False)[1])


@lowering("_linalg_check_errors")
def _linalg_check_errors(info: Array, api_name: str, *, is_matrix: bool) -> tuple[()]:
    """Nothing but its check; only graphs ask for it."""
    return ()
