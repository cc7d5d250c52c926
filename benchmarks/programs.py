"""What compiled programs hold: memory of the process per cached program, and whether ever-changing shapes stay under the limit."""

from __future__ import annotations

import gc
from typing import Any

from .children import measure
from .figure import Figure, at_most

LIMIT_MB = 32
SHAPES = 10_000
_ROUNDING = ("abs", "ceil", "floor", "neg", "round", "sign", "trunc")
_POWERS = ("erf", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sqrt", "square")
_ANGLES = ("acos", "asin", "atan", "cos", "cosh", "sin", "sinh", "tan", "tanh")
_REDUCING = ("amax", "amin", "mean", "prod", "sum")
_OVER_A_DIMENSION = ("cumsum", "softmax", "logsumexp", "argmax", "sort")


def figures(quick: bool) -> list[Figure]:
    """MB per program, and MB held and grown under a limit of `LIMIT_MB`."""
    per_program = measure(growth, 2 if quick else 6, environment={"TPU_LAB_PROGRAM_CACHE_MB": "4096"})
    many = measure(many_shapes, SHAPES // 10 if quick else SHAPES, environment={"TPU_LAB_PROGRAM_CACHE_MB": str(LIMIT_MB)})
    return [
        at_most(0.35, f"memory per cached program ({per_program['programs']:.0f} programs)", per_program["mb"], "MB"),
        at_most(LIMIT_MB, f"programs held at most, limit {LIMIT_MB} MB, {many['evicted']:.0f} dropped", many["held"], "MB"),
        at_most(LIMIT_MB, f"growth of the process over {many['shapes']:.0f} shapes, {many['compiled']:.0f} compiled", many["grown"], "MB"),
    ]


def resident_mb() -> float:
    """Resident memory of this process in MB of 2**20 bytes."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2**20


def _compile_many(sizes: range) -> None:
    """One small program for each operator, dtype and size; few sizes, as more of them would run on the host."""
    import torch

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for size in sizes:
            x = torch.full((size, size), 0.5, dtype=dtype).to("tpu")
            for name in (*_ROUNDING, *_POWERS, *_ANGLES, *_REDUCING):
                getattr(torch, name)(x)
            for name in _OVER_A_DIMENSION:
                getattr(torch, name)(x, -1)


def growth(sizes: int) -> dict[str, float]:
    """MB of resident memory per program, over the programs of `sizes - 1` sizes (the first size warms up)."""
    from tpu_lab.device import program_cache

    _compile_many(range(3, 4))
    gc.collect()
    before, compiled = resident_mb(), program_cache.counts()[0]
    _compile_many(range(4, 3 + sizes))
    gc.collect()
    programs = program_cache.counts()[0] - compiled
    return {"mb": (resident_mb() - before) / programs, "programs": programs}


def many_shapes(shapes: int) -> dict[str, Any]:
    """Fills the cache beyond its limit, then runs three operators on `shapes` shapes."""
    import torch

    from tpu_lab.device import program_cache

    held = 0
    for size in range(3, 7):
        _compile_many(range(size, size + 1))
        held = max(held, program_cache.counts()[1])
    gc.collect()
    before, compiled = resident_mb(), program_cache.compilations
    for count in range(1, shapes + 1):
        x = torch.ones(count % 100 + 1, count // 100 + 1).to("tpu")
        (x * 2 + x).sum()
        held = max(held, program_cache.counts()[1])
    gc.collect()
    return {
        "held": held / 2**20,
        "grown": resident_mb() - before,
        "evicted": program_cache.counts()[2],
        "compiled": program_cache.compilations - compiled,
        "shapes": shapes,
    }
