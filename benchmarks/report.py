"""The figures as a table on the terminal, in `docs/performance.md` and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path

from .figure import Figure

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- written by make bench-device: begin -->", "<!-- written by make bench-device: end -->"
_HEAD = ("figure", "target", "measured", "torch CPU", "ratio", "met")


def machine() -> str:
    """Processor, cores, memory and the versions that matter."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), model)
    except OSError:
        pass  # no /proc: the name of the architecture has to do
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "jax", "jaxlib"))
    system = f"{platform.system()} {platform.release()}"
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, {system}; Python {platform.python_version()}, {packages}"


def _number(value: float, unit: str) -> str:
    if not unit and value in (0.0, 1.0):
        return "yes" if value else "no"
    return f"{value:.3g} {unit}".strip() if abs(value) < 1000 else f"{value:,.0f} {unit}".strip()


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        figure.target,
        _number(figure.measured, figure.unit),
        "" if figure.cpu is None else _number(figure.cpu, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        {None: "", True: "met", False: "NOT MET"}[figure.met],
    )


def as_text(figures: Sequence[Figure]) -> str:
    """Columns for a terminal."""
    rows = [_HEAD, *(_row(f) for f in figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def as_markdown(figures: Sequence[Figure], command: str, busy: str) -> str:
    """The generated section: what was run, where, when, and the table."""
    warning = ["", f"**The machine was not quiet ({busy}): these figures are not to be trusted.**"] if busy else []
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(f) for f in figures)]
    table = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([f"`{command}` on {date.today().isoformat()}: {machine()}.", *warning, "", *table])


def write_page(section: str, begin: str = BEGIN, end: str = END, path: Path | None = None) -> None:
    """Puts the section between two markers of a page (None: `PAGE`). Raises ValueError if the page has lost them."""
    path = path or PAGE
    page = path.read_text()
    if begin not in page or end not in page:
        raise ValueError(f"{path} has no lines {begin!r} and {end!r} to write between")
    before, after = page.split(begin)[0], page.split(end)[1]
    path.write_text(f"{before}{begin}\n{section}\n{end}{after}")


def write_json(path: Path, figures: Sequence[Figure], command: str, busy: str) -> None:
    """Everything, for a program to read."""
    rows = [{**asdict(f), "ratio": f.ratio} for f in figures]
    path.write_text(
        json.dumps(
            {"command": command, "date": date.today().isoformat(), "machine": machine(), "busy": busy, "figures": rows}, indent=1, ensure_ascii=False
        )
    )
