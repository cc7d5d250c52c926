"""Attention lowerings against torch on the CPU: its own flash form, and its math form with autograd for the forms it lacks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.lowering.replay import Replay, call, compare, lowering_of, to_array, to_tensor
from tpu_lab.lowering.promotion import Number
from tpu_lab.lowering.rng import Rng

aten = torch.ops.aten
STATE = (1234, 5)


def run(overload: str, *args: Any, scale: float | None = None, random: bool = False) -> Any:
    """Calls a lowering under jit, tensors as arrays; a random one draws from STATE."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]

    def body(state: jax.Array, factor: jax.Array, *arrays: jax.Array) -> Any:
        given = iter(arrays)
        bound = [next(given) if isinstance(a, torch.Tensor) else a for a in args]
        rng = {"rng": Rng(state)} if random else {}
        return lowering_of(overload).function(*bound, scale=None if scale is None else Number(factor), **rng)

    with jax.enable_x64(True):
        state = jnp.array(STATE, np.uint64)
        return jax.jit(body)(state, jnp.asarray(np.float64(scale or 0.0)), *map(to_array, tensors))


def dropout_mask(shape: tuple[int, ...], p: float) -> torch.Tensor:
    with jax.enable_x64(True):
        kept = Rng(jnp.array(STATE, np.uint64)).uniform(shape, np.dtype(np.float32)) >= p
        return torch.from_numpy(np.array(kept))


def operands(dtype: torch.dtype = torch.float32, heads: int = 4, groups: int = 4, dims: int = 4) -> tuple[torch.Tensor, ...]:
    shapes = [(2, heads, 5, 8), (2, groups, 7, 8), (2, groups, 7, 8)]
    made = [torch.randn(shape).to(dtype) for shape in shapes]
    return tuple((t if dims == 4 else t[0]).requires_grad_() for t in made)


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None, causal: bool, **how: Any) -> torch.Tensor:
    return aten._scaled_dot_product_attention_math(q, k, v, bias, how.pop("p", 0.0), causal, how.pop("mask", None), **how)[0]


TOLERANCE = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-7), torch.bfloat16: (2e-2, 3e-2)}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_overrideable(dtype: torch.dtype, causal: bool) -> None:
    q, k, v = operands(dtype)
    bias = None if causal else torch.randn(1, 4, 1, 7).to(dtype).requires_grad_()
    expected = reference(q, k, v, bias, causal, scale=0.3)
    out, log_sum, cum_q, cum_k, max_q, max_k, *_ = run(
        "_scaled_dot_product_fused_attention_overrideable", q, k, v, bias, 0.0, causal, False, scale=0.3, random=True
    )
    compare(out, expected, "output", *TOLERANCE[dtype])
    assert (cum_q, cum_k, max_q, max_k) == (None, None, 5, 7)
    grad = torch.randn(expected.shape).to(dtype)
    expected.backward(grad)
    zero = torch.zeros((), dtype=torch.int64)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    grads = run(
        "_scaled_dot_product_fused_attention_overrideable_backward",
        *(grad, q, k, v, bias, [True, True, True, bias is not None]),
        *(expected, to_tensor(log_sum, wide), None, None, 5, 7, 0.0, causal, zero, zero),
        scale=0.3,
    )
    compare(grads, (q.grad, k.grad, v.grad, None if bias is None else bias.grad), "gradients", *TOLERANCE[dtype])


def test_log_sum_exp_and_rows_that_are_masked_out() -> None:
    q, k, v = (t.detach() for t in operands())
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    out, log_sum, *_ = run("_scaled_dot_product_fused_attention_overrideable", q, k, v, mask, 0.0, False, False, random=True)
    scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(~mask, -float("inf"))
    compare(log_sum, scores.logsumexp(-1), "log-sum-exp", 1e-5, 1e-5)
    compare(out, scores.softmax(-1).nan_to_num(0.0) @ v, "output", 1e-5, 1e-5)


def test_grouped_heads_and_three_dimensions() -> None:
    q, k, v = operands(heads=6, groups=2)
    expected = reference(q, k, v, None, True, enable_gqa=True)
    out, log_sum, *_ = run("_scaled_dot_product_fused_attention_overrideable", q, k, v, None, 0.0, True, False, random=True)
    compare(out, expected, "output", 1e-5, 1e-5)
    grad = torch.randn(expected.shape)
    expected.backward(grad)
    rest = (expected, to_tensor(log_sum, torch.float32), None, None, 5, 7, 0.0, True, torch.tensor(0), torch.tensor(0))
    back = "_scaled_dot_product_fused_attention_overrideable_backward"
    grads = run(back, grad, q, k, v, None, [True, True, False, False], *rest)
    compare(grads[:2], (q.grad, k.grad), "gradients", 1e-4, 1e-5)
    assert grads[2] is None and grads[3] is None
    flat = operands(dims=3)
    out = run("_scaled_dot_product_fused_attention_overrideable", *flat, None, 0.0, False, False, random=True)[0]
    compare(out, reference(*(t[None] for t in flat), None, False)[0], "three dimensions", 1e-5, 1e-5)


P = 0.4


