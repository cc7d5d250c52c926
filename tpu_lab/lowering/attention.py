"""Scaled dot product attention: the fused forms ATen knows, forward and backward.

One form serves them all: softmax(q k^T * scale + bias) v with the logarithm of the softmax's denominator, from which the gradient
recomputes the probabilities. Rows in which everything is masked give 0. Dropout is drawn from the device's generator;
what ATen calls philox seed and offset is the generator's state before the draw, so the gradient draws the same mask again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import matmul_precision, widened
from .promotion import Number, cast, opmath
from .registry import lowering
from .rng import Rng


def batched_dot(a: Array, b: Array, contract: tuple[int, int]) -> Array:
    """Matmul over leading batch and head dimensions, accumulated (and returned) in `opmath`."""
    numbers = (((contract[0],), (contract[1],)), ((0, 1), (0, 1)))
    return lax.dot_general(a, b, numbers, matmul_precision(a.dtype), opmath(a.dtype))


@dataclass(frozen=True)
class Attention:
    """One call's operands: query [B, H, L, E], key [B, G, S, E], value [B, G, S, V] with H a multiple of G; bias up to [B, H, L, S]."""

    query: Array
    key: Array
    value: Array
    bias: Array | None
    causal: bool
    scale: Array
    dropout_p: float

    @classmethod
    def of(cls, query: Array, key: Array, value: Array, bias: Array | None, causal: bool, scale: Number | None, dropout_p: float = 0.0) -> Attention:
        """Operands as ATen passes them: three dimensions are a batch of one; no scale means 1 / sqrt(E)."""
        work = opmath(query.dtype)
        factor = jnp.array(1 / math.sqrt(query.shape[-1]), work) if scale is None else scale.to(work)
        four = [x if x.ndim == 4 else x[None] for x in (query, key, value)]
        groups = four[0].shape[1] // max(four[1].shape[1], 1)
        if groups > 1:
            four[1:] = [jnp.repeat(x, groups, axis=1) for x in four[1:]]
        return cls(four[0], four[1], four[2], bias, causal, factor, dropout_p)

    def scores(self) -> Array:
        """What the softmax is taken of, [B, H, L, S]."""
        scores = batched_dot(self.query, self.key, (3, 3)) * self.scale
        if self.bias is not None and self.bias.dtype == np.bool_:
            scores = jnp.where(self.bias, scores, -jnp.inf)
        elif self.bias is not None:
            scores = scores + cast(self.bias, scores.dtype)
        if self.causal:
            row = lax.broadcasted_iota(np.int32, scores.shape, 2)
            scores = jnp.where(lax.broadcasted_iota(np.int32, scores.shape, 3) <= row, scores, -jnp.inf)
        return scores

    def keep(self, rng: Rng | None) -> Array | None:
        """The dropout mask scaled by 1 / (1 - p), None without dropout."""
        if rng is None or self.dropout_p == 0:
            return None
        shape = (*self.query.shape[:3], self.key.shape[2])
        kept = rng.uniform(shape, np.dtype(np.float32)) >= self.dropout_p
        scale = 1 / (1 - self.dropout_p) if self.dropout_p < 1 else 0.0
        return jnp.where(kept, scale, 0.0).astype(self.scale.dtype)

    def forward(self, rng: Rng | None = None) -> tuple[Array, Array]:
        """The output [B, H, L, V] and log-sum-exp [B, H, L], in the accumulation dtype."""
        scores = self.scores()
        top = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
        exps = jnp.exp(scores - jnp.where(jnp.isneginf(top), 0, top))
        total = jnp.sum(exps, axis=-1, keepdims=True)
        weights = exps / jnp.where(total == 0, 1, total)
        keep = self.keep(rng)
        if keep is not None:
            weights = weights * keep
        out = batched_dot(cast(weights, self.value.dtype), self.value, (3, 2))
        return out, (jnp.log(total) + jnp.where(jnp.isneginf(top), 0, top))[..., 0]

    def backward(self, grad: Array, out: Array, log_sum: Array, rng: Rng | None = None) -> tuple[Array, Array, Array, Array]:
        """The gradients of query, key, value (repeated heads apart) and of the scores, in the accumulation dtype."""
        dtype = self.query.dtype
        log_sum = cast(log_sum, self.scale.dtype)[..., None]
        weights = jnp.exp(self.scores() - jnp.where(jnp.isneginf(log_sum), 0, log_sum))
        keep = self.keep(rng)
        grad_weights = batched_dot(grad, self.value, (3, 3))
        dropped = weights
        if keep is not None:
            dropped, grad_weights = weights * keep, grad_weights * keep
        grad_value = batched_dot(cast(dropped, dtype), grad, (2, 2))
        inner = jnp.sum(widened(grad) * widened(out), axis=-1, keepdims=True)
        grad_scores = weights * (grad_weights - inner)
        through = cast(grad_scores * self.scale, dtype)
        return batched_dot(through, self.key, (3, 2)), batched_dot(through, self.query, (2, 2)), grad_value, grad_scores


