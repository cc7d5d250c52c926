"""What users run in a loop: 14 workloads, each a function that makes a step on a device.

`make(device, wrap)` returns `step()`; `wrap` is applied to the part that `torch.compile` is for (a function or a module).
A step reads a number at its end, so that its work is done when it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Wrap = Callable[[Any], Any]
Step = Callable[[], object]


def pointwise(n: int) -> Callable[[str, Wrap], Step]:
    """A chain of 24 elementwise operators."""

    def make(device: str, wrap: Wrap) -> Step:
        x = torch.linspace(-1, 1, n).to(device)

        def chain(x: Tensor) -> Tensor:
            y = x
            for i in range(6):
                y = (y * 0.5 + x).clamp(-2, 2 + i) - 0.1
            return y

        run = wrap(chain)
        return lambda: run(x)[0].item()

    return make


def norms(device: str, wrap: Wrap) -> Step:
    """gelu, layer norm and softmax of a 256×512 array, four times."""
    x = torch.randn(256, 512).to(device)

    def chain(x: Tensor) -> Tensor:
        for _ in range(4):
            x = F.softmax(F.layer_norm(F.gelu(x), (512,)), dim=-1) + x
        return x

    run = wrap(chain)
    return lambda: run(x)[0, 0].item()


def training(model: nn.Module, inputs: tuple[Tensor, ...], loss: Any, device: str, wrap: Wrap, optimizer: Any = torch.optim.AdamW) -> Step:
    """A training step; the loss is read."""
    model = model.to(device)
    run, moved = wrap(model), tuple(i.to(device) for i in inputs)
    updates = optimizer(model.parameters(), lr=1e-3)
    update = wrap(updates.step)

    def step() -> float:
        updates.zero_grad()
        value = loss(run(*moved))
        value.backward()
        update()
        return float(value.item())

    return step


def inference(model: nn.Module, inputs: tuple[Tensor, ...], device: str, wrap: Wrap) -> Step:
    """A forward pass without gradients."""
    run, moved = wrap(model.to(device).eval()), tuple(i.to(device) for i in inputs)

    def step() -> float:
        with torch.no_grad():
            return float(run(*moved).flatten()[0].item())

    return step


def mlp_digits(device: str, wrap: Wrap) -> Step:
    """A small net on scikit-learn's digits, batches of 64."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.data[:64], dtype=torch.float32) / 16
    targets = torch.tensor(digits.target[:64]).to(device)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    return training(model, (images,), lambda y: F.cross_entropy(y, targets), device, wrap)


def adamw(device: str, wrap: Wrap) -> Step:
    """An AdamW step on 60 tensors (the foreach implementation)."""
    parameters = [nn.Parameter(torch.randn(32, 33 + i % 3).to(device)) for i in range(60)]
    for p in parameters:
        p.grad = torch.randn(p.shape).to(device)
    update = wrap(torch.optim.AdamW(parameters, lr=1e-3, foreach=True).step)

    def step() -> float:
        update()
        return float(parameters[0].detach()[0, 0].item())

    return step


def _gpt() -> Any:
    from tests.models import gpt2

    return gpt2.make(0, batch=2, layers=1, d=256, heads=8, n=128, vocab=512)


def gpt_forward(device: str, wrap: Wrap) -> Step:
    """One GPT block (d = 256, 128 tokens, batch 2), forward."""
    model, inputs, _ = _gpt()
    return inference(model, inputs, device, wrap)


def gpt_training(device: str, wrap: Wrap) -> Step:
    """The same, a training step with AdamW."""
    model, inputs, loss = _gpt()
    return training(model, inputs, loss, device, wrap)


def resnet(device: str, wrap: Wrap) -> Step:
    """ResNet-18 of width 16, one image of 64×64."""
    from tests.models import resnet as models

    model, inputs, _ = models.make(0, batch=1, side=64, width=16)
    return inference(model, inputs, device, wrap)


def vit_training(device: str, wrap: Wrap) -> Step:
    """A ViT (d = 96, 2 layers, 32×32 images in patches of 4, batch 4), a training step."""
    from tests.models import vit

    model, inputs, loss = vit.make(0, batch=4, side=32, d=96, heads=3)
    return training(model, inputs, loss, device, wrap)


