"""Predicted against measured times, as far as anybody published them: `python -m benchmarks.target_truth [--write]`.

Compiles each program for its target (quick effort); no TPU is asked. `--write` puts the table into docs/targets.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import tpu_lab

from .report import write_page

PAGE = Path(__file__).parent.parent / "docs" / "targets.md"
BEGIN, END = "<!-- written by benchmarks.target_truth: begin -->", "<!-- written by benchmarks.target_truth: end -->"
MATMUL_GUIDE = "[JAX: matrix multiplication in Pallas](https://docs.jax.dev/en/latest/pallas/tpu/matmul.html)"
"""Read 2026-12-01 at commit 1082251c of jax-ml/jax. Wall time of `jnp.matmul` in `timeit`, Python's dispatch included."""


@dataclass(frozen=True)
class Measured:
    """A time somebody measured on a real TPU and published."""

    title: str
    target: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    """Of the arguments, bfloat16."""
    seconds: float
    source: str


MEASURED = tuple(
    Measured(f"bf16 matmul {n} × {n} × {n}", "v5e", torch.matmul, ((n, n), (n, n)), seconds, MATMUL_GUIDE)
    for n, seconds in ((1024, 0.00011943), (4096, 0.00082729), (8192, 0.00604715))
)


def predicted(one: Measured) -> float:
    """The predicted time of its program in seconds."""
    example = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in one.shapes]
    return tpu_lab.compile_for(one.function, *example, target=one.target, effort="quick").time_s


def table() -> str:
    """The comparison as Markdown."""
    rows = ["| program | on | predicted, ms | measured, ms | measured / predicted | measured by |", "|---|---|---|---|---|---|"]
    for one in MEASURED:
        time = predicted(one)
        rows.append(f"| {one.title} | {one.target} | {time * 1e3:.3f} | {one.seconds * 1e3:.3f} | {one.seconds / time:.2f} | {one.source} |")
    return "\n".join(["`python -m benchmarks.target_truth --write`:", "", *rows])


if __name__ == "__main__":
    text = table()
    print(text)
    if "--write" in sys.argv:
        write_page(text, BEGIN, END, PAGE)