def _summed_to(x: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of a broadcast: x summed over what was broadcast from `shape`."""
    x = jnp.sum(x, axis=tuple(range(x.ndim - len(shape))))
    return jnp.sum(x, axis=tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1), keepdims=True)


def _as(x: Array, like: Array) -> Array:
    """A gradient of four dimensions in the shape and dtype of an operand; heads that shared one are summed."""
    shape = like.shape if like.ndim == 4 else (1, *like.shape)
    if x.shape[1] != shape[1]:
        x = jnp.sum(x.reshape(shape[0], shape[1], -1, *shape[2:]), axis=2)
    return cast(x.reshape(like.shape), like.dtype)


def _gradients(
    attention: Attention, operands: Sequence[Array], grad: Array, out: Array, log_sum: Array, rng: Rng | None
) -> tuple[Array, Array, Array, Array]:
    """As `Attention.backward`, shaped as the operands (query, key, value)."""
    grad, out = (x if x.ndim == 4 else x[None] for x in (grad, out))
    *parts, grad_scores = attention.backward(grad, out, log_sum, rng)
    query, key, value = (_as(x, like) for x, like in zip(parts, operands, strict=True))
    return query, key, value, grad_scores


def _generator(dropout_p: float, seed: Array, offset: Array) -> Rng | None:
    """The generator as it was when the forward pass drew its mask."""
    if dropout_p == 0:
        return None
    return Rng(jnp.stack([seed.astype(np.uint64).reshape(()), offset.astype(np.uint64).reshape(())]))


def _state(dropout_p: float, rng: Rng) -> Array:
    """Seed and offset before the draw, uint64[2]; zeros if there is none."""
    return jnp.zeros(2, np.uint64) if dropout_p == 0 else rng.state()


@lowering("_scaled_dot_product_fused_attention_overrideable", static=("dropout_p",))
def fused_attention_overrideable(
    query: Array,
    key: Array,
    value: Array,
    attn_bias: Array | None,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: Number | None,
    rng: Rng,
) -> tuple[Array | int | None, ...]:
    """Output, log-sum-exp, two absent tensors, the lengths of query and key, seed and offset (int64), an absent debug mask."""
    attention = Attention.of(query, key, value, attn_bias, is_causal, scale, dropout_p)
    state = _state(dropout_p, rng).astype(np.int64)
    out, log_sum = attention.forward(rng)
    out = cast(out.reshape(*query.shape[:-1], value.shape[-1]), query.dtype)
    return out, log_sum, None, None, query.shape[-2], key.shape[-2], state[0], state[1], None


@lowering("_scaled_dot_product_fused_attention_overrideable_backward", static=("dropout_p",))
def fused_attention_overrideable_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    attn_bias: Array | None,
    grad_input_mask: Sequence[bool],
    out: Array,
    logsumexp: Array,
    cum_seq_q: Array | None,
    cum_seq_k: Array | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Array,
    philox_offset: Array,
    *,
    scale: Number | None,
) -> tuple[Array | None, ...]:
    attention = Attention.of(query, key, value, attn_bias, is_causal, scale, dropout_p)
    rng = _generator(dropout_p, philox_seed, philox_offset)
    *grads, grad_scores = _gradients(attention, (query, key, value), grad_out, out, logsumexp, rng)
    bias = None if attn_bias is None else cast(_summed_to(grad_scores, attn_bias.shape), attn_bias.dtype)
    return tuple(grad if wanted else None for grad, wanted in zip((*grads, bias), grad_input_mask, strict=True))


@lowering("_scaled_dot_product_flash_attention", static=("dropout_p",))
def flash_attention(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: Number | None,
    rng: Rng,
) -> tuple[Array | int | None, ...]:
    """As `fused_attention_overrideable` without bias; the state is one uint64[2], and the debug mask is empty."""
    attention = Attention.of(query, key, value, None, is_causal, scale, dropout_p)
    state = _state(dropout_p, rng)
    out, log_sum = attention.forward(rng)
    unused, mask = jnp.zeros((), np.uint64), jnp.zeros(0, query.dtype)
    return cast(out, query.dtype), log_sum, None, None, query.shape[-2], key.shape[-2], state, unused, mask


@lowering("_scaled_dot_product_flash_attention_backward", static=("dropout_p",))
def flash_attention_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    cum_seq_q: Array | None,
    cum_seq_k: Array | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Array,
    philox_offset: Array,
    *,
    scale: Number | None,
) -> tuple[Array, Array, Array]:
    """`philox_seed` is the state uint64[2] of the forward pass, `philox_offset` its unused companion."""
    attention = Attention.of(query, key, value, None, is_causal, scale, dropout_p)
    rng = None if dropout_p == 0 else Rng(philox_seed.astype(np.uint64))
    return _gradients(attention, (query, key, value), grad_out, out, logsumexp, rng)[:3]


_LOG_SUM_ALIGNMENT = 32
"""The efficient form pads its log-sum-exp to a multiple of this many rows."""


@lowering("_scaled_dot_product_efficient_attention", static=("dropout_p",))
def efficient_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_bias: Array | None,
    compute_log_sumexp: bool,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: Number | None,
    rng: Rng,
) -> tuple[Array, Array, Array, Array]:
    """Output, log-sum-exp (padded, or without rows if not asked for), seed and offset (int64)."""
    attention = Attention.of(query, key, value, attn_bias, is_causal, scale, dropout_p)
    state = _state(dropout_p, rng).astype(np.int64)
    out, log_sum = attention.forward(rng)
    rows = query.shape[2]
    missing = -rows % _LOG_SUM_ALIGNMENT
    padded = jnp.pad(log_sum, ((0, 0), (0, 0), (0, missing)), constant_values=jnp.inf) if compute_log_sumexp else log_sum[..., :0]
    return cast(out, query.dtype), padded, state[0], state[1]


@lowering("_scaled_dot_product_efficient_attention_backward", static=("dropout_p",))
def efficient_attention_backward(
    grad_out_: Array,
    query: Array,
    key: Array,
    value: Array,
    attn_bias: Array | None,
    out: Array,
    logsumexp: Array,
    philox_seed: Array,
    philox_offset: Array,
    dropout_p: float,
    grad_input_mask: Sequence[bool],
    is_causal: bool,
    *,
    scale: Number | None,
) -> tuple[Array | None, ...]:
    log_sum, rows = logsumexp[..., : query.shape[2]], query.shape[-2]
    return fused_attention_overrideable_backward(
        grad_out_,
        query,
        key,
        value,
        attn_bias,
        grad_input_mask,
        out,
        log_sum,
        None,
        None,
        rows,
        key.shape[-2],
        dropout_p,
        is_causal,
        philox_seed,
        philox_offset,
        scale=scale,
    )


@lowering("_scaled_dot_product_flash_attention_for_cpu", static=("dropout_p",))
def flash_attention_for_cpu(
    query: Array, key: Array, value: Array, dropout_p: float, is_causal: bool, *, attn_mask: Array | None, scale: Number | None
) -> tuple[Array, Array]:
    """Output and log-sum-exp. This form has no dropout, in ATen neither."""
    out, log_sum = Attention.of(query, key, value, attn_mask, is_causal, scale).forward()
    return cast(out, query.dtype), log_sum


@lowering("_scaled_dot_product_flash_attention_for_cpu_backward", static=("dropout_p",))
def flash_attention_for_cpu_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Array | None,
    scale: Number | None,
) -> tuple[Array, Array, Array]:
    attention = Attention.of(query, key, value, attn_mask, is_causal, scale)
    return _gradients(attention, (query, key, value), grad_out, out, logsumexp, None)[:3]
