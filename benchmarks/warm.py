"""A process that finds its programs on disk (warm) against one that compiles all of them (cold). Each has the folder for itself.

*own* is the time from a graph to a program that can run: tracing with jax, lowering, and XLA's compile or the load; Dynamo's and
AOTAutograd's tracing are not in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .children import ROOT, measure
from .figure import Figure, at_most, holds
from .generation import generate
from .training import train

OWN_SHARE = 20.0
"""What a warm start may take of the cold one's own time, in percent."""


def figures(quick: bool) -> list[Figure]:
    """Seconds cold and warm."""
    rounds = 1 if quick else 2
    found: list[Figure] = []
    apart, equal = 0.0, []
    for leg in ("strict", "compile"):
        cold, warm = _both(rounds, train, leg, 1)
        found += _pair(f"GPT-2-tiny first step, {leg}", cold, warm, "first_s")
        pairs = [pair for c, w in zip(cold, warm, strict=True) for pair in zip(c["losses"], w["losses"], strict=True)]
        apart = max(apart, *(abs(a - b) / abs(a) for a, b in pairs))
    cold, warm = _both(rounds, generate)
    found += _pair("generate(), 64 tokens, first call", cold, warm, "first")
    equal += [r["equal"] for r in cold + warm]
    cold, warm = _both(rounds, forward)
    found += _pair("GPT-2-small forward (12 layers), first call, compile", cold, warm, "first_s")
    found += _pair("GPT-2-small forward, own part", cold, warm, "own_s")
    share = 100 * min(r["own_s"] for r in warm) / min(r["own_s"] for r in cold)
    found.append(at_most(OWN_SHARE, "GPT-2-small forward, own part, warm over cold", share, "%"))
    apart = max(apart, *(abs(c["sum"] - w["sum"]) / abs(c["sum"]) for c, w in zip(cold, warm, strict=True)))
    # two cold runs with 2 threads differ by 0.06 ppm
    found.append(at_most(1, "losses and logits, largest relative difference of warm to cold", 1e6 * apart, "ppm"))
    found.append(holds("generate() gives the CPU's tokens, cold and warm", all(equal)))
    if not quick:
        found += _pair("the main job (make demo)", *_both(1, demo), "seconds")
    return found


def _both(rounds: int, function: Callable[..., Any], *arguments: Any) -> tuple[list[Any], list[Any]]:
    """A function's results in processes that find an empty folder, and in the processes after them."""
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="tpu-lab-warm-") as folder:
            environment = {"TPU_LAB_CACHE": "1", "TPU_LAB_CACHE_DIR": folder}
            cold.append(measure(function, *arguments, environment=environment))
            warm.append(measure(function, *arguments, environment=environment))
    return cold, warm


def _pair(name: str, cold: list[Any], warm: list[Any], field: str) -> list[Figure]:
    return [Figure(f"{name}, {word}", min(r[field] for r in runs), "s") for word, runs in (("cold", cold), ("warm", warm))]


class _Builds:
    """An observer of the device that adds up what programs take to build, in seconds."""

    blocking = False

    def __init__(self) -> None:
        self.seconds = 0.0

    def compiled(self, program: Any, seconds: float, cache: str) -> None:
        """A program was built or loaded."""
        self.seconds += seconds

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told: None


def forward() -> dict[str, float]:
    """The first call of a compiled GPT-2-small (d=768, n=128, batch 1, vocabulary 50,257): seconds, its own part, and the sum of the logits."""
    import torch

    from tests.models import gpt2
    from tpu_lab.device import events

    model, inputs, _ = gpt2.make(0, batch=1, layers=12, d=768, heads=12, n=128, vocab=50257)
    model, inputs = model.eval().to("tpu"), tuple(i.to("tpu") for i in inputs)
    compiled = torch.compile(model, backend="tpu")
    builds: Any = _Builds()
    with torch.no_grad(), events.observe(builds):
        start = time.perf_counter()
        logits = compiled(*inputs).cpu()
        first = time.perf_counter() - start
    return {"first_s": first, "own_s": builds.seconds, "sum": float(logits.double().sum())}


def demo() -> dict[str, float]:
    """Seconds of `python -m tpu_lab.demo`, its Jupyter kernel and all imports included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tpu_lab.demo"], cwd=ROOT, env=dict(os.environ), stdout=subprocess.DEVNULL, check=True, timeout=600)
    return {"seconds": time.perf_counter() - start}
