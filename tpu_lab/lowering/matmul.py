"""Matrix products: mm, bmm, mv, dot and the `add*` forms `beta * self + alpha * (a @ b)`.

Products accumulate as PyTorch's CPU kernels do: 16-bit floats in float32, integers modulo 2^n, everything else in its own
dtype. XLA:CPU (jaxlib 0.10) multiplies bfloat16 natively only for some layouts, and copies the matrix for some
matrix-vector products; `product` puts the operands so that it does not (2 to 20 times faster, the same numbers), for
that platform only: other targets get the plain `dot_general`.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from .dtypes import to_jax
from .precision import matmul_precision
from .promotion import Number, cast, is_integral, opmath, result_dtype
from .registry import find, lowering

_BFLOAT16 = np.dtype(jnp.bfloat16.dtype)
_LONG_VECTOR = 4096
"""From this length on XLA:CPU copies a transposed float32 matrix before it multiplies it with one vector."""


def product(a: Array, b: Array) -> Array:
    """`a @ b` for `a` [*batch, m, k] and `b` [*batch, k, n] of one dtype, in the dtype it accumulates in.

    That is float32 for the 16- and 8-bit floats, int32 for integers below 32 bits (wrap it by a cast), else the operands' own.
    """
    dtype = np.dtype(a.dtype)
    if is_integral(dtype) and dtype.itemsize < 4:
        return _plain(a.astype(np.int32), b.astype(np.int32))
    if dtype == np.float16:
        return _plain(a.astype(np.float32), b.astype(np.float32))
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    vector = min(m, n) == 1 and max(m, n) > 1
    slow_on_cpu = dtype == _BFLOAT16 or (dtype == np.float32 and vector and (m > 1 or k >= _LONG_VECTOR))
    if not slow_on_cpu or 0 in a.shape or 0 in b.shape:
        return _plain(a, b)
    return lax.platform_dependent(a, b, cpu=_placed_for_cpu, default=_plain)  # type: ignore[no-any-return]


def _plain(a: Array, b: Array) -> Array:
    batch = tuple(range(a.ndim - 2))
    numbers = (((a.ndim - 1,), (b.ndim - 2,)), (batch, batch))
    return lax.dot_general(a, b, numbers, matmul_precision(a.dtype), opmath(a.dtype))


def _placed_for_cpu(a: Array, b: Array) -> Array:
    """The product in the one form whose library kernel takes any layout: matrix on the right, at least two rows and columns.

    The length-1 axis in `b` makes XLA forget that `b` may be a transposed view before it asks the kernel library, which
    refuses those though it can multiply them. The barrier keeps a transpose out of `a`: folded into the dot after that
    question, it leaves a bfloat16 dot that nothing can run.
    """
    m, n = a.shape[-2], b.shape[-1]
    if n == 1 and m > 1:
        return jnp.swapaxes(_placed_for_cpu(jnp.swapaxes(b, -1, -2), jnp.swapaxes(a, -1, -2)), -1, -2)
    if m == 1 and a.dtype == np.float32 and a.shape[-1] < _LONG_VECTOR:
        return _plain(a, b)
    rank = a.ndim
    keep = [(0, 0)] * (rank - 2)
    if m == 1:
        a = jnp.pad(a, [*keep, (0, 1), (0, 0)])
    if n == 1:
        b = jnp.pad(b, [*keep, (0, 0), (0, 1)])
    batch = tuple(range(rank - 2))
    spread = jnp.expand_dims(b, rank - 1)
    numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    held: Array = lax.optimization_barrier(a)
    out = lax.dot_general(held, spread, numbers, matmul_precision(a.dtype), opmath(a.dtype))
    return out.reshape(*out.shape[: rank - 1], b.shape[-1])[..., :m, :n]


def scaled_sum(bias: Array, beta: Number, alpha: Number, term: Array, dtype: np.dtype) -> Array:
    """`beta * bias + alpha * term` rounded once to `dtype`; with `beta == 0` the bias is not read, so its NaN does not spread."""
    work = opmath(dtype)
    weight = beta.to(work)
    kept = jnp.where(weight == 0, work.type(0), weight * cast(bias, work))
    return cast(kept + alpha.to(work) * cast(term, work), dtype)


@lowering("mm", "bmm")
def mm(self: Array, mat2: Array) -> Array:
    return cast(product(self, mat2), self.dtype)


@lowering("mm.dtype", "bmm.dtype")
def mm_dtype(self: Array, mat2: Array, out_dtype: object) -> Array:
    """The accumulated product; the caller casts it to `out_dtype`."""
    return product(self, mat2)


@lowering("addmm", "baddbmm")
def addmm(self: Array, mat1: Array, mat2: Array, *, beta: Number, alpha: Number) -> Array:
    return scaled_sum(self, beta, alpha, product(mat1, mat2), self.dtype)


@lowering("addmm.dtype", "baddbmm.dtype")
def addmm_dtype(self: Array, mat1: Array, mat2: Array, out_dtype: object, *, beta: Number, alpha: Number) -> Array:
    """Adds in the accumulation dtype; the caller casts to `out_dtype`."""
    term = product(mat1, mat2)
    return scaled_sum(self, beta, alpha, term, np.dtype(term.dtype))


@lowering("_addmm_activation")
def addmm_activation(self: Array, mat1: Array, mat2: Array, *, beta: Number, alpha: Number, use_gelu: bool) -> Array:
    """`addmm` followed by the exact gelu, or by relu, on the rounded sum as PyTorch's CPU kernel does it."""
    total = scaled_sum(self, beta, alpha, product(mat1, mat2), self.dtype)
    activation = find("gelu" if use_gelu else "relu")
    assert activation is not None
    out: Array = activation.function(total, approximate="none") if use_gelu else activation.function(total)
    return out


