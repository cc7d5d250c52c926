"""The inference forms of `nn.MultiheadAttention` and `nn.TransformerEncoderLayer`: projections, attention and feed-forward in one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .attention import batched_dot
from .normalization import native_layer_norm
from .precision import matmul_precision, widened
from .promotion import Number, cast, opmath
from .registry import lowering

_ATTENTION_MASK, _PADDING_MASK = 0, 1
"""What `mask_type` says of a mask: [L, L] for all heads, [B, L] over keys, or (2) one that has all dimensions."""


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    """x [..., in], weight [out, in], bias [out]."""
    numbers = (((x.ndim - 1,), (1,)), ((), ()))
    out = lax.dot_general(x, weight, numbers, matmul_precision(x.dtype), opmath(x.dtype))
    return cast(out + cast(bias, out.dtype), x.dtype)


def _heads(x: Array, heads: int) -> Array:
    """[B, T, D] to [B, heads, T, D / heads]."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


@lowering("_transform_bias_rescale_qkv")
def transform_bias_rescale_qkv(qkv: Array, qkv_bias: Array, num_heads: int) -> tuple[Array, Array, Array]:
    """qkv [B, T, 3 D] plus bias [3 D] as query, key, value [B, heads, T, D / heads], the query divided by sqrt(D / heads)."""
    biased = widened(qkv) + cast(qkv_bias, opmath(qkv.dtype))
    query, key, value = (_heads(part, num_heads) for part in jnp.split(biased, 3, axis=2))
    scale = np.sqrt(query.shape[-1])
    return cast(query / scale, qkv.dtype), cast(key, qkv.dtype), cast(value, qkv.dtype)


def _mask_out(scores: Array, mask: Array | None, mask_type: int | None) -> Array:
    """Scores [B, heads, L, S], -inf where the mask is True (or nonzero)."""
    if mask is None:
        return scores
    hidden = mask if mask.dtype == np.bool_ else mask != 0
    if mask_type == _PADDING_MASK:
        hidden = hidden.reshape(hidden.shape[0], 1, 1, hidden.shape[-1])
    elif mask_type == _ATTENTION_MASK:
        hidden = hidden.reshape(1, 1, *hidden.shape[-2:])
    return jnp.where(hidden, -jnp.inf, scores)


@lowering("_native_multi_head_attention")
def native_multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Array | None,
    need_weights: bool,
    average_attn_weights: bool,
    mask_type: int | None,
) -> tuple[Array, Array | None]:
    """query, key, value [B, T, D]; qkv_weight [3 D, D]. Returns the output [B, T, D] and, if asked for, the attention weights."""
    weights, biases = jnp.split(qkv_weight, 3), jnp.split(qkv_bias, 3)
    q, k, v = (_heads(_linear(x, w, b), num_head) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    scores = _mask_out(batched_dot(q, k, (3, 3)) / np.sqrt(embed_dim // num_head), mask, mask_type)
    top = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
    exps = jnp.exp(scores - top)
    attention = cast(exps / jnp.sum(exps, axis=-1, keepdims=True), query.dtype)  # NaN where all keys are hidden, as on the CPU
    out = cast(batched_dot(attention, v, (3, 2)), query.dtype).swapaxes(1, 2).reshape(query.shape)
    projected = _linear(out, proj_weight, proj_bias)
    if not need_weights:
        return projected, None
    return projected, cast(jnp.mean(widened(attention), axis=1), query.dtype) if average_attn_weights else attention


def _feed_forward(x: Array, weight_1: Array, bias_1: Array, weight_2: Array, bias_2: Array, use_gelu: bool) -> Array:
    hidden = widened(_linear(x, weight_1, bias_1))
    hidden = 0.5 * hidden * (1 + lax.erf(hidden * np.sqrt(0.5))) if use_gelu else jnp.maximum(hidden, 0)
    return _linear(cast(hidden, x.dtype), weight_2, bias_2)


@lowering("_transformer_encoder_layer_fwd")
def transformer_encoder_layer_fwd(
    src: Array,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    use_gelu: bool,
    norm_first: bool,
    eps: Number,
    norm_weight_1: Array,
    norm_bias_1: Array,
    norm_weight_2: Array,
    norm_bias_2: Array,
    ffn_weight_1: Array,
    ffn_bias_1: Array,
    ffn_weight_2: Array,
    ffn_bias_2: Array,
    mask: Array | None,
    mask_type: int | None,
) -> Array:
    """src [B, T, D] through attention and feed-forward, each with a residual, normalised before (`norm_first`) or after."""

    def attend(x: Array) -> Array:
        args = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)
        return native_multi_head_attention(x, x, x, *args)[0]

    def feed(x: Array) -> Array:
        return _feed_forward(x, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, use_gelu)

    def norm_1(x: Array) -> Array:
        return native_layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)[0]

    def norm_2(x: Array) -> Array:
        return native_layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)[0]

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed(x))
