"""Tensors made from numbers: fills, ranges, identities and index lists.

Shape and dtype are those PyTorch's meta kernel states (`out_specs`): where a default dtype or a length depends on the
numbers, PyTorch has decided already. Memory that PyTorch leaves uninitialised is zero here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jax_special
import numpy as np
import torch
from jax import Array, lax

from .axes import index_dtype
from .division import divided
from .indexing import value_as
from .promotion import Number, cast, is_complex, is_floating, is_integral
from .registry import lowering

Specs = tuple[jax.ShapeDtypeStruct, ...]


def _filled(spec: jax.ShapeDtypeStruct, value: Any) -> Array:
    dtype = np.dtype(spec.dtype)
    number = value_as(value, dtype).reshape(()) if isinstance(value, (Number, Array)) else np.array(value).astype(dtype)
    return lax.full(spec.shape, number, dtype)


@lowering("zeros", "empty.memory_format")
def zeros(size: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("_efficientzerotensor")
def zero_tensor(size: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("empty_strided")
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("empty_permuted")
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("ones")
def ones(size: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 1)


@lowering("full")
def full(size: Sequence[int], fill_value: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], fill_value)


@lowering("zeros_like", "empty_like", unread=("self",))
def zeros_like(self: Array, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("ones_like", unread=("self",))
def ones_like(self: Array, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 1)


@lowering("full_like", unread=("self",))
def full_like(self: Array, fill_value: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], fill_value)


@lowering("new_zeros", "new_empty", unread=("self",))
def new_zeros(self: Array, size: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("new_empty_strided", unread=("self",))
def new_empty_strided(self: Array, size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 0)


@lowering("new_ones", unread=("self",))
def new_ones(self: Array, size: Sequence[int], *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], 1)


@lowering("new_full", unread=("self",))
def new_full(self: Array, size: Sequence[int], fill_value: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], fill_value)


@lowering("fill.Scalar", "fill.Tensor", unread=("self",))
def fill(self: Array, value: Array | Number) -> Array:
    return lax.full(self.shape, value_as(value, np.dtype(self.dtype)).reshape(()), self.dtype)


@lowering("zero", unread=("self",))
def zero(self: Array) -> Array:
    return lax.full(self.shape, 0, self.dtype)


@lowering("scalar_tensor")
def scalar_tensor(s: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _filled(out_specs[0], s)


def _steps(length: int, dtype: np.dtype) -> Array:
    return lax.iota(index_dtype(length), length).astype(dtype)


def _range(start: Number | None, step: Number | None, spec: jax.ShapeDtypeStruct) -> Array:
    """start + i * step (from 0, by 1 if None), in int64 for integers and in float64 for floats, as ATen does on the CPU."""
    target = np.dtype(spec.dtype)
    work = np.dtype(np.int64) if is_integral(target) else np.dtype(np.float64)
    values = lax.iota(index_dtype(spec.shape[0]), spec.shape[0])
    if step is not None:
        values = values.astype(work) * step.to(work)
    if start is not None:
        values = values.astype(work) + start.to(work)
    return cast(values, target)


@lowering("arange")
def arange(end: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _range(None, None, out_specs[0])


@lowering("arange.start")
def arange_start(start: Number, end: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _range(start, None, out_specs[0])


@lowering("arange.start_step")
def arange_start_step(start: Number, end: Number, step: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _range(start, step, out_specs[0])


@lowering("range")
def range_closed(start: Number, end: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _range(start, None, out_specs[0])


@lowering("range.step")
def range_closed_step(start: Number, end: Number, step: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return _range(start, step, out_specs[0])


def _spaced(start: Array | Number, end: Array | Number, steps: int, dtype: np.dtype) -> Array:
    """Evenly spaced numbers, the second half counted from the end (ATen's formula; integers step in float64)."""
    work = dtype if is_floating(dtype) or is_complex(dtype) else np.dtype(np.float64)
    work = np.dtype(np.float32) if is_floating(work) and work.itemsize < 4 else work
    first, last = (value_as(value_as(v, dtype), work).reshape(()) for v in (start, end))
    if steps == 1:
        return lax.full((1,), first, work)
    by = divided(last - first, max(steps - 1, 1))
    index = lax.iota(index_dtype(steps), steps)
    forward = first + _steps(steps, work) * by
    backward = last - lax.rev(_steps(steps, work), (0,)) * by
    return lax.select(lax.lt(index, lax.full_like(index, steps // 2)), forward, backward)


@lowering("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor")
def linspace(start: Array | Number, end: Array | Number, steps: int, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    target = np.dtype(out_specs[0].dtype)
    return cast(_spaced(start, end, steps, target), target)


@lowering("logspace", "logspace.Tensor_Tensor", "logspace.Tensor_Scalar", "logspace.Scalar_Tensor")
def logspace(start: Array | Number, end: Array | Number, steps: int, base: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    target = np.dtype(out_specs[0].dtype)
    exponents = _spaced(start, end, steps, target)
    return cast(lax.pow(lax.full_like(exponents, base.to(exponents.dtype)), exponents), target)


@lowering("kaiser_window.beta")
def kaiser_window_beta(window_length: int, periodic: bool, beta: Number, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    """The Kaiser window: i0(beta sqrt(1 - t^2)) / i0(beta) for t from -1 to 1, of a `periodic` one without the last."""
    target = np.dtype(out_specs[0].dtype)
    if window_length < 2:
        return _filled(out_specs[0], 1)
    work = np.dtype(np.float64) if target == np.float64 else np.dtype(np.float32)
    place = _steps(window_length, work) * (2 / (window_length - (0 if periodic else 1))) - 1
    height = beta.to(work)
    return cast(jax_special.i0(height * lax.sqrt(lax.max(1 - place * place, work.type(0)))) / jax_special.i0(height), target)


@lowering("kaiser_window", "kaiser_window.periodic")
def kaiser_window(window_length: int, periodic: bool = True, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    """With PyTorch's default beta, 12."""
    return kaiser_window_beta(window_length, periodic, Number(jnp.asarray(12, np.float64)), dtype=dtype, out_specs=out_specs)


@lowering("eye")
def eye(n: int, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return eye_m(n, n, dtype=dtype, out_specs=out_specs)


@lowering("eye.m")
def eye_m(n: int, m: int, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    rows, columns = (lax.broadcasted_iota(np.int32, (n, m), d) for d in (0, 1))
    return cast(lax.eq(rows, columns), np.dtype(out_specs[0].dtype))


@lowering("tril_indices")
def tril_indices(row: int, col: int, offset: int, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return jnp.asarray(np.stack(np.tril_indices(row, offset, col)).astype(out_specs[0].dtype))


@lowering("triu_indices")
def triu_indices(row: int, col: int, offset: int, *, dtype: torch.dtype | None, out_specs: Specs) -> Array:
    return jnp.asarray(np.stack(np.triu_indices(row, offset, col)).astype(out_specs[0].dtype))
