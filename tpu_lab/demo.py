"""The main job without a browser: runs `notebooks/01_first_run.ipynb` in a Jupyter kernel and prints what it shows.

    python -m tpu_lab.demo [--notebook FILE] [--save FILE]

The last line is JSON: `{"main_job": {"eager_s", "compile_s", "cpu_s", "max_rel_diff", "minilm_cosine"}}`, seconds being the
median of the later runs of `%%tpu compare`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NOTEBOOK = Path("notebooks/01_first_run.ipynb")
_COLLECT = """
import json as _json
from tpu_lab.recording import store as _store
_last = [r for r in _store.runs() if r.comparison is not None][-1].comparison
_seconds = {m.mode: m.timing.steady_ns / 1e9 for m in _last.modes}
_differences = [m.difference.max_rel for m in _last.modes if m.difference is not None and m.difference.max_rel is not None]
print(_json.dumps({"main_job": {
    "eager_s": round(_seconds["eager"], 4), "compile_s": round(_seconds["compile"], 4), "cpu_s": round(_seconds["cpu"], 4),
    "max_rel_diff": max(_differences), "minilm_cosine": round(float(cosine), 7)}}))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns the exit status: 0, or 1 with the failing cell's error printed."""
    parser = argparse.ArgumentParser(prog="python -m tpu_lab.demo", description="Runs the main job in a Jupyter kernel and prints its tables.")
    parser.add_argument("--notebook", type=Path, default=NOTEBOOK, help="the notebook to run (default: %(default)s)")
    parser.add_argument("--save", type=Path, help="write the executed notebook to this file")
    options = parser.parse_args(arguments)
    if not options.notebook.exists():
        parser.error(f"there is no notebook {options.notebook}; run this in a clone of the project, or name one with --notebook")
    try:
        import nbclient
        import nbformat
    except ImportError as error:
        parser.error(f"{error.name} is not installed; pip install 'tpu-lab[demo]'")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(options.notebook, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(_COLLECT))
    client = nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", on_cell_executed=_print_cell(len(notebook.cells) - 1))
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        print(str(error), file=sys.stderr)
        return 1
    figures = notebook.cells.pop()["outputs"][0]["text"].strip()
    if options.save:
        nbformat.write(notebook, options.save)
    others = ", ".join(sorted(path.stem for path in options.notebook.parent.glob("*.ipynb")))
    print(f"\nOpen it yourself:  make lab   (JupyterLab on {options.notebook.parent}/: {others})\n")
    print(figures)
    return 0


def _print_cell(last: int) -> Any:
    """Prints a code cell's text outputs as soon as it ran."""

    def show(cell: Any, cell_index: int, execute_reply: Any = None) -> None:
        if cell["cell_type"] != "code" or cell_index >= last:
            return
        first = cell["source"].splitlines()[0] if cell["source"] else ""
        print(f"\n── cell {cell_index + 1}: {first}", flush=True)
        for output in cell["outputs"]:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            if output.get("name") != "stderr" and text:
                print(re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip(), flush=True)

    return show


if __name__ == "__main__":
    raise SystemExit(main())
