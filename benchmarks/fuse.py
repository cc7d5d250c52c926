"""DEFER_AND_FUSE against strict, `torch.compile`, PyTorch's CPU device and Inductor, on 14 workloads.

    python -m benchmarks.fuse [--only TEXT] [--modes LIST] [--quick] [--json FILE] [--resume FILE [--stored]]

Each mode of each workload runs in a process of its own, so that none inherits another's programs. A full run writes its table
into `docs/performance.md`. It wants a quiet machine. With `--resume` a run that was ended is taken up where it was: what stands
in the file is not measured again, unless other processes disturbed it.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from . import report
from .children import measure, shares
from .figure import Figure, at_least, at_most
from .loops import run
from .timing import BUSY_SHARE, busy_machine

MODES = ("strict", "fuse", "ungoverned", "compile", "cpu", "inductor")
BEGIN, END = "<!-- written by make bench-fuse: begin -->", "<!-- written by make bench-fuse: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and reports; returns 0 if every target was met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuse", description="Measures DEFER_AND_FUSE on 14 workloads.")
    parser.add_argument("--only", metavar="TEXT", help="workloads whose name contains this; docs/performance.md stays as it is")
    parser.add_argument(
        "--modes", default=",".join(MODES), metavar="LIST", help=f"measure these only, strict and fuse among them ({', '.join(MODES)})"
    )
    parser.add_argument("--quick", action="store_true", help="strict and fuse only, short; docs/performance.md stays as it is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="keep each measurement in this file, and measure only what is not in it")
    parser.add_argument("--stored", action="store_true", help="measure nothing: report what the file of --resume holds")
    options = parser.parse_args(arguments)
    busy = busy_machine()
    if busy:
        print(f"The machine is not quiet ({busy}): figures may be off.", file=sys.stderr)
    from .workloads import WORKLOADS

    names = [n for n in WORKLOADS if (options.only or "") in n]
    compiler = bool(shutil.which("c++") or shutil.which("g++"))
    modes = [m for m in MODES if m in (("strict", "fuse") if options.quick else options.modes.split(",")) and (compiler or m != "inductor")]
    kept = _read(options.resume)
    for name, mode in [] if options.stored else _to_measure(kept, names, modes):
        result = _measured(name, mode, 1.0 if options.quick else 2.0)
        kept.setdefault(name, {})[mode] = _better(kept.get(name, {}).get(mode), result)
        if options.resume:
            options.resume.write_text(json.dumps(kept, indent=1))
    found: Found = {name: {mode: kept[name].get(mode) for mode in modes} for name in names if name in kept}
    figures = targets(found)
    print(_text(found, modes))
    print(report.as_text(figures))
    busy = ""  # what each measurement saw counts, not the load when the run began
    others = [r["others"] for results in found.values() for r in results.values() if r and r["others"] > BUSY_SHARE]
    if others:
        busy = f"other processes used up to {max(others):.0%} of the processors during {len(others)} measurements"
    command = _command(options, modes)
    if options.json:
        report.write_json(options.json, figures, command, busy)
    if not options.only and not options.quick:
        head, *rest = report.as_markdown(figures, command, busy).split("\n\n")
        report.write_page("\n\n".join([head, _markdown(found, modes), *rest]), BEGIN, END)
    return 1 if any(f.met is False for f in figures) else 0


def _command(options: argparse.Namespace, modes: Sequence[str]) -> str:
    """What prints the same table."""
    words = ["python -m benchmarks.fuse"]
    words += ["--quick"] if options.quick else []
    words += [f"--modes {','.join(modes)}"] if len(modes) < len(MODES) else []
    words += ["--resume FILE"] if options.resume else []
    words += [f"--only {options.only!r}"] if options.only else []
    return " ".join(words)


Found = dict[str, dict[str, dict[str, float] | None]]


def _read(file: Path | None) -> Found:
    """What an earlier run measured."""
    found: Found = json.loads(file.read_text()) if file and file.exists() else {}
    return found


def _to_measure(kept: Found, names: Sequence[str], modes: Sequence[str]) -> list[tuple[str, str]]:
    """Workloads and modes: first what was never measured, then what other processes disturbed."""
    pairs = [(name, mode) for name in names for mode in modes]
    missing = [(name, mode) for name, mode in pairs if not kept.get(name, {}).get(mode)]
    return missing + [(n, m) for n, m in pairs if ((kept.get(n, {}).get(m)) or {"others": 0.0})["others"] > BUSY_SHARE]


def _better(before: dict[str, float] | None, now: dict[str, float] | None) -> dict[str, float] | None:
    """Of two measurements the less disturbed one."""
    return before if before and now and before["others"] < now["others"] else now


def _measured(name: str, mode: str, seconds: float) -> dict[str, float] | None:
    """What `run` found, and the share of the processors that `others` used; None if this mode cannot run the workload."""
    environment = {"TPU_LAB_FUSE_GOVERNOR": "0"} if mode == "ungoverned" else {}
    try:
        result: dict[str, float] = measure(run, name, mode, seconds, environment=environment)
        result["others"] = shares[-1]
    except RuntimeError as error:
        print(f"{name}, {mode}: {str(error).splitlines()[-1][:200]}", file=sys.stderr)
        return None
    print(f"{name}, {mode}: {result['steady_ms']:.3f} ms", file=sys.stderr)
    return result


def _ratios(found: Found, top: str, bottom: str, key: str) -> dict[str, float]:
    """`key` of one mode over that of another, where both ran."""
    pairs = {name: (modes.get(top), modes.get(bottom)) for name, modes in found.items()}
    return {name: a[key] / b[key] for name, (a, b) in pairs.items() if a and b and a[key] > 0 and b[key] > 0}


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def targets(found: Found) -> list[Figure]:
    """The figures that have a target."""
    speed = _ratios(found, "strict", "fuse", "steady_ms")
    early = {name: 1 / r for name, r in _early(found).items()}
    memory = _ratios(found, "fuse", "strict", "peak_mb")
    gain = _ratios(found, "ungoverned", "fuse", "steady_ms")
    new = sum((modes.get("fuse") or {}).get("new", 0) for modes in found.values())
    figures = [
        at_least(1.5, "speed-up of fuse over strict, geometric mean", _mean(list(speed.values())), "×"),
        at_least(0.95, "speed-up of the slowest workload", min(speed.values()), "×"),
        at_least(min(8, len(speed)), "with a speed-up of at least 1.5", sum(s >= 1.5 for s in speed.values()), "workloads"),
        at_least(0.85, "speed against strict until take-over, slowest workload", min(early.values()), "×"),
        at_most(0.75, "peak memory over strict, geometric mean", _mean(list(memory.values())), "×"),
        at_most(0, "compiled in steady state", new, "programs"),
    ]
    return figures + ([Figure("what the governor gains, geometric mean", _mean(list(gain.values())), "×")] if gain else [])


def _early(found: Found) -> dict[str, float]:
    """Seconds per step until take-over, fuse over strict."""
    rates = {name: {m: r["early_s"] / r["early_steps"] for m, r in modes.items() if r} for name, modes in found.items()}
    return {name: r["fuse"] / r["strict"] for name, r in rates.items() if "fuse" in r and "strict" in r}


def _rows(found: Found, modes: Sequence[str]) -> list[list[str]]:
    speed, early = _ratios(found, "strict", "fuse", "steady_ms"), _early(found)
    memory = _ratios(found, "fuse", "strict", "peak_mb")
    rows = [["workload", *(f"{m}, ms" for m in modes), "fuse/strict speed", "until take-over", "peak/strict"]]
    for name, results in found.items():
        times = [f"{r['steady_ms']:.3g}" if (r := results.get(m)) else "-" for m in modes]
        shown = [f"{speed[name]:.2f}" if name in speed else "-", f"{1 / early[name]:.2f}" if name in early else "-"]
        rows.append([name, *times, *shown, f"{memory[name]:.2f}" if name in memory else "-"])
    return rows


def _text(found: Found, modes: Sequence[str]) -> str:
    rows = _rows(found, modes)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _markdown(found: Found, modes: Sequence[str]) -> str:
    head, *rows = _rows(found, modes)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    raise SystemExit(main())
