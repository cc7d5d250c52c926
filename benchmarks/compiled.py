"""`torch.compile(backend="tpu")` against PyTorch's CPU device, op by op and through Inductor, on the workloads of `bench-fuse`.

    python -m benchmarks.compiled [--only TEXT] [--keep FILE] [--seconds N]

The three modes of a workload are measured one after the other, each in a process of its own. With `--keep` results are added to a file
and a workload that is in it is not measured again, so that a run can be made in pieces: `--seconds` begins no further workload after
that time. When every workload is there, the table is written into `docs/performance.md`. It wants a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import report
from .children import disturbed, measure
from .figure import Figure, at_most
from .loops import run
from .timing import busy_machine

MODES = ("compile", "cpu", "inductor")
SECONDS = 1.0
"""Of measuring in each mode, after what `loops` runs before it."""
BEGIN, END = "<!-- written by make bench-compile: begin -->", "<!-- written by make bench-compile: end -->"
CHANGING = ("LSTM loop", "attention decode, growing cache", "generate(), tiny Llama", "RL rollout")
"""Workloads whose shapes change, or that read a value in every turn: no goal on the mean, only a limit each."""
Found = dict[str, dict[str, dict[str, float]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports; returns 0 if every target was met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description="Measures torch.compile(backend='tpu').")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this; docs/performance.md stays as it is")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the results to this file, and measure what is not in it")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="N", help="begin no further workload after so many seconds")
    options = parser.parse_args(arguments)
    busy = busy_machine()
    from .workloads import WORKLOADS

    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    found: Found = {name: kept[name] for name in WORKLOADS if name in kept}
    begun = time.monotonic()
    for name in (n for n in WORKLOADS if options.only in n and n not in found):
        if time.monotonic() - begun > options.seconds:
            break
        found[name] = _measured(name)
        if options.keep:
            options.keep.write_text(json.dumps(found, indent=1))
    print(_text(found))
    figures = targets(found)
    print(report.as_text(figures))
    if len(found) == len(WORKLOADS):
        busy = busy or (f"{disturbed[0]}; {len(disturbed)} measurements were disturbed" if disturbed else "")
        head, *rest = report.as_markdown(figures, "make bench-compile", busy).split("\n\n")
        report.write_page("\n\n".join([head, _markdown(found), *rest]), BEGIN, END)
    return 1 if any(f.met is False for f in figures) else 0


def _measured(name: str) -> dict[str, dict[str, float]]:
    """What `loops.run` found in each mode that can run the workload."""
    found: dict[str, dict[str, float]] = {}
    for mode in MODES:
        if mode == "inductor" and not (shutil.which("c++") or shutil.which("g++")):
            continue
        try:
            found[mode] = measure(run, name, mode, SECONDS)
            print(f"{name}, {mode}: {found[mode]['steady_ms']:.3f} ms", file=sys.stderr)
        except RuntimeError as error:
            print(f"{name}, {mode}: {str(error).splitlines()[-1][:200]}", file=sys.stderr)
    return found


def _ratio(modes: Mapping[str, Mapping[str, float]], other: str) -> float | None:
    if "compile" not in modes or other not in modes:
        return None
    return modes["compile"]["steady_ms"] / modes[other]["steady_ms"]


def targets(found: Found) -> list[Figure]:
    """The figures that have a target."""
    figures = []
    for other, limit, name in (("cpu", 0.8, "torch CPU"), ("inductor", 1.0, "Inductor")):
        known = [r for workload, modes in found.items() if workload not in CHANGING and (r := _ratio(modes, other)) is not None]
        if known:
            mean = math.exp(sum(map(math.log, known)) / len(known))
            figures.append(at_most(limit, f"time over {name}, geometric mean of {len(known)} workloads of fixed shapes", mean, "×"))
    changing = [r for workload, modes in found.items() if workload in CHANGING and (r := _ratio(modes, "cpu")) is not None]
    if changing:
        figures.append(at_most(2.0, f"time over torch CPU, slowest of {len(changing)} workloads that change or read", max(changing), "×"))
    return figures


def _rows(found: Found) -> list[list[str]]:
    rows = [["workload", *(f"{mode}, ms" for mode in MODES), "over CPU", "over Inductor"]]
    for name, modes in found.items():
        times = [f"{modes[mode]['steady_ms']:.3g}" if mode in modes else "-" for mode in MODES]
        ratios = [_ratio(modes, "cpu"), _ratio(modes, "inductor")]
        rows.append([name, *times, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)])
    return rows


def _text(found: Found) -> str:
    rows = _rows(found)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _markdown(found: Found) -> str:
    head, *rows = _rows(found)
    lines: list[Any] = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


if __name__ == "__main__":
    raise SystemExit(main())
