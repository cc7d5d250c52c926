"""Comparisons, logic, bits, choices and limits.

Sources: the ATen schemas and PyTorch's documentation for the meaning, CPU PyTorch for every edge value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .binary import promoted
from .promotion import Operand, cast, is_complex, is_floating
from .registry import lowering

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}
_LOGIC: dict[str, Callable[[Array, Array], Array]] = {"logical_and": lax.bitwise_and, "logical_or": lax.bitwise_or, "logical_xor": lax.bitwise_xor}
_BITS: dict[str, Callable[[Array, Array], Array]] = {"bitwise_and": lax.bitwise_and, "bitwise_or": lax.bitwise_or, "bitwise_xor": lax.bitwise_xor}


def _broadcast(*operands: Operand) -> list[Array]:
    """The operands in their common dtype (no wider: a number equals a bfloat16 if it rounds to it) and their common shape."""
    return list(jnp.broadcast_arrays(*promoted(*operands, compute=False)))


def _register() -> None:
    for name, compare in _COMPARISONS.items():

        def comparison(a: Operand, b: Operand, compare: Callable[[Array, Array], Array] = compare) -> Array:
            return compare(*_broadcast(a, b))

        lowering(f"{name}.Tensor", f"{name}.Scalar")(comparison)
    for name, combine in _LOGIC.items():

        def logic(a: Array, b: Array, combine: Callable[[Array, Array], Array] = combine) -> Array:
            return combine(*jnp.broadcast_arrays(cast(a, np.bool_), cast(b, np.bool_)))

        lowering(name)(logic)
    for name, combine in _BITS.items():

        def bits(a: Operand, b: Operand, combine: Callable[[Array, Array], Array] = combine) -> Array:
            return combine(*_broadcast(a, b))

        lowering(f"{name}.Tensor", f"{name}.Scalar", f"{name}.Scalar_Tensor")(bits)


_register()


@lowering("logical_not")
def logical_not(x: Array) -> Array:
    return lax.bitwise_not(cast(x, np.bool_))


@lowering("bitwise_not")
def bitwise_not(x: Array) -> Array:
    return lax.bitwise_not(x)


@lowering(
    "__lshift__.Tensor", "__lshift__.Scalar", "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "bitwise_left_shift.Scalar_Tensor"
)
def left_shift(a: Operand, b: Operand) -> Array:
    """a << b; 0 for a distance that is negative or not below the width."""
    return lax.shift_left(*_broadcast(a, b))


@lowering(
    "__rshift__.Tensor", "__rshift__.Scalar", "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor"
)
def right_shift(a: Operand, b: Operand) -> Array:
    """a >> b, arithmetic for signed integers; all bits leave for a distance that is negative or not below the width."""
    a, b = _broadcast(a, b)
    return lax.shift_right_arithmetic(a, b) if jnp.issubdtype(a.dtype, jnp.signedinteger) else lax.shift_right_logical(a, b)


def _part_test(test: Callable[[Array], Array], x: Array) -> Array:
    """`test` of a floating array, of either part of a complex one; False for integers."""
    if is_complex(x.dtype):
        return test(lax.real(x)) | test(lax.imag(x))
    return test(x) if is_floating(x.dtype) else jnp.zeros(x.shape, dtype=np.bool_)


@lowering("isnan")
def isnan(x: Array) -> Array:
    return _part_test(lambda v: lax.ne(v, v), x)


@lowering("isinf")
def isinf(x: Array) -> Array:
    return _part_test(lambda v: lax.abs(v) == math.inf, x)


@lowering("isposinf")
def isposinf(x: Array) -> Array:
    return _part_test(lambda v: v == math.inf, x)


@lowering("isneginf")
def isneginf(x: Array) -> Array:
    return _part_test(lambda v: v == -math.inf, x)


@lowering("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(condition: Array, a: Operand, b: Operand) -> Array:
    """`a` where the condition (bool, or uint8 as bool) holds, else `b`, in their common dtype."""
    return lax.select(*jnp.broadcast_arrays(cast(condition, np.bool_), *promoted(a, b, compute=False)))


@lowering("maximum", "clamp_min", "clamp_min.Tensor")
def maximum(a: Operand, b: Operand) -> Array:
    """The larger; NaN if either is NaN."""
    return lax.max(*_broadcast(a, b))


@lowering("minimum", "clamp_max", "clamp_max.Tensor")
def minimum(a: Operand, b: Operand) -> Array:
    """The smaller; NaN if either is NaN."""
    return lax.min(*_broadcast(a, b))


@lowering("clamp", "clamp.Tensor")
def clamp(x: Operand, low: Operand | None, high: Operand | None) -> Array:
    """min(max(x, low), high), so `high` where the limits cross; NaN if any is NaN."""
    given = [limit for limit in (low, high) if limit is not None]
    value, *limits = _broadcast(x, *given)
    if low is not None:
        value = lax.max(value, limits[0])
    return value if high is None else lax.min(value, limits[-1])


@lowering("fmax")
def fmax(a: Array, b: Array) -> Array:
    """The larger; a NaN gives way to a number."""
    a, b = _broadcast(a, b)
    return lax.select((a >= b) | (b != b), a, b)


@lowering("fmin")
def fmin(a: Array, b: Array) -> Array:
    """The smaller; a NaN gives way to a number."""
    a, b = _broadcast(a, b)
    return lax.select((a <= b) | (b != b), a, b)
