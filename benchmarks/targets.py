"""How much of a target's program leads back to the source, and how long it takes: `python -m benchmarks.targets [v5e v6e tpu7x cpu]`.

Training steps of small models (forward, backward, optimizer in one program). It compiles with the real TPU compiler; nothing runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tpu_lab.compiler.target import lower
from tpu_lab.record.targets import target_named

Step = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


class Block(nn.Module):
    """A pre-norm transformer block with dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width))
        return x + F.dropout(self.down(F.gelu(self.up(self.second(x)))), 0.1, self.training)


class Language(nn.Module):
    """A small decoder: embedding, blocks, head."""

    def __init__(self, width: int = 256, blocks: int = 2, words: int = 1000, heads: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.head = nn.Linear(width, words)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.table(ids)))


class Recurrent(nn.Module):
    """An LSTM over a sequence, then a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(x)[0][:, -1])


def training(model: nn.Module, optimizer: type[torch.optim.Optimizer], *example: torch.Tensor) -> Step:
    """One step of cross entropy on a model."""
    updates = optimizer(model.parameters(), lr=1e-3)  # type: ignore[call-arg]

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        loss.backward()
        updates.step()
        updates.zero_grad()
        return loss

    return step, example


def steps() -> dict[str, Step]:
    """The programs by name."""
    image = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.GELU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )
    image(torch.zeros(1, 3, 32, 32))
    mlp = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 10))
    classes = torch.zeros(32, dtype=torch.long)
    words = torch.zeros(4, 128, dtype=torch.long)
    return {
        "mlp, SGD": training(mlp, torch.optim.SGD, torch.zeros(32, 256), classes),
        "mlp, AdamW": training(mlp, torch.optim.AdamW, torch.zeros(32, 256), classes),
        "conv and batch norm, SGD": training(image, torch.optim.SGD, torch.zeros(32, 3, 32, 32), classes),
        "lstm, SGD": training(Recurrent(), torch.optim.SGD, torch.zeros(32, 16, 64), classes),
        "decoder, SGD": training(Language(), torch.optim.SGD, words, words),
        "decoder in bfloat16, AdamW": training(Language().bfloat16(), torch.optim.AdamW, words, words),
    }


def measure(step: Step, name: str) -> dict[str, Any]:
    """The figures of one program on one target."""
    start = time.perf_counter()
    lowered = lower(step[0], step[1], {}, target_named(name), {})
    traced = time.perf_counter()
    program = lowered.compile(target_named(name), effort="quick")
    kernels = program.kernels
    return {
        "ops": len(program.ops),
        "kernels": len(kernels),
        "with a line": round(sum(bool(k.lines) for k in kernels) / len(kernels), 4),
        "inherited": sum(k.inherited for k in kernels),
        "without": dict(Counter(k.role for k in kernels if not k.lines)),
        "backward with its forward op": round(_linked(program), 4),
        "ops in no kernel": dict(Counter(program.op(op).op for op in program.lost_ops).most_common(6)),
        "trace_s": round(traced - start, 1),
        "answer_s": round(time.perf_counter() - traced, 1),
    }


def _linked(program: Any) -> float:
    backward = [op for op in program.ops if op.phase == "backward"]
    return sum(bool(op.forward) for op in backward) / len(backward) if backward else 1.0


def main(names: list[str]) -> None:
    """Prints one JSON line a program and target, and at the end the share of kernels with a line on each target."""
    totals: dict[str, Counter[str]] = {}
    for title, step in steps().items():
        for name in names:
            found = measure(step, name)
            total = totals.setdefault(name, Counter())
            total.update(kernels=found["kernels"], lined=round(found["with a line"] * found["kernels"]))
            print(json.dumps({"program": title, "target": name, **found}), flush=True)
    print(json.dumps({name: round(total["lined"] / total["kernels"], 4) for name, total in totals.items()}))


if __name__ == "__main__":
    main(sys.argv[1:] or ["v5e", "v6e", "tpu7x", "cpu"])