@lowering("addbmm")
def addbmm(self: Array, batch1: Array, batch2: Array, *, beta: Number, alpha: Number) -> Array:
    """`beta * self + alpha * sum(batch1 @ batch2)`: the batch is folded into the contracted axis."""
    batch, m, k = batch1.shape
    rows = jnp.swapaxes(batch1, 0, 1).reshape(m, batch * k)
    return scaled_sum(self, beta, alpha, product(rows, batch2.reshape(batch * k, batch2.shape[2])), self.dtype)


@lowering("mv")
def mv(self: Array, vec: Array) -> Array:
    return cast(product(self, vec[:, None])[:, 0], self.dtype)


@lowering("addmv")
def addmv(self: Array, mat: Array, vec: Array, *, beta: Number, alpha: Number) -> Array:
    return scaled_sum(self, beta, alpha, product(mat, vec[:, None])[:, 0], vec.dtype)


@lowering("dot")
def dot(self: Array, tensor: Array) -> Array:
    return cast(product(self[None, :], tensor[:, None])[0, 0], self.dtype)


@lowering("vdot")
def vdot(self: Array, other: Array) -> Array:
    return dot(jnp.conj(self), other)


@lowering("addr")
def addr(self: Array, vec1: Array, vec2: Array, *, beta: Number, alpha: Number) -> Array:
    """`beta * self + alpha * outer(vec1, vec2)`, with type promotion; bool is or-of-and."""
    dtype = result_dtype(self, vec1, vec2)
    outer = cast(vec1, dtype)[:, None] * cast(vec2, dtype)[None, :]
    if dtype == np.bool_:
        return (beta.to(dtype) & self) | (alpha.to(dtype) & outer)
    return scaled_sum(self, beta, alpha, outer, dtype)


@lowering("linear")
def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    """`input` [*, k] times `weight` [n, k] (or [k]) transposed, plus `bias` [n]."""
    matrix = weight if weight.ndim == 2 else weight[None, :]
    rows = input.reshape(-1, input.shape[-1]) if input.size else jnp.zeros((int(np.prod(input.shape[:-1])), input.shape[-1]), input.dtype)
    out = product(rows, matrix.T)
    if bias is not None:
        out = out + cast(bias, out.dtype)
    shape = (*input.shape[:-1], matrix.shape[0]) if weight.ndim == 2 else input.shape[:-1]
    return cast(out, input.dtype).reshape(shape)


@lowering("_int_mm")
def int_mm(self: Array, mat2: Array) -> Array:
    """int8 [m, k] @ int8 [k, n] in int32."""
    return product(self, mat2)


@lowering("_weight_int8pack_mm")
def weight_int8pack_mm(self: Array, mat2: Array, scales: Array) -> Array:
    """self [m, k] by int8 weights [n, k], each row of which counts `scales` [n] times."""
    found = product(self, cast(mat2, self.dtype).T)
    return cast(found * cast(scales, found.dtype), self.dtype)


@lowering("_compute_linear_combination")
def compute_linear_combination(input: Array, coefficients: Array) -> Array:
    """Row i of the result is the sum of `input` [m, *], each by its number in coefficients [n, m]."""
    found = product(coefficients, input.reshape(input.shape[0], -1))
    return cast(found, input.dtype).reshape(coefficients.shape[0], *input.shape[1:])


@lowering("_scaled_mm")
def scaled_mm(
    self: Array,
    mat2: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None,
    scale_result: Array | None,
    out_dtype: torch.dtype | None,
    use_fast_accum: bool,
) -> Array:
    """8-bit floats [m, k] @ [k, n] in float32, times the scales of both (one each, or [m, 1] and [1, n]), plus bias [n]."""
    found = _plain(self.astype(np.float32), mat2.astype(np.float32)) * scale_a * scale_b
    if bias is not None:
        found = found + bias.astype(np.float32)
    if scale_result is not None and out_dtype is not None and out_dtype.itemsize == 1:
        found = found * scale_result
    return cast(found, self.dtype if out_dtype is None else to_jax(out_dtype))


_BY_TENSOR, _BY_ROW = 0, 1
"""`torch.nn.functional.ScalingType`."""


@lowering("_scaled_mm_v2")
def scaled_mm_v2(
    self: Array,
    mat2: Array,
    scale_a: list[Array],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: list[Array],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Array | None,
    out_dtype: torch.dtype | None,
    contraction_dim: Sequence[int],
    use_fast_accum: bool,
) -> Array:
    """`scaled_mm` with the kind of its scales stated. Raises NotImplementedError for scales of blocks."""
    kinds = {*recipe_a, *recipe_b}
    if not kinds <= {_BY_TENSOR, _BY_ROW} or any(swizzle_a) or any(swizzle_b):
        raise NotImplementedError(
            "scaled_mm takes scales of whole tensors or rows (ScalingType.TensorWise, RowWise) on the device tpu, as on the CPU"
        )
    return scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, use_fast_accum)