@pytest.mark.parametrize("form", ["overrideable", "flash", "efficient"])
def test_dropout_is_the_generators_and_the_gradient_repeats_it(form: str) -> None:
    q, k, v = operands()
    mask = dropout_mask((2, 4, 5, 7), P)
    assert 0.2 < mask.float().mean() < 0.9
    expected = reference(q, k, v, None, False, p=P, mask=mask)
    grad = torch.randn(expected.shape)
    expected.backward(grad)
    if form == "overrideable":
        out, log_sum, *_, seed, offset, _ = run("_scaled_dot_product_fused_attention_overrideable", q, k, v, None, P, False, False, random=True)
        rest = (expected, to_tensor(log_sum, torch.float32), None, None, 5, 7, P, False, *(to_tensor(s, torch.int64) for s in (seed, offset)))
        grads = run("_scaled_dot_product_fused_attention_overrideable_backward", grad, q, k, v, None, [True, True, True, False], *rest)
    elif form == "flash":
        out, log_sum, *_, state, unused, debug = run("_scaled_dot_product_flash_attention", q, k, v, P, False, False, random=True)
        assert state.shape == (2,) and unused.shape == () and debug.shape == (0,)
        rest = (
            expected,
            to_tensor(log_sum, torch.float32),
            None,
            None,
            5,
            7,
            P,
            False,
            to_tensor(state, torch.uint64),
            to_tensor(unused, torch.uint64),
        )
        grads = run("_scaled_dot_product_flash_attention_backward", grad, q, k, v, *rest)
    else:
        out, log_sum, seed, offset = run("_scaled_dot_product_efficient_attention", q, k, v, None, True, P, False, random=True)
        assert log_sum.shape == (2, 4, 32)
        state = [to_tensor(s, torch.int64) for s in (seed, offset)]
        rest = (expected, to_tensor(log_sum, torch.float32), *state, P, [True, True, True, False], False)
        grads = run("_scaled_dot_product_efficient_attention_backward", grad, q, k, v, None, *rest)
    compare(out, expected, "output", 1e-5, 1e-5)
    compare(grads[:3], (q.grad, k.grad, v.grad), "gradients", 1e-4, 1e-5)


def test_efficient_attention_without_log_sum_exp() -> None:
    q, k, v = (t.detach() for t in operands())
    bias = torch.randn(2, 1, 5, 7)
    out, log_sum, *_ = run("_scaled_dot_product_efficient_attention", q, k, v, bias, False, 0.0, False, random=True)
    assert log_sum.shape == (2, 4, 0)
    compare(out, reference(q, k, v, bias, False), "output", 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_for_cpu(dtype: torch.dtype, causal: bool) -> None:
    q, k, v = (t.detach() for t in operands(dtype))
    how = {"attn_mask": None if causal else torch.randn(2, 4, 5, 7).to(dtype), "scale": 0.5}
    names = {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"}
    with Replay(names, *TOLERANCE[dtype]) as replay:
        out, log_sum = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, **how)
        grad = torch.randn(out.shape).to(dtype)
        aten._scaled_dot_product_flash_attention_for_cpu_backward(grad, q, k, v, out, log_sum, 0.0, causal, **how)
    assert set(replay.checked) == names


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_transform_bias_rescale_qkv(dtype: torch.dtype) -> None:
    with Replay({"_transform_bias_rescale_qkv"}) as replay:
        aten._transform_bias_rescale_qkv(torch.randn(2, 3, 24).to(dtype), torch.randn(24).to(dtype), 2)
    assert replay.checked == {"_transform_bias_rescale_qkv": 1}


PADDING = torch.tensor([[False, False, False, True], [False, False, True, True]])
SCATTERED = (torch.arange(64) * 37 % 10 > 6).reshape(2, 2, 4, 4)
SCATTERED[1, 0, 2] = True  # a query without any key
MASKS = [(None, None), (torch.ones(4, 4).triu(1).bool(), 0), (PADDING, 1), (SCATTERED, 2)]


@pytest.mark.parametrize(("mask", "mask_type"), MASKS, ids=["none", "attention", "padding", "full"])
@pytest.mark.parametrize(("need_weights", "average"), [(False, True), (True, True), (True, False)])
def test_native_multi_head_attention(mask: torch.Tensor | None, mask_type: int | None, need_weights: bool, average: bool) -> None:
    x = torch.randn(2, 4, 8)
    weights = (torch.randn(24, 8), torch.randn(24), torch.randn(8, 8), torch.randn(8))
    args = (x, x, x, 8, 2, *weights, mask, need_weights, average, mask_type)
    expected = aten._native_multi_head_attention(*args)
    actual = call(lowering_of("_native_multi_head_attention"), aten._native_multi_head_attention.default, args, {})
    compare(actual[0], expected[0], "_native_multi_head_attention", 1e-4, 1e-4)
    if need_weights:
        compare(actual[1], expected[1], "weights", 1e-4, 1e-5)
    else:
        assert actual[1] is None


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("use_gelu", [False, True])
def test_transformer_encoder_layer(norm_first: bool, use_gelu: bool) -> None:
    d, hidden = 8, 12
    attention = (torch.randn(3 * d, d), torch.randn(3 * d), torch.randn(d, d), torch.randn(d))
    norms = (torch.rand(d), torch.randn(d), torch.rand(d), torch.randn(d))
    feed = (torch.randn(hidden, d), torch.randn(hidden), torch.randn(d, hidden), torch.randn(d))
    with Replay({"_transformer_encoder_layer_fwd"}, rtol=1e-4, atol=1e-4) as replay:
        aten._transformer_encoder_layer_fwd(torch.randn(2, 4, d), d, 2, *attention, use_gelu, norm_first, 1e-3, *norms, *feed, PADDING, 1)
    assert replay.checked == {"_transformer_encoder_layer_fwd": 1}
