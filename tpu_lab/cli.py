"""The command line: `tpu-lab report` makes a page of a saved run, `tpu-lab compile` compiles for TPU generations, `tpu-lab targets` lists them,
`tpu-lab cache` tells and clears what is kept on disk, `tpu-lab coverage` writes the operator table.

All but `compile` need neither torch nor jax.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import OptionError, TpuLabError, one_of


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, or 1 with one line on standard error."""
    found = _parser().parse_args(words)
    try:
        print(found.run(found))
    except (TpuLabError, OSError) as error:
        print(f"tpu-lab: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tpu-lab", description="Views of saved runs; what TPU generations make of a program.")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="one page of a saved run or program, which opens from disk, offline")
    report.add_argument("saved", type=Path, help="a run saved with --save, or a program's JSON")
    report.add_argument("page", type=Path, help="the HTML file to write")
    report.set_defaults(run=_report)
    targets = commands.add_parser("targets", help="the TPU generations, and whether their compiler is installed")
    targets.set_defaults(run=_targets)
    cache = commands.add_parser("cache", help="the programs kept on disk: where, how many, how large; or remove them all")
    cache.add_argument("action", choices=("info", "clear"))
    cache.set_defaults(run=_cache)
    coverage = commands.add_parser("coverage", help="which ATen overloads run here and on TorchTPU, per dtype and executor")
    coverage.add_argument("words", nargs="*", help="parts of their names (all overloads)")
    coverage.add_argument("--here", default="", help="only those that run so here: native, decomposed, fallback, missing")
    coverage.add_argument("--torch-tpu", default="", help="only those that run so on TorchTPU 0.2.0: own, composite, missing")
    coverage.add_argument("--save", type=Path, metavar="FILE", help="write the table: .html (the explorer, from disk), .csv or .json")
    coverage.set_defaults(run=_coverage)
    compile = commands.add_parser("compile", help="compile a module or function of a file for TPU generations, without a TPU; nothing of it runs")
    compile.add_argument("function", help="FILE:NAME of a module or function")
    compile.add_argument("--example", default="example", metavar="NAME", help="name in that file of the tuple of its arguments (example)")
    compile.add_argument("--target", action="append", default=[], metavar="v6e[,v5e]|all", help="the generations (all)")
    compile.add_argument("--mode", choices=("compile", "eager", "both"), default="both", help="fused, op by op, or both (both)")
    compile.add_argument("--effort", choices=("quick", "full"), default="quick", help="full: with the estimates of code generation (quick)")
    compile.add_argument("--json", type=Path, metavar="FOLDER", help="also write each program there, as <target>-<mode>.json")
    compile.set_defaults(run=_compile)
    return parser


def _report(found: argparse.Namespace) -> str:
    found.page.write_text(report_page(found.saved), encoding="utf-8")
    return f"{found.page}: {found.page.stat().st_size / 1e6:.1f} MB"


def report_page(path: Path) -> str:
    """The page of a saved run, or of a program's JSON. Raises OSError, RecordError."""
    from .record.program import Program
    from .record.run import Run
    from .views.graph import FusionGraph
    from .views.page import run_page

    if path.suffix.lower() == ".json" and path.read_bytes()[:1] == b"{":
        return FusionGraph((Program.from_json(path.read_text(encoding="utf-8")),)).to_html()
    return run_page(Run.load(path))


def _targets(found: argparse.Namespace) -> str:
    from .views.targets import target_lines
    from .xla.target_compile import installed, version_note

    version = installed()
    state = version_note() or f"libtpu {version} is installed" if version else "libtpu is not installed: pip install libtpu==0.0.42.1 (Linux x86-64)"
    return f"{target_lines()}\n{state}"


def _cache(found: argparse.Namespace) -> str:
    from .xla import cache_folder, executable_store, program_store

    stores = (
        (executable_store.NAME, executable_store.LIMIT_BYTES, "compiled programs of this machine"),
        (program_store.NAME, program_store.LIMIT_BYTES, "what was read of programs compiled for targets"),
    )
    if found.action == "clear":
        removed = [cache_folder.clear(name) for name, *_ in stores]
        return f"{sum(n for n, _ in removed)} files removed, {sum(b for _, b in removed) / 1e6:.1f} MB"
    lines = [f"{cache_folder.base()}{' (off: TPU_LAB_CACHE=0)' if cache_folder.is_off() else ''}"]
    for name, limit, what in stores:
        count, nbytes = cache_folder.size(name)
        lines.append(f"{name:<12} {count:>6} files {nbytes / 1e6:>8.1f} MB of at most {limit / 2**30:g} GiB: {what}")
    return "\n".join([*lines, *filter(None, [executable_store.refusal()])])


def _coverage(found: argparse.Namespace) -> str:
    from .coverage.table import load

    table = load().filter(" ".join(found.words), here=found.here, torch_tpu=found.torch_tpu)
    if found.save is None:
        return table.summary()
    table.save(found.save)
    return f"{found.save}: {len(table):,} overloads, {found.save.stat().st_size / 1e6:.1f} MB"


def _compile(found: argparse.Namespace) -> str:
    from .notebook.targets import ALL, compare_targets

    function, example = load_function(found.function, found.example)
    modes = ("compile", "eager") if found.mode == "both" else (found.mode,)
    table = compare_targets(
        function, *example, targets=found.target or [ALL], modes=modes, effort=found.effort, progress=_same_line if sys.stderr.isatty() else None
    )
    if found.json is not None:
        found.json.mkdir(parents=True, exist_ok=True)
        for program in table.programs:
            name = f"{program.target.label.replace(':', '-')}-{program.mode}.json"
            (found.json / name).write_text(program.to_json(), encoding="utf-8")
    return table.summary()


def _same_line(text: str) -> None:
    """Writes a line on the terminal in place of the one before."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def load_function(words: str, example: str) -> tuple[Any, tuple[Any, ...]]:
    """The object that `FILE:NAME` names, and its arguments from the same file, which is run. Raises OptionError, OSError."""
    file, _, name = words.rpartition(":")
    if not file:
        raise OptionError(f"tpu-lab compile {words!r} names no file", accepted="FILE:NAME, as in model.py:net")
    namespace = runpy.run_path(file, run_name="<tpu-lab>")
    missing = [wanted for wanted in (name, example) if wanted not in namespace]
    if missing:
        names = [n for n in namespace if not n.startswith("_")]
        raise OptionError(f"{file} has no {missing[0]!r}", accepted=one_of(names))
    arguments = namespace[example]
    return namespace[name], arguments if isinstance(arguments, tuple) else (arguments,)