def lstm_loop(device: str, wrap: Wrap) -> Step:
    """An LSTM cell (hidden size 64, batch 8) stepped 16 times in Python."""
    cell, x = nn.LSTMCell(32, 64).to(device), torch.randn(16, 8, 32).to(device)
    run = wrap(cell)

    def step() -> float:
        with torch.no_grad():
            h = c = torch.zeros(8, 64, device=device)
            for t in range(16):
                h, c = run(x[t], (h, c))
            return float(h[0, 0].item())

    return step


def decode(device: str, wrap: Wrap) -> Step:
    """Attention with a cache that grows by one token, 64 tokens."""
    d, heads = 64, 4
    project, out = nn.Linear(d, 3 * d).to(device), nn.Linear(d, d).to(device)
    first = torch.randn(1, 1, d).to(device)

    def one(x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (p.view(1, 1, heads, d // heads).transpose(1, 2) for p in project(x).chunk(3, dim=-1))
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        mixed = F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(1, 1, d)
        return out(mixed), keys, values

    run = wrap(one)

    def step() -> float:
        with torch.no_grad():
            x, keys = first, torch.zeros(1, heads, 0, d // heads, device=device)
            values = keys
            for _ in range(64):
                x, keys, values = run(x, keys, values)
            return float(x[0, 0, 0].item())

    return step


def generate(device: str, wrap: Wrap) -> Step:
    """Hugging Face `generate()` on a tiny Llama: 64 tokens, dynamic cache."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=64, intermediate_size=172, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, vocab_size=500)
    model = LlamaForCausalLM(config).eval().to(device)
    model.forward = wrap(model.forward)
    prompt = torch.arange(8).reshape(1, 8).to(device)
    settings = {"max_new_tokens": 64, "min_new_tokens": 64, "do_sample": False, "pad_token_id": 0}
    return lambda: int(model.generate(prompt, **settings)[0, -1].item())


def rollout(device: str, wrap: Wrap) -> Step:
    """A small policy in an environment on the host: the action is read in each of 32 steps."""
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)).to(device)
    run = wrap(policy)

    def step() -> float:
        state = [0.1, 0.0, -0.1, 0.0]
        with torch.no_grad():
            for _ in range(32):
                action = run(torch.tensor(state).to(device)).softmax(-1).argmax().item()
                state = [0.9 * s + 0.1 * (action - 0.5) for s in state]
        return state[0]

    return step


def diffusion(device: str, wrap: Wrap) -> Step:
    """8 steps of denoising with a tiny UNet (16×16)."""
    from tests.models import unet

    model, (images, _), _ = unet.make(0, batch=1, side=16, width=16, d_time=32)
    run, noise = wrap(model.to(device).eval()), images.to(device)

    def step() -> float:
        x = noise
        with torch.no_grad():
            for i in range(8):
                t = torch.full((1,), 800 - 100 * i, device=device)
                x = x - 0.1 * run(x, t) + 0.01 * i
            return float(x[0, 0, 0, 0].item())

    return step


def minilm(device: str, wrap: Wrap) -> Step:
    """A BERT of MiniLM's shape (6 layers, d = 384), random weights, two sentences of 32 tokens."""
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, vocab_size=1000)
    model = BertModel(config, add_pooling_layer=False).eval().to(device)
    run, ids = wrap(model), torch.arange(64).reshape(2, 32).to(device)

    def step() -> float:
        with torch.no_grad():
            return float(run(input_ids=ids).last_hidden_state.mean(dim=1)[0, 0].item())

    return step


WORKLOADS: dict[str, Callable[[str, Wrap], Step]] = {
    "pointwise chain, 1 k": pointwise(1_000),
    "pointwise chain, 1 M": pointwise(1_000_000),
    "gelu, layer norm, softmax": norms,
    "MLP training on the digits": mlp_digits,
    "AdamW step on 60 tensors": adamw,
    "GPT block forward": gpt_forward,
    "GPT block training": gpt_training,
    "ResNet-18 forward": resnet,
    "ViT training": vit_training,
    "LSTM loop": lstm_loop,
    "attention decode, growing cache": decode,
    "generate(), tiny Llama": generate,
    "RL rollout": rollout,
    "diffusion sampling": diffusion,
    "MiniLM inference": minilm,
}
"""By the name in the table. The two sizes of the pointwise chain are one workload of the target."""
