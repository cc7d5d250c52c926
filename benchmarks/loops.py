"""One workload in one mode: until the fused program has taken over, and after that."""

from __future__ import annotations

import gc
import time
from typing import Any

from .timing import keep_pages

TAKE_OVER_SECONDS, TAKE_OVER_STEPS = 2.0, 50
"""The fused program has to be there after whichever is later."""


def run(name: str, mode: str, seconds: float) -> dict[str, float]:
    """Runs a workload in a mode: `steady_ms` of the fastest step after take-over, `early_s` and `early_steps` until then, `peak_mb` of live

    device memory in steady state over what lived before, programs compiled in it (`new`), and a number that the last step read (`value`).
    """
    import torch

    import tpu_lab  # noqa: F401
    from benchmarks.workloads import WORKLOADS

    keep_pages()
    torch.manual_seed(0)
    device = "cpu" if mode in ("cpu", "inductor") else "tpu"
    wrap: Any = {"compile": lambda f: torch.compile(f, backend="tpu"), "inductor": torch.compile}.get(mode, lambda f: f)
    step = WORKLOADS[name](device, wrap)
    step()  # strict's programs are compiled in every mode
    if mode in ("fuse", "ungoverned"):
        torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE  # type: ignore[attr-defined]
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < TAKE_OVER_SECONDS or (steps < TAKE_OVER_STEPS and time.perf_counter() - start < 5 * seconds):
        step()
        steps += 1
    early = time.perf_counter() - start
    gc.collect()
    compiled = _compilations() if device == "tpu" else 0
    before = torch.tpu.memory_allocated() if device == "tpu" else 0  # type: ignore[attr-defined]
    if device == "tpu":
        torch.tpu.reset_peak_memory_stats()  # type: ignore[attr-defined]
    times: list[float] = []
    value: Any = 0.0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 5:
        begun = time.perf_counter()
        value = step()
        times.append(time.perf_counter() - begun)
    peak = (torch.tpu.max_memory_allocated() - before) / 2**20 if device == "tpu" else 0.0  # type: ignore[attr-defined]
    new = _compilations() - compiled if device == "tpu" else 0
    return {"steady_ms": min(times) * 1e3, "early_s": early, "early_steps": steps, "peak_mb": peak, "new": new, "value": float(value)}


def _compilations() -> int:
    import torch

    return int(torch.tpu._get_cache_stats()["num_compilations"])  # type: ignore[attr-defined]
