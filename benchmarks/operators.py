"""The 60 most used operators on the device against PyTorch's CPU device, at about a million elements.

    python -m benchmarks.operators [--only LIST] [--quick] [--results FILE]

Both devices are measured by turns in one process, a few operators at a time. A run keeps its figures in the results file,
so that a quiet machine is needed for a few operators at a time only; once it has all of them `docs/operators-speed.md` is written.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import report
from .children import ROOT, disturbed, measure
from .operator_causes import cause_of
from .operator_turns import measured
from .timing import BUSY_SHARE, busy_machine

PAGE = ROOT / "docs" / "operators-speed.md"
RESULTS = ROOT / "build" / "operators-speed.json"
LIMIT = 1.5
TOGETHER = 8
"""Operators measured in one process."""


def page(figures: dict[str, list[float]]) -> str:
    """The page, from figures of all operators: milliseconds on the device and on the CPU, and whether other processes disturbed them (1)."""
    from .operator_calls import BESIDES, MOST_USED, model_types, most_used

    types = model_types()
    ratios = {name: ours / theirs for name, (ours, theirs, _) in figures.items()}
    over = [name for name in most_used() if ratios[name] > LIMIT]
    lines = [
        "# Speed of single operators",
        "",
        f"Written by `make bench-operators` on {time.strftime('%Y-%m-%d')}; do not edit. The {MOST_USED} operators that most model types call",
        "(`tpu_lab/coverage/data/ops_used.json`), then some others, on the device `tpu` and on PyTorch's CPU device: float32, about a million",
        "elements (1024 x 1024; the operands stand in `benchmarks/operator_calls.py`), both by turns in one process, each call",
        f"waited for. A time is the mean of the fastest block of calls. {report.machine()}.",
        "",
        f"{MOST_USED - len(over)} of {MOST_USED} take at most {LIMIT} times what the CPU takes. The others, with the cause, come first. *: other",
        f"processes used more than {BUSY_SHARE:.0%} of the processors meanwhile.",
        "",
        "| operator | model types | device, ms | CPU, ms | ratio | cause |",
        "|---|---|---|---|---|---|",
    ]
    shown = sorted(over, key=lambda name: -ratios[name]) + [n for n in most_used() if n not in over] + list(BESIDES)
    for name in shown:
        ours, theirs, unquiet = figures[name]
        cause = cause_of(name, theirs) if ratios[name] > LIMIT else ""
        star = "*" if unquiet else ""
        lines.append(f"| `{name}` | {types.get(name.partition(' (')[0], 0)} | {ours:.3g} | {theirs:.3g} | {ratios[name]:.2f}{star} | {cause} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports. Returns 1 if an operator of the most used is over the limit for no known cause, else 0."""
    from .operator_calls import BESIDES, most_used

    parser = argparse.ArgumentParser(prog="make bench-operators", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="LIST", help="patterns of operators, by commas; `missing`: those the results lack")
    parser.add_argument("--quick", action="store_true", help="one short block each: shows that everything runs, keeps nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where figures are kept")
    options = parser.parse_args(arguments)
    busy = busy_machine()
    if busy:
        print(f"The machine is not quiet ({busy}): figures will be off.", file=sys.stderr)
    figures: dict[str, list[float]] = json.loads(options.results.read_text()) if options.results.exists() and not options.quick else {}
    everything = [*most_used(), *BESIDES]
    patterns = options.only.split(",")
    wanted = [n for n in everything if any(fnmatch.fnmatchcase(n, p) for p in patterns) or ("missing" in patterns and n not in figures)]
    for i in range(0, len(wanted), TOGETHER):
        before = len(disturbed)
        found = measure(measured, wanted[i : i + TOGETHER], options.quick)
        for name, (ours, theirs) in found.items():
            print(f"{name:54s} {ours:9.4f} ms  {theirs:9.4f} ms  {ours / theirs:6.2f}", flush=True)
        if not options.quick:
            figures |= {name: [*both, float(len(disturbed) > before)] for name, both in found.items()}
            options.results.parent.mkdir(parents=True, exist_ok=True)
            options.results.write_text(json.dumps(figures, indent=1))
    if options.quick or any(name not in figures for name in everything):
        return 0
    PAGE.write_text(page(figures))
    return int(any(ours > LIMIT * theirs and not cause_of(name, theirs) for name, (ours, theirs, _) in figures.items()))


if __name__ == "__main__":
    raise SystemExit(main())
