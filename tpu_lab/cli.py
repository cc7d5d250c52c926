"""The command line: `tpu-lab report RUN PAGE` makes a page of a saved run. Needs neither torch nor jax."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import TpuLabError


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, or 1 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="tpu-lab", description="Views of saved runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="one page of a saved run or program, which opens from disk, offline")
    report.add_argument("run", type=Path, help="a run saved with --save, or a program's JSON")
    report.add_argument("page", type=Path, help="the HTML file to write")
    found = parser.parse_args(words)
    try:
        found.page.write_text(report_page(found.run), encoding="utf-8")
    except (TpuLabError, OSError) as error:
        print(f"tpu-lab: {error}", file=sys.stderr)
        return 1
    print(f"{found.page}: {found.page.stat().st_size / 1e6:.1f} MB")
    return 0


def report_page(path: Path) -> str:
    """The page of a saved run, or of a program's JSON. Raises OSError, RecordError."""
    from .record.program import Program
    from .record.run import Run
    from .views.graph import FusionGraph
    from .views.page import run_page

    if path.suffix.lower() == ".json" and path.read_bytes()[:1] == b"{":
        return FusionGraph((Program.from_json(path.read_text(encoding="utf-8")),)).to_html()
    return run_page(Run.load(path))
