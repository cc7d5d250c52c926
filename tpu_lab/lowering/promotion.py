"""PyTorch's type promotion for lowerings.

Operands count in three classes: tensors with dimensions, 0-dim tensors, Python numbers (`Number`). A lower class widens the
result only if its category (bool < integer < floating < complex) is higher than that of the classes above
(https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from .dtypes import to_jax, to_torch
from .registry import lowering


@dataclass(frozen=True)
class Number:
    """A Python number given to an operator: a 0-d array of bool, int64, float64 or complex128, known only when the program runs."""

    value: Array

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.value.dtype)

    def to(self, dtype: Any) -> Array:
        """The number as a 0-d array of `dtype`."""
        return cast(self.value, dtype)


jax.tree_util.register_dataclass(Number, data_fields=["value"], meta_fields=[])
Operand = Array | Number


def is_floating(dtype: Any) -> bool:
    """True for every real floating dtype, bfloat16 and the 8-bit floats included."""
    return jnp.issubdtype(dtype, jnp.floating)


def is_complex(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.complexfloating)


def is_integral(dtype: Any) -> bool:
    """True for integers, not for bool."""
    return jnp.issubdtype(dtype, jnp.integer)


def default_float() -> np.dtype:
    """What an integer becomes where a result has to be a floating number (`torch.get_default_dtype()`)."""
    return to_jax(torch.get_default_dtype())


_SATURATING = np.dtype(jnp.float8_e4m3fn)


def cast(value: Array, dtype: Any) -> Array:
    """`value.to(dtype)` with PyTorch's rules.

    A float goes to an integer by truncation and wraps (through int64), anything but 0 is True, and what is beyond the range of
    float8_e4m3fn (infinities too) becomes its largest number.
    """
    dtype = np.dtype(dtype)
    if value.dtype == dtype:
        return value
    if dtype == np.bool_:
        return value != 0
    if value.dtype == np.bool_ and not is_integral(dtype):
        value = lax.convert_element_type(value, np.dtype(np.uint8))  # XLA makes a choice of a mask times x, and False * nan would be 0
    if is_complex(value.dtype) and not is_complex(dtype):
        value = lax.real(value)
    if dtype == _SATURATING and is_floating(value.dtype) and value.dtype.itemsize > 1:
        limit = torch.finfo(torch.float8_e4m3fn).max
        value = lax.clamp(value.dtype.type(-limit), value, value.dtype.type(limit))
    if is_floating(value.dtype) and is_integral(dtype) and dtype.itemsize < 8:
        return lax.convert_element_type(lax.convert_element_type(value, np.dtype(np.int64)), dtype)
    return lax.convert_element_type(value, dtype)


def _category(dtype: np.dtype) -> int:
    if dtype == np.bool_:
        return 0
    if is_integral(dtype):
        return 1
    return 3 if is_complex(dtype) else 2


def result_dtype(*operands: Operand) -> np.dtype:
    """The dtype PyTorch gives an arithmetic result of these operands (`torch.result_type`)."""
    classes: list[np.dtype | None] = [None, None, None]
    for operand in operands:
        rank = 2 if isinstance(operand, Number) else 1 if operand.ndim == 0 else 0
        dtype = operand.dtype
        if rank == 2:
            dtype = _number_dtype(dtype)
        seen = classes[rank]
        classes[rank] = dtype if seen is None else _promote(seen, dtype)
    result: np.dtype | None = None
    for candidate in classes:
        if candidate is None:
            continue
        if result is None or _category(candidate) > _category(result):
            result = candidate if result is None else _widen(result, candidate)
    if result is None:
        raise ValueError("result_dtype needs at least one operand")
    return result


def _number_dtype(dtype: np.dtype) -> np.dtype:
    if is_complex(dtype):
        return np.dtype(np.complex128) if default_float() == np.float64 else np.dtype(np.complex64)
    return default_float() if is_floating(dtype) else dtype


def _promote(a: np.dtype, b: np.dtype) -> np.dtype:
    return to_jax(torch.promote_types(to_torch(a), to_torch(b)))


def _widen(higher_class: np.dtype, lower_class: np.dtype) -> np.dtype:
    """A lower class of a higher category decides the category; a complex one keeps the precision of the floats above it."""
    if _category(lower_class) == 3 and _category(higher_class) == 2:
        return _promote(higher_class, np.dtype(np.complex64))
    return lower_class


def opmath(dtype: np.dtype) -> np.dtype:
    """The dtype arithmetic is done in: float32 for the 16- and 8-bit floats, else `dtype` itself."""
    return np.dtype(np.float32) if is_floating(dtype) and dtype.itemsize < 4 else np.dtype(dtype)


Kind = Literal["default", "no_opmath", "int_to_float", "always_bool", "complex_to_float", "bool_to_long"]


def pointwise(*overloads: str, kind: Kind = "default", static: tuple[str, ...] = ()) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Registers an elementwise lowering that sees its operands already promoted.

    The wrapped function gets every array and Number argument as an array of the computation dtype (`kind` as in
    `torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND`: 16-bit floats compute in float32 unless `no_opmath`); other
    arguments pass through. Its result is cast to the result dtype (`always_bool`: bool). Broadcasting is jnp's.
    """

    def decorate(function: Callable[..., Array]) -> Callable[..., Array]:
        @functools.wraps(function)
        def lowered(*args: Any, **kwargs: Any) -> Array:
            operands = [a for a in (*args, *kwargs.values()) if isinstance(a, (Number, jax.Array))]
            result = result_dtype(*operands)
            if kind == "int_to_float" and _category(result) < 2:
                result = default_float()
            elif kind == "bool_to_long" and result == np.bool_:
                result = np.dtype(np.int64)
            compute = result if kind == "no_opmath" else opmath(result)

            def prepared(a: Any) -> Any:
                return a.to(compute) if isinstance(a, Number) else cast(a, compute) if isinstance(a, jax.Array) else a

            out = function(*map(prepared, args), **{k: prepared(v) for k, v in kwargs.items()})
            if kind == "always_bool":
                return cast(out, np.dtype(np.bool_))
            if kind == "complex_to_float" and is_complex(result):
                return out
            return cast(out, result)

        return lowering(*overloads, static=static)(lowered)

    return decorate


def accumulate(values: Sequence[Array]) -> list[Array]:
    """Casts 16- and 8-bit floats to float32, the dtype reductions and matmuls accumulate in; leaves the rest alone."""
    return [cast(v, opmath(v.dtype)) for v in values]
