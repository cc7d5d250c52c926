"""The programs the statements about fusion are checked on: what models are made of, one function each, with the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32


@dataclass(frozen=True)
class Example:
    """A program: a pure jax function and the shapes and dtypes of its flat arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]


PROGRAMS: dict[str, Example] = {}


def example(*shapes: tuple[int, ...], dtypes: tuple[Any, ...] | None = None, dtype: Any = BF16) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the function to `PROGRAMS` under its name. `dtypes` gives each argument its own, `dtype` all of them one."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        kinds = dtypes or (dtype,) * len(shapes)
        arguments = tuple(jax.ShapeDtypeStruct(shape, kind) for shape, kind in zip(shapes, kinds, strict=True))
        PROGRAMS[function.__name__] = Example(function.__name__, function, arguments)
        return function

    return add


def normalize(x: Any, gain: Any, bias: Any) -> Any:
    """Layer norm over the last axis, statistics in float32."""
    wide = x.astype(F32)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * gain + bias


def attend(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Softmax attention over (batch, heads, length, width)."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = scores if mask is None else jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores.astype(F32), axis=-1).astype(q.dtype), v)


def heads(x: Any, count: int) -> Any:
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(0, 2, 1, 3)


@example((4, 8, 512, 64), (4, 8, 512, 64), (4, 8, 512, 64))
def attention(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v)


@example((4, 8, 512, 64), (4, 8, 512, 64), (4, 8, 512, 64))
def causal_attention(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, jnp.tril(jnp.ones((512, 512), bool)))


@example((4, 512, 512), (512, 1536), (512, 512))
def self_attention_layer(x: Any, w_qkv: Any, w_out: Any) -> Any:
    q, k, v = jnp.split(x @ w_qkv, 3, axis=-1)
    mixed = attend(heads(q, 8), heads(k, 8), heads(v, 8)).transpose(0, 2, 1, 3)
    return x + mixed.reshape(x.shape) @ w_out


@example((2048, 1024), (1024,), (1024,))
def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return normalize(x, gain, bias)


@example((2048, 1024), (1024,), dtype=F32)
def rms_norm(x: Any, gain: Any) -> Any:
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * gain


@example((2048, 2048), dtype=F32)
def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


@example((1024, 2048), (1024,), dtypes=(F32, I32))
def cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


@example((2048, 512), (512, 2048), (2048,), (2048, 512), (512,))
def gelu_mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return jax.nn.gelu(x @ w1 + b1) @ w2 + b2


@example((2048, 512), (512, 1024), (512, 1024), (1024, 512))
def gated_mlp(x: Any, w_gate: Any, w_up: Any, w_down: Any) -> Any:
    return (jax.nn.silu(x @ w_gate) * (x @ w_up)) @ w_down


@example((4, 256, 512), (512, 1536), (512, 512), (512,), (512,), (512, 2048), (2048, 512), (512,), (512,))
def transformer_block(x: Any, w_qkv: Any, w_out: Any, g1: Any, b1: Any, w1: Any, w2: Any, g2: Any, b2: Any) -> Any:
    x = self_attention_layer(normalize(x, g1, b1), w_qkv, w_out) + x
    return x + jax.nn.gelu(normalize(x, g2, b2) @ w1) @ w2


@example((8, 32, 32, 64), (3, 3, 64, 64), (64,), (64,), (64,), (64,))
def conv_batch_norm_eval(x: Any, w: Any, mean: Any, var: Any, gain: Any, bias: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu((y - mean) * lax.rsqrt(var + 1e-5) * gain + bias)


@example((8, 64, 32, 32), (64, 64, 3, 3), (64,), (64,), dtype=F32)
def conv_batch_norm_train(x: Any, w: Any, gain: Any, bias: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    mean, var = y.mean((0, 2, 3), keepdims=True), y.var((0, 2, 3), keepdims=True)
    return jax.nn.relu((y - mean) * lax.rsqrt(var + 1e-5) * gain[:, None, None] + bias[:, None, None])


@example((8, 32, 32, 64), (3, 3, 64, 64), (3, 3, 64, 64), dtype=BF16)
def residual_conv(x: Any, w1: Any, w2: Any) -> Any:
    def conv(a: Any, w: Any) -> Any:
        return lax.conv_general_dilated(a, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return jax.nn.relu(x + conv(jax.nn.relu(conv(x, w1)), w2))


@example((8, 64, 64, 32), dtype=F32)
def max_pool(x: Any) -> Any:
    return lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") * 2.0


@example((4096, 512), (8, 128), dtypes=(BF16, I32))
def embedding(table: Any, ids: Any) -> Any:
    return jnp.take(table, ids, axis=0) * 512**0.5


@example((4096, 512), (1024,), (1024, 512), dtypes=(F32, I32, F32))
def embedding_update(table: Any, ids: Any, gradient: Any) -> Any:
    return table - 0.1 * jnp.zeros_like(table).at[ids].add(gradient)


@example((256, 2048), dtype=F32)
def cumulative_sum(x: Any) -> Any:
    return jnp.cumsum(jnp.exp(x), axis=-1) * 2.0


@example((256, 2048), dtype=F32)
def sort_then_scale(x: Any) -> Any:
    return jnp.sort(jnp.abs(x), axis=-1) * 2.0


@example((256, 4096), dtype=F32)
def top_k(x: Any) -> Any:
    values, places = lax.top_k(jax.nn.softmax(x), 8)
    return values / values.sum(-1, keepdims=True), places


@example((32, 128, 256), (32, 256), (256, 256), dtype=F32)
def recurrent_scan(xs: Any, start: Any, w: Any) -> Any:
    def step(state: Any, x: Any) -> tuple[Any, Any]:
        state = jnp.tanh(state @ w + x)
        return state, state * 2.0

    return lax.scan(step, start, xs.transpose(1, 0, 2))


@example((2048, 2048), (2048, 2048), dtype=F32)
def mean_squared_error(x: Any, y: Any) -> Any:
    return jnp.square(x - y).mean()


@example((2048, 1024), dtype=F32)
def shared_statistics(x: Any) -> Any:
    y = jnp.tanh(x)
    return y.sum(-1), y.max(-1), y.mean(0)


@example((2048, 512), (512, 512), (512, 512))
def two_consumers(x: Any, w1: Any, w2: Any) -> Any:
    hidden = jnp.tanh(x @ w1)
    return hidden @ w2, hidden.sum(0)


@example((2048, 1024), dtype=F32)
def pointwise_with_intermediate(x: Any) -> Any:
    y = jnp.exp(x)
    return jnp.sin(y) + 1.0, y


@example((1024, 1024), (1024, 1024), dtypes=(F32, F32))
def mixed_precision_matmul(x: Any, w: Any) -> Any:
    return jax.nn.relu((x.astype(BF16) @ w.astype(BF16)).astype(F32)) * 2.0


@example((1024, 2048), (1024, 512))
def transposed_matmul(x: Any, y: Any) -> Any:
    return (jnp.tanh(x).T @ y).T + 1.0


@example((64, 128, 256), dtype=F32)
def transpose_and_add(x: Any) -> Any:
    return jnp.transpose(x, (2, 0, 1)) + jnp.exp(x).transpose(2, 0, 1)


@example((1024, 1536), dtype=F32)
def slices(x: Any) -> Any:
    a, b, c = jnp.split(x, 3, axis=1)
    return jnp.tanh(a) * b + c[:, ::-1]


@example((1024, 512), (1024, 512), dtype=F32)
def concatenate(x: Any, y: Any) -> Any:
    return jnp.concatenate([jnp.exp(x), jnp.sin(y)], axis=1) * 3.0


@example((2, 64, 128, 128), (2, 64, 128, 128))
def rotary(q: Any, angles: Any) -> Any:
    first, second = jnp.split(q, 2, axis=-1)
    return q * jnp.cos(angles) + jnp.concatenate([-second, first], axis=-1) * jnp.sin(angles)


@example((2,), (1024, 1024), dtypes=(jnp.uint32, F32))
def dropout(key: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


@example((4, 8, 1, 64), (4, 8, 1024, 64), (4, 8, 1024, 64), (4, 8, 1, 64), (4, 8, 1, 64), (), dtypes=(*(BF16,) * 5, I32))
def decode_step(q: Any, keys: Any, values: Any, k: Any, v: Any, position: Any) -> Any:
    keys, values = (lax.dynamic_update_slice_in_dim(cache, new, position, 2) for cache, new in ((keys, k), (values, v)))
    return attend(q, keys, values, jnp.arange(1024) <= position), keys, values


@example((512, 784), (512,), (784, 512), (512,), (512, 16), dtypes=(F32, I32, F32, F32, F32))
def mlp_training_step(x: Any, labels: Any, w1: Any, b1: Any, w2: Any) -> Any:
    def loss(parameters: tuple[Any, ...]) -> Any:
        w1, b1, w2 = parameters
        return cross_entropy(jax.nn.relu(x @ w1 + b1) @ w2, labels)

    value, gradients = jax.value_and_grad(loss)((w1, b1, w2))
    return value, [p - 0.1 * g for p, g in zip((w1, b1, w2), gradients, strict=True)]


@example(*((1024, 512),) * 4, (), dtype=F32)
def adam_update(p: Any, g: Any, m: Any, v: Any, step: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8), m, v


@example(*((512, 512),) * 3, dtype=F32)
def clipped_gradients(a: Any, b: Any, c: Any) -> Any:
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in (a, b, c)))
    return [g * jnp.minimum(1.0, 1.0 / norm) for g in (a, b, c)]


@example((4, 256, 512), (512, 1536), (512, 512), (512,), (512,), (512, 2048), (2048, 512), (512,), (512,))
def block_training_step(x: Any, *weights: Any) -> Any:
    def loss(parameters: tuple[Any, ...]) -> Any:
        return jnp.square(transformer_block(x, *parameters).astype(F32)).mean()

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]


@example((8, 32, 32, 32), (3, 3, 32, 32), (32,), (32,), dtype=F32)
def conv_training_step(x: Any, w: Any, gain: Any, bias: Any) -> Any:
    def loss(parameters: tuple[Any, ...]) -> Any:
        w, gain, bias = parameters
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = (y - y.mean((0, 1, 2))) * lax.rsqrt(y.var((0, 1, 2)) + 1e-5)
        return jax.nn.relu(y * gain + bias).mean()

    return [p - 0.1 * g for p, g in zip((w, gain, bias), jax.grad(loss)((w, gain, bias)), strict=True)]
