"""One call of each of the 60 operators that models use most (`tpu_lab/coverage/data/ops_used.json`), on operands of about `side` x `side`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

USED = Path(__file__).parent.parent / "tpu_lab" / "coverage" / "data" / "ops_used.json"
MOST_USED = 60
Call = Callable[[], Any]
aten = torch.ops.aten


def model_types() -> dict[str, int]:
    """In how many model types each overload is called."""
    types: dict[str, int] = json.loads(USED.read_text())["types"]
    return types


def most_used() -> list[str]:
    """The overloads of the benchmark, the most used first."""
    types = model_types()
    return sorted(types, key=lambda name: (-types[name], name))[:MOST_USED]


def calls(device: str, side: int = 1024) -> dict[str, Call]:
    """Calls by overload; those of `BESIDES` follow the most used ones. Operands are the same on each device."""
    torch.manual_seed(0)
    table = _pointwise(device, side) | _views(device, side) | _made(device, side) | _moved(device, side) | _products(device, side)
    return table | _normalized(device, side) | _looked_up(device, side) | _ordered(device, side)


BESIDES = ("cumsum", "sort", "topk", "index_put", "mm (bfloat16)", "constant_pad_nd", "copy_", "masked_fill.Scalar")
"""Operators of interest that are not among the most used."""


def _random(device: str, *shape: int) -> torch.Tensor:
    return torch.randn(shape).to(device)


def _pointwise(device: str, side: int) -> dict[str, Call]:
    x, y = _random(device, side, side), _random(device, side, side)
    positive, mask, other = x.abs() + 0.5, x > 0, y > 0
    return {
        "mul.Tensor": lambda: aten.mul.Tensor(x, y),
        "add.Tensor": lambda: aten.add.Tensor(x, y),
        "sub.Tensor": lambda: aten.sub.Tensor(x, y),
        "div.Tensor": lambda: aten.div.Tensor(x, y),
        "div.Scalar": lambda: aten.div.Scalar(x, 3.0),
        "mul.Scalar": lambda: aten.mul.Scalar(x, 3.0),
        "neg": lambda: aten.neg(x),
        "cos": lambda: aten.cos(x),
        "sin": lambda: aten.sin(x),
        "rsqrt": lambda: aten.rsqrt(positive),
        "pow.Tensor_Scalar": lambda: aten.pow.Tensor_Scalar(x, 2),
        "gelu": lambda: aten.gelu(x),
        "gelu_backward": lambda: aten.gelu_backward(y, x),
        "silu": lambda: aten.silu(x),
        "silu_backward": lambda: aten.silu_backward(y, x),
        "where.self": lambda: aten.where.self(mask, x, y),
        "eq.Scalar": lambda: aten.eq.Scalar(x, 0.0),
        "bitwise_and.Tensor": lambda: aten.bitwise_and.Tensor(mask, other),
        "masked_fill.Scalar": lambda: aten.masked_fill.Scalar(x, mask, 0.0),
        "_to_copy": lambda: aten._to_copy(x, dtype=torch.bfloat16),
    }


def _views(device: str, side: int) -> dict[str, Call]:
    x = _random(device, side, side)
    row, column = x[:1], x.reshape(side * side, 1)
    return {
        "detach": lambda: aten.detach(x),
        "alias": lambda: aten.alias(x),
        "lift_fresh": lambda: aten.lift_fresh(x),
        "expand": lambda: aten.expand(row, [side, side]),
        "view": lambda: aten.view(x, [side * side]),
        "_unsafe_view": lambda: aten._unsafe_view(x, [side * side]),
        "t": lambda: aten.t(x),
        "transpose.int": lambda: aten.transpose.int(x, 0, 1),
        "permute": lambda: aten.permute(x, [1, 0]),
        "slice.Tensor": lambda: aten.slice.Tensor(x, 0, 1, side),
        "select.int": lambda: aten.select.int(x, 0, 1),
        "unsqueeze": lambda: aten.unsqueeze(x, 0),
        "squeeze.dim": lambda: aten.squeeze.dim(column, 1),
    }


def _made(device: str, side: int) -> dict[str, Call]:
    x = _random(device, side, side)
    one = x.sum()
    return {
        "ones_like": lambda: aten.ones_like(x),
        "new_ones": lambda: aten.new_ones(x, [side, side]),
        "new_zeros": lambda: aten.new_zeros(x, [side, side]),
        "zeros": lambda: torch.zeros(side, side, device=device),
        "arange": lambda: torch.arange(side * side, device=device),
        "scalar_tensor": lambda: torch.scalar_tensor(3.0, device=device),
        "_local_scalar_dense": lambda: one.item(),
    }


def _moved(device: str, side: int) -> dict[str, Call]:
    x = _random(device, side, side)
    upper, lower, rows = x[: side // 2], x[side // 2 :], torch.randperm(side).to(device)
    target = torch.zeros_like(x)
    return {
        "clone": lambda: aten.clone(x),
        "cat": lambda: aten.cat([upper, lower]),
        "stack": lambda: aten.stack([upper, lower]),
        "slice_backward": lambda: aten.slice_backward(upper, [side, side], 0, 0, side // 2, 1),
        "index.Tensor": lambda: aten.index.Tensor(x, [rows]),
        "index_put": lambda: aten.index_put(target, [rows], x),
        "constant_pad_nd": lambda: aten.constant_pad_nd(x, [1, 1, 1, 1]),
        "copy_": lambda: aten.copy_(target, x),
    }


def _products(device: str, side: int) -> dict[str, Call]:
    x, y, bias = _random(device, side, side), _random(device, side, side), _random(device, side)
    many, others = _random(device, 16, side // 4, side // 4), _random(device, 16, side // 4, side // 4)
    half, other_half = x.bfloat16(), y.bfloat16()
    side_of_image = max(side // 32, 3)
    image, kernel = _random(device, 16, 64, side_of_image, side_of_image), _random(device, 64, 64, 3, 3)
    q, k, v = (_random(device, 2, 8, side, 64).requires_grad_() for _ in range(3))
    attended = F.scaled_dot_product_attention(q, k, v)
    grad = torch.ones_like(attended)
    rest = ([64], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
    result = aten.convolution(image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    with torch.no_grad():
        plain = [t.detach() for t in (q, k, v)]
    return {
        "mm": lambda: aten.mm(x, y),
        "mm (bfloat16)": lambda: aten.mm(half, other_half),
        "addmm": lambda: aten.addmm(bias, x, y),
        "bmm": lambda: aten.bmm(many, others),
        "convolution": lambda: aten.convolution(image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        "convolution_backward": lambda: aten.convolution_backward(result, image, kernel, *rest),
        "_scaled_dot_product_flash_attention_for_cpu": lambda: F.scaled_dot_product_attention(*plain),
        "_scaled_dot_product_flash_attention_for_cpu_backward": lambda: torch.autograd.grad(attended, (q, k, v), grad, retain_graph=True),
    }


def _normalized(device: str, side: int) -> dict[str, Call]:
    x, grad, weight, bias = _random(device, side, side), _random(device, side, side), _random(device, side), _random(device, side)
    _, mean, rstd = aten.native_layer_norm(x, [side], weight, bias, 1e-5)
    probabilities = aten._softmax(x, 1, False)
    return {
        "sum": lambda: aten.sum(x),
        "sum.dim_IntList": lambda: aten.sum.dim_IntList(x, [1]),
        "mean.dim": lambda: aten.mean.dim(x, [1]),
        "_softmax": lambda: aten._softmax(x, 1, False),
        "_softmax_backward_data": lambda: aten._softmax_backward_data(grad, probabilities, 1, torch.float32),
        "native_layer_norm": lambda: aten.native_layer_norm(x, [side], weight, bias, 1e-5),
        "native_layer_norm_backward": lambda: aten.native_layer_norm_backward(grad, x, [side], mean, rstd, weight, bias, [True, True, True]),
    }


def _looked_up(device: str, side: int) -> dict[str, Call]:
    words, table = torch.randint(0, 10_000, (side * 4,)).to(device), _random(device, 10_000, side // 4)
    grad = _random(device, side * 4, side // 4)
    return {
        "embedding": lambda: aten.embedding(table, words),
        "embedding_dense_backward": lambda: aten.embedding_dense_backward(grad, words, 10_000, -1, False),
    }


def _ordered(device: str, side: int) -> dict[str, Call]:
    x = _random(device, side, side)
    return {
        "cumsum": lambda: aten.cumsum(x, 1),
        "sort": lambda: aten.sort(x, 1),
        "topk": lambda: aten.topk(x, 10, 1),
    }
