"""The fused cells PyTorch's LSTM and GRU call on an accelerator: everything in a time step but the matmuls."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from .precision import widened
from .promotion import cast
from .registry import lowering


def _biased(gates: Array, bias: Array | None) -> Array:
    gates = widened(gates)
    return gates if bias is None else gates + cast(bias, gates.dtype)


@lowering("_thnn_fused_lstm_cell")
def thnn_fused_lstm_cell(
    input_gates: Array, hidden_gates: Array, cx: Array, input_bias: Array | None, hidden_bias: Array | None
) -> tuple[Array, Array, Array]:
    """Gates [N, 4 H] in the order input, forget, cell, output; cx [N, H]. Returns hy, cy [N, H] and the activated gates [N, 4 H]."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    i, f, g, o = jnp.split(gates, 4, axis=1)
    i, f, g, o = lax.logistic(i), lax.logistic(f), jnp.tanh(g), lax.logistic(o)
    cy = f * cast(cx, gates.dtype) + i * g
    dtype = input_gates.dtype
    return cast(o * jnp.tanh(cy), dtype), cast(cy, dtype), cast(jnp.concatenate([i, f, g, o], axis=1), dtype)


@lowering("_thnn_fused_lstm_cell_backward_impl")
def thnn_fused_lstm_cell_backward_impl(
    grad_hy: Array | None, grad_cy: Array | None, cx: Array, cy: Array, workspace: Array, has_bias: bool
) -> tuple[Array, Array, Array | None]:
    """The gradients of the gates [N, 4 H] (input's and hidden's alike), of cx [N, H] and, summed over the batch, of a bias [4 H]."""
    i, f, g, o = jnp.split(widened(workspace), 4, axis=1)
    tanh_cy = jnp.tanh(cast(cy, i.dtype))
    through_h = jnp.zeros_like(i) if grad_hy is None else cast(grad_hy, i.dtype)
    through_c = through_h * o * (1 - tanh_cy * tanh_cy)
    if grad_cy is not None:
        through_c = through_c + cast(grad_cy, i.dtype)
    grads = (
        through_c * g * i * (1 - i),
        through_c * cast(cx, i.dtype) * f * (1 - f),
        through_c * i * (1 - g * g),
        through_h * tanh_cy * o * (1 - o),
    )
    gates = jnp.concatenate(grads, axis=1)
    bias = cast(jnp.sum(gates, axis=0), workspace.dtype) if has_bias else None
    return cast(gates, workspace.dtype), cast(through_c * f, cx.dtype), bias


@lowering("_thnn_fused_gru_cell")
def thnn_fused_gru_cell(
    input_gates: Array, hidden_gates: Array, hx: Array, input_bias: Array | None, hidden_bias: Array | None
) -> tuple[Array, Array]:
    """Gates [N, 3 H] in the order reset, update, new; hx [N, H]. Returns hy [N, H] and what the gradient needs [N, 5 H]."""
    input_r, input_z, input_n = jnp.split(_biased(input_gates, input_bias), 3, axis=1)
    hidden_r, hidden_z, hidden_n = jnp.split(_biased(hidden_gates, hidden_bias), 3, axis=1)
    r, z = lax.logistic(input_r + hidden_r), lax.logistic(input_z + hidden_z)
    n = jnp.tanh(input_n + r * hidden_n)
    before = cast(hx, n.dtype)
    dtype = input_gates.dtype
    return cast(n + z * (before - n), dtype), cast(jnp.concatenate([r, z, n, before, hidden_n], axis=1), dtype)


@lowering("_thnn_fused_gru_cell_backward")
def thnn_fused_gru_cell_backward(grad_hy: Array, workspace: Array, has_bias: bool) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """The gradients of input gates, hidden gates [N, 3 H], hx [N, H] and, summed over the batch, both biases [3 H]."""
    r, z, n, hx, hidden_n = jnp.split(widened(workspace), 5, axis=1)
    grad = cast(grad_hy, r.dtype)
    grad_n = grad * (1 - z) * (1 - n * n)
    grad_z = grad * (hx - n) * z * (1 - z)
    grad_r = grad_n * hidden_n * r * (1 - r)
    input_gates = jnp.concatenate([grad_r, grad_z, grad_n], axis=1)
    hidden_gates = jnp.concatenate([grad_r, grad_z, grad_n * r], axis=1)
    dtype = workspace.dtype
    biases = [cast(jnp.sum(g, axis=0), dtype) if has_bias else None for g in (input_gates, hidden_gates)]
    return cast(input_gates, dtype), cast(hidden_gates, dtype), cast(grad * z, dtype), biases[0], biases[1]
