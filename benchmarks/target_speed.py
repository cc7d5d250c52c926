"""How long a GPT-2-size training step takes to be answered for a TPU generation: `python -m benchmarks.target_speed [v6e] [--write]`.

Twelve layers of width 768, 50,257 words, batches of 8 × 512, AdamW: forward, backward and optimizer as one program. Its tensors are on
`meta`, nothing runs. `--write` puts the table into docs/targets.md; `--full SECONDS` also compiles in full, for at most so long.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch

from . import report
from .children import disturbed, measure
from .figure import Figure, at_most
from .targets import Language, training

PAGE = Path(__file__).parent.parent / "docs" / "targets.md"
BEGIN, END = "<!-- written by benchmarks.target_speed: begin -->", "<!-- written by benchmarks.target_speed: end -->"
LAYERS, WIDTH, HEADS, WORDS, BATCH, LENGTH = 12, 768, 12, 50_257, 8, 512


def answer(target: str, full_s: float) -> dict[str, float]:
    """The pieces of a first answer, in seconds and MB, and the program's size. Runs in a process of its own, with an empty cache."""
    from tpu_lab.analysis.not_fused import with_not_fused
    from tpu_lab.compiler.target import lower
    from tpu_lab.record.targets import target_named
    from tpu_lab.xla.compile_service import compile_job
    from tpu_lab.xla.extract import with_source

    os.environ["TPU_LAB_CACHE_DIR"] = tempfile.mkdtemp(prefix="tpu-lab-bench-")
    found = target_named(target)
    lower(lambda x: x.sin(), (torch.empty(2),), {}, found, {})  # what the first trace imports
    with torch.device("meta"):
        model = Language(WIDTH, LAYERS, WORDS, HEADS)
        words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    step, example = training(model, torch.optim.AdamW, words, words)
    before = _peak()
    times = [time.perf_counter()]
    lowered = lower(step, example, {}, found, {})
    times.append(time.perf_counter())
    made = compile_job(lowered.job(found, effort="quick"))
    times.append(time.perf_counter())
    program = with_not_fused(with_source(made, lowered.traced))
    times.append(time.perf_counter())
    return {
        "trace": times[1] - times[0],
        "compiler": program.compile_s,
        "stablehlo": times[3] - times[1],
        "extract": times[3] - times[1] - program.compile_s,
        "not_fused": times[3] - times[2],
        "cell": times[3] - times[0],
        "memory": (_peak() - before) / 1e6,
        "ops": len(program.ops),
        "kernels": len(program.kernels),
        "pairs": len(program.not_fused),
        "full": _full(lowered.job(found, effort="full"), full_s) if full_s else 0.0,
    }


def _full(job: Any, limit: float) -> float:
    """Seconds of a full compile; negative if it was stopped then."""
    from tpu_lab.errors import TargetCompilerError
    from tpu_lab.xla.compile_service import cancel_compiles, compile_job

    timer = threading.Timer(limit, cancel_compiles)
    timer.start()
    start = time.perf_counter()
    try:
        compile_job(job)
    except TargetCompilerError:
        return start - time.perf_counter()
    finally:
        timer.cancel()
    return time.perf_counter() - start


def _peak() -> int:
    """The most memory this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def figures(found: dict[str, float]) -> list[Figure]:
    """The figures of one answer."""
    rows = [
        at_most(30, "cell to first answer", found["cell"], "s"),
        Figure("tracing, to StableHLO", found["trace"], "s"),
        at_most(10, "StableHLO to first answer (a new process for the compiler)", found["stablehlo"], "s"),
        Figure("the compiler, up to code generation", found["compiler"], "s"),
        at_most(3, "start of the process, reading, transfer, why not fused", found["extract"], "s"),
        Figure("why not fused", found["not_fused"], "s"),
        at_most(300, "memory of the parent, more than before", found["memory"], "MB"),
        Figure("ops", found["ops"], ""),
        Figure("kernels", found["kernels"], ""),
        Figure("pairs that were not fused", found["pairs"], ""),
    ]
    if found["full"] < 0:
        return [*rows, Figure("full compile, stopped unfinished after", -found["full"], "s", None, "≤ 150 s", False)]
    return [*rows, at_most(150, "full compile", found["full"], "s")] if found["full"] else rows


def main() -> None:
    """Measures in a child process and prints the table."""
    from . import target_speed  # the module by its name, which the child knows it by

    parser = argparse.ArgumentParser(prog="python -m benchmarks.target_speed")
    parser.add_argument("target", nargs="?", default="v6e")
    parser.add_argument("--full", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    rows = figures(measure(target_speed.answer, chosen.target, chosen.full))
    print(report.as_text(rows))
    if chosen.write:
        full = f" --full {chosen.full:g}" if chosen.full else ""
        command = f"python -m benchmarks.target_speed {chosen.target}{full} --write"
        report.write_page(report.as_markdown(rows, command, "; ".join(disturbed)), BEGIN, END, PAGE)


if __name__ == "__main__":
    main()
