"""Numbers in a graph: Python arithmetic on sizes, and the same on numbers that are known only when the program runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array

from ...lowering.dtypes import to_torch
from ...lowering.promotion import Number, cast
from ..tensors import contiguous_stride
from .structural import base_name

_DTYPE: tuple[tuple[type, Any], ...] = ((bool, np.bool_), (int, np.int64), (float, np.float64), (complex, np.complex128))
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)


def number(value: Any) -> Number:
    """A Python number as a `Number`: a constant of the program."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise TypeError(f"the symbolic number {value} has no value in this run; a graph's symbols are its inputs")
    dtype = next(d for kind, d in _DTYPE if isinstance(value, kind))
    return Number(jnp.asarray(np.array(value, dtype)))


def meta_of(value: Any) -> Any:
    """A meta tensor in place of an array, a plain 1 in place of a run-time number (only its type matters for shapes)."""
    if isinstance(value, Number):
        return {np.dtype(np.bool_): True, _INT64: 1, _FLOAT64: 1.0}.get(value.dtype, 1j)
    if isinstance(value, Array):
        return torch.empty(value.shape, dtype=to_torch(value.dtype), device="meta")
    return value


def _integer(value: Array) -> Array:
    return cast(value, _INT64)


def _ceiling(value: Array) -> Array:
    return cast(jnp.ceil(value), _INT64)


def _floored(value: Array) -> Array:
    return cast(jnp.floor(value), _INT64)


def _real(value: Array) -> Array:
    return cast(value, _FLOAT64)


def _divided(a: Array, b: Array) -> Array:
    return _real(a) / _real(b)


_AT_RUN_TIME: dict[str, Callable[..., Array]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "truediv": _divided,
    "floordiv": jnp.floor_divide,
    "mod": jnp.remainder,
    "neg": jnp.negative,
    "pos": jnp.positive,
    "abs": jnp.abs,
    "pow": jnp.power,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "and_": jnp.bitwise_and,
    "or_": jnp.bitwise_or,
    "not_": jnp.logical_not,
    "sym_not": jnp.logical_not,
    "sym_max": jnp.maximum,
    "sym_min": jnp.minimum,
    "sym_int": _integer,
    "sym_float": _real,
    "sym_ite": jnp.where,
    "sqrt": jnp.sqrt,
    "_sym_sqrt": jnp.sqrt,
    "floor": _floored,
    "ceil": _ceiling,
    "trunc": _integer,
}


def compute(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A Python function of numbers (`operator`, `math`, `torch.sym_*`), on run-time numbers if there are any.

    Raises NotImplementedError for a function of a run-time number that has no array form.
    """
    if not any(isinstance(a, (Number, Array)) for a in args):
        return function(*args, **kwargs)
    at_run_time = _AT_RUN_TIME.get(function.__name__)
    if at_run_time is None:
        raise NotImplementedError(f"{function.__module__}.{function.__name__} of a number known only at run time is not supported in a graph")
    return Number(at_run_time(*(a.value if isinstance(a, Number) else a if isinstance(a, Array) else number(a).value for a in args)))


def bookkeeping(op: Any, args: list[Any], stride: tuple[int, ...] | None) -> Any:
    """Sizes as Python ints, `item` as a run-time number; assertions were checked when the graph was made and say nothing here.

    `stride`: the first argument's strides where the graph knows them.
    """
    name = base_name(op)
    first: Any = args[0] if args else None
    if name == "sym_size":
        return first.shape[args[1]] if len(args) > 1 else list(first.shape)
    if name == "sym_stride":
        steps = stride or contiguous_stride(first.shape)
        return steps[args[1]] if len(args) > 1 else list(steps)
    if name == "sym_numel":
        return math.prod(first.shape)
    if name == "sym_storage_offset":
        return 0
    if name in ("_local_scalar_dense", "item"):
        return Number(_widest(first.reshape(())))
    return None


def _widest(value: Array) -> Array:
    """A tensor element as the Python number it becomes."""
    if value.dtype == np.bool_:
        return value
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        return cast(value, np.dtype(np.complex128))
    return cast(value, _FLOAT64 if jnp.issubdtype(value.dtype, jnp.floating) else _INT64)
