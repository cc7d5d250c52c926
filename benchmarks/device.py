"""The figures of the device against their targets, as ratios within one run.

    python -m benchmarks.device [--only NAME] [--quick] [--json FILE]

A full run writes the table into `docs/performance.md`. It wants a quiet machine, and Linux, whose /proc it reads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import dispatch, generation, imports, memory, programs, report, training, warm
from .children import disturbed
from .figure import Figure
from .timing import busy_machine

SECTIONS: dict[str, Callable[[bool], list[Figure]]] = {
    "dispatch": dispatch.figures,
    "generate": generation.figures,
    "programs": programs.figures,
    "training": training.figures,
    "warm": warm.figures,
    "imports": imports.figures,
    "memory": memory.figures,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports; returns 0 if every target was met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description="Measures the figures of the device tpu against their targets.")
    parser.add_argument(
        "--only", choices=SECTIONS, action="append", help="measure this part only (may be given again); docs/performance.md stays as it is"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions: shows that everything runs, not how fast; docs/performance.md stays as it is"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    options = parser.parse_args(arguments)
    busy = busy_machine()
    if busy:
        print(f"The machine is not quiet ({busy}): figures will be off.", file=sys.stderr)
    found: list[Figure] = []
    for name in options.only or SECTIONS:
        start = time.perf_counter()
        found += SECTIONS[name](options.quick)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(report.as_text(found))
    if disturbed:
        busy = busy or f"{disturbed[0]}; {len(disturbed)} measurements were disturbed"
    command = " ".join(["python -m benchmarks.device", *(f"--only {n}" for n in options.only or ()), *(["--quick"] if options.quick else [])])
    if options.json:
        report.write_json(options.json, found, command, busy)
    if not options.only and not options.quick:
        report.write_page(report.as_markdown(found, command, busy))
    return 1 if any(f.met is False for f in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
