"""`quantized_decomposed::*`, the operators torch.export's quantization flows put around a graph's operators.

Meaning: the Python kernels of `torch.ao.quantization.fx._decomposed`. Arithmetic is in the dtype PyTorch's promotion gives,
float32 for 16-bit input. Zero points are added after rounding per tensor and channel, before it per token and group, as there.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from .dtypes import to_jax
from .promotion import Number, cast, opmath, result_dtype
from .quantize import along
from .registry import lowering


def _rounded(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _wide(*values: Array) -> list[Array]:
    """The values in the float dtype their promotion gives, at least float32."""
    floating = [v for v in values if jnp.issubdtype(v.dtype, jnp.floating)]
    work = opmath(result_dtype(*floating)) if floating else np.dtype(np.float32)
    return [cast(v, work) for v in values]


@lowering("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(input: Array, scale: Number, zero_point: int, quant_min: int, quant_max: int, dtype: torch.dtype) -> Array:
    x = cast(input, np.dtype(np.float32))
    inverse = cast(1 / scale.value, x.dtype)
    return cast(jnp.clip(_rounded(x * inverse) + zero_point, quant_min, quant_max), to_jax(dtype))


@lowering("quantized_decomposed::quantize_per_tensor.tensor", "quantized_decomposed::quantize_per_tensor.tensor2")
def quantize_per_tensor_tensor(
    input: Array, scale: Array, zero_point: Array, quant_min: int | Array, quant_max: int | Array, dtype: torch.dtype
) -> Array:
    """Parameters are tensors of one element."""
    x = cast(input, np.dtype(np.float32))
    inverse = cast(1 / cast(scale.reshape(()), np.dtype(np.float64)), x.dtype)
    low, high = (jnp.asarray(q).reshape(()).astype(x.dtype) for q in (quant_min, quant_max))
    return cast(jnp.clip(_rounded(x * inverse) + cast(zero_point.reshape(()), x.dtype), low, high), to_jax(dtype))


@lowering("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(
    input: Array, scale: Number, zero_point: int, quant_min: int, quant_max: int, dtype: torch.dtype, *, out_dtype: torch.dtype | None
) -> Array:
    target = to_jax(out_dtype or torch.float32)
    work = opmath(target)
    return cast((cast(input, work) - zero_point) * scale.to(work), target)


@lowering("quantized_decomposed::dequantize_per_tensor.tensor", "quantized_decomposed::dequantize_per_tensor.tensor2")
def dequantize_per_tensor_tensor(
    input: Array, scale: Array, zero_point: Array, quant_min: object, quant_max: object, dtype: torch.dtype, *, out_dtype: torch.dtype | None
) -> Array:
    target = to_jax(out_dtype or torch.float32)
    work = opmath(target)
    return cast((cast(input, work) - cast(zero_point.reshape(()), work)) * cast(scale.reshape(()), work), target)


@lowering("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(input: Array, scales: Array, zero_points: Array, axis: int, quant_min: int, quant_max: int, dtype: torch.dtype) -> Array:
    x, step, origin = _wide(input, along(scales, axis, input.ndim), along(zero_points, axis, input.ndim))
    return cast(jnp.clip(_rounded(x * (1 / step)) + origin, quant_min, quant_max), to_jax(dtype))


@lowering("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    input: Array,
    scales: Array,
    zero_points: Array | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None,
) -> Array:
    step = cast(along(scales, axis, input.ndim), opmath(scales.dtype))
    # The difference is taken in the operands' own integer dtype, where it may wrap, as in PyTorch.
    shifted = input if zero_points is None else _difference(input, along(zero_points, axis, input.ndim))
    return cast(cast(shifted, step.dtype) * step, to_jax(out_dtype or torch.float32))


def _difference(a: Array, b: Array) -> Array:
    dtype = result_dtype(a, b)
    return cast(a, dtype) - cast(b, dtype)


def _by_rows(input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: torch.dtype) -> Array:
    x, step, origin = _wide(input, scales, zero_points)
    return cast(jnp.clip(_rounded(x * (1 / step) + origin), quant_min, quant_max), to_jax(dtype))


@lowering("quantized_decomposed::quantize_per_token")
def quantize_per_token(input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: torch.dtype) -> Array:
    """One scale and zero point per row [*, 1] of `input` [*, n]."""
    return _by_rows(input, scales, zero_points, quant_min, quant_max, dtype)


@lowering("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(
    input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: torch.dtype, output_dtype: torch.dtype
) -> Array:
    shifted = _difference(input, zero_points)
    return cast(cast(shifted, scales.dtype) * scales, to_jax(output_dtype))


def _grouped(input: Array, scales: Array, group_size: int) -> Array:
    """`input` [m, n] as rows of one group; a group longer than a row is the row."""
    size = input.shape[-1] if group_size > input.shape[-1] and scales.shape[-1] == 1 else group_size
    return input.reshape(-1, size)


@lowering("quantized_decomposed::quantize_per_channel_group")
def quantize_per_channel_group(
    input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: torch.dtype, group_size: int
) -> Array:
    """One scale and zero point per `group_size` neighbours in a row."""
    rows = _grouped(input, scales, group_size)
    return _by_rows(rows, scales.reshape(-1, 1), zero_points.reshape(-1, 1), quant_min, quant_max, dtype).reshape(input.shape)


@lowering("quantized_decomposed::dequantize_per_channel_group")
def dequantize_per_channel_group(
    input: Array,
    scales: Array,
    zero_points: Array | None,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int,
    output_dtype: torch.dtype,
) -> Array:
    rows = _grouped(input, scales, group_size)
    shifted = rows if zero_points is None else _difference(rows, zero_points.reshape(-1, 1))
    return cast(cast(shifted, scales.dtype) * scales.reshape(-1, 1), to_jax(output_dtype)).reshape(input.shape)


def _range(input: Array, axis: int | None) -> tuple[Array, Array]:
    """Least and greatest element, widened to hold 0. Over everything with `axis=None`, else kept as length 1."""
    keep = axis is not None
    low, high = jnp.min(input, axis=axis, keepdims=keep), jnp.max(input, axis=axis, keepdims=keep)
    return jnp.minimum(low, 0), jnp.maximum(high, 0)


def _stepped(value: Array, dtype: np.dtype) -> Array:
    """`value` rounded to the input's dtype, as each of PyTorch's single operators rounds it."""
    return cast(cast(value, dtype), opmath(dtype))


def _parameters(scale: Array, origin: Array) -> tuple[Array, Array]:
    """Scale (float64 [1]) and zero point (int64 [1])."""
    return scale.astype(np.float64).reshape(1), origin.astype(np.int64).reshape(1)


@lowering("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(input: Array, quant_min: int, quant_max: int, eps: Number, dtype: torch.dtype) -> tuple[Array, Array]:
    """Scale (float64 [1]) and zero point (int64 [1]) that map the range of `input` to [quant_min, quant_max]."""
    own = np.dtype(input.dtype)
    x = cast(input, opmath(own))
    low, high = _range(x, None)
    scale = jnp.maximum(_stepped(_stepped(high - low, own) / float(quant_max - quant_min), own), eps.to(x.dtype))
    return _parameters(scale, jnp.clip(quant_min - _rounded(low / scale), quant_min, quant_max))


@lowering("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(input: Array, quant_min: int, quant_max: int, eps: Number, dtype: torch.dtype) -> tuple[Array, Array]:
    """Like `choose_qparams` for a range symmetric about 0; the zero point is 128 for uint8, else 0."""
    own = np.dtype(input.dtype)
    x = cast(input, opmath(own))
    low, high = _range(x, None)
    scale = jnp.maximum(_stepped(jnp.maximum(-low, high) / (float(quant_max - quant_min) / 2), own), eps.to(x.dtype))
    return _parameters(scale, jnp.asarray(128 if dtype == torch.uint8 else 0, np.int64))


@lowering("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_per_token(input: Array, dtype: torch.dtype) -> tuple[Array, Array]:
    """Symmetric int8 scales [*, 1] of the rows of `input` and zero points 0. Raises ValueError for another dtype."""
    if dtype != torch.int8:
        raise ValueError(f"choose_qparams_per_token takes dtype torch.int8, got {dtype}")
    own = np.dtype(np.float32) if input.dtype == np.float16 else np.dtype(input.dtype)
    greatest = jnp.max(jnp.abs(cast(input, opmath(own))), axis=-1, keepdims=True)
    scale = _stepped(_stepped(jnp.maximum(greatest, 1e-5), own) / 127, own)
    return scale.astype(np.float64), jnp.zeros(scale.shape, np.int64)


@lowering("quantized_decomposed::choose_qparams_per_token_asymmetric")
def choose_qparams_per_token_asymmetric(input: Array, dtype: torch.dtype) -> tuple[Array, Array]:
    """int8 scales and zero points [*, 1] of the rows of `input`; the zero point goes to the side with the smaller error."""
    own = np.dtype(input.dtype)
    low, high = _range(cast(input, opmath(own)), -1)
    scale = _stepped(jnp.maximum(_stepped(_stepped(high - low, own) / 255.0, own), np.finfo(np.float32).eps), own)
    least, most = _stepped(low / scale, own), _stepped(high / scale, own)
    from_low, from_high = _stepped(-128 + least, own), _stepped(127 + most, own)
    origin = jnp.where(_stepped(from_low + from_high, own) > 0, _stepped(-128 - least, own), _stepped(127 - most, own))
    return scale.astype(np.float64), _rounded(jnp.clip(origin, -128, 127)).astype(np.int64)
