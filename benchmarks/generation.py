"""Greedy `generate()` on a small Llama: shapes that grow with every token, in a cold process."""

from __future__ import annotations

import copy
import time
from typing import Any

from .children import measure
from .figure import Figure, at_least, holds

TOKENS = 64


def figures(quick: bool) -> list[Figure]:
    """Tokens per second of the first and the second call."""
    runs = [measure(generate) for _ in range(1 if quick else 2)]
    first, second, cpu = (min(r[k] for r in runs) for k in ("first", "second", "cpu"))
    return [
        at_least(10, f"generate(), {TOKENS} tokens, cold process", TOKENS / first, "tokens/s", TOKENS / cpu),
        at_least(50, f"generate(), {TOKENS} tokens, second call", TOKENS / second, "tokens/s", TOKENS / cpu),
        holds("generate() gives the CPU's tokens", all(r["equal"] for r in runs)),
    ]


def generate() -> dict[str, Any]:
    """Seconds of the `first` call (with the device's start and the move of the model), of the `second`, and of the `cpu`'s second."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=128, intermediate_size=344, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, vocab_size=1000)
    model = LlamaForCausalLM(config).eval()
    prompt = torch.randint(config.vocab_size, (1, 8), generator=torch.Generator().manual_seed(0))
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "pad_token_id": 0}
    twin = copy.deepcopy(model)
    start = time.perf_counter()
    model = model.to("tpu")
    tokens = model.generate(prompt.to("tpu"), **settings).cpu()
    first = time.perf_counter() - start
    start = time.perf_counter()
    again = model.generate(prompt.to("tpu"), **settings).cpu()
    second = time.perf_counter() - start
    expected = twin.generate(prompt, **settings)
    start = time.perf_counter()
    twin.generate(prompt, **settings)
    cpu = time.perf_counter() - start
    return {"first": first, "second": second, "cpu": cpu, "equal": bool(torch.equal(tokens, expected) and torch.equal(again, expected))}
