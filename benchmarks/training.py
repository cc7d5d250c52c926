"""One training step of a tiny GPT-2 (4 layers, d=256, n=128, batch 4, vocabulary 4,096, AdamW): strict, compiled, and torch on the CPU."""

from __future__ import annotations

import shutil
import time
from typing import Any

from .children import measure
from .figure import Figure, at_most, times_cpu
from .timing import keep_pages

STEPS = 40
ROUNDS = 2
"""Each leg runs so often, in turns: a busy minute then hits all of them or none."""
CHECKED = 5


def figures(quick: bool) -> list[Figure]:
    """ms per step, each leg in processes of its own with the same threads."""
    legs = ["cpu", "strict", "compile"] + (["inductor"] if shutil.which("c++") or shutil.which("g++") else [])
    runs: dict[str, list[Any]] = {leg: [] for leg in legs}
    for _ in range(1 if quick else ROUNDS):
        for leg in legs:
            runs[leg].append(measure(train, leg, 5 if quick else STEPS))
    best = {leg: min(r["step_ms"] for r in found) for leg, found in runs.items()}
    first = {leg: min(r["first_s"] for r in found) for leg, found in runs.items()}
    expected = runs["cpu"][0]["losses"]
    apart = max(abs(a - b) / abs(b) for leg in ("strict", "compile") for a, b in zip(runs[leg][0]["losses"], expected, strict=True))
    found = [
        times_cpu(1.6, "GPT-2-tiny training step, strict", best["strict"], best["cpu"], "ms"),
        times_cpu(1.0, "GPT-2-tiny training step, compile", best["compile"], best["cpu"], "ms"),
        *([Figure("GPT-2-tiny training step, Inductor on the CPU", best["inductor"], "ms", best["cpu"])] if "inductor" in legs else []),
        *(Figure(f"GPT-2-tiny first step, {leg}", first[leg], "s", first["cpu"]) for leg in legs[1:]),
        at_most(1e-3, f"losses of {CHECKED} steps, largest relative difference to the CPU", apart, ""),
    ]
    return found


def train(leg: str, steps: int) -> dict[str, Any]:
    """Seconds of the first step, ms of the fastest of `steps` further ones, and the losses of the first `CHECKED`."""
    import torch

    from tests.models import gpt2

    keep_pages()
    model, inputs, loss = gpt2.make(0, batch=4, layers=4, d=256, heads=8, n=128, vocab=4096)
    device = "tpu" if leg in ("strict", "compile") else "cpu"
    model, inputs = model.to(device), tuple(i.to(device) for i in inputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run: Any = {"compile": lambda: torch.compile(model, backend="tpu"), "inductor": lambda: torch.compile(model)}.get(leg, lambda: model)()

    def step() -> float:
        optimizer.zero_grad()
        value = loss(run(*inputs))
        value.backward()
        optimizer.step()
        return float(value.item())

    times, losses = [], []
    for _ in range(max(steps, CHECKED) + 1):
        start = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - start)
    return {"first_s": times[0], "step_ms": min(times[1:]) * 1e3, "losses": losses[:CHECKED]}
