"""Runs notebooks and saves them with their outputs, so that they can be read without running them.

python -m tests.save_notebooks [FILE …]        all of notebooks/ without a file
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
SECONDS_PER_CELL = 600


def save(path: Path) -> None:
    """Runs a notebook and writes it back. Progress bars and the state of widgets are left out: they show nothing without a Jupyter kernel."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", store_widget_state=False, resources=_beside(path)).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
    nbformat.write(notebook, path)


def _beside(path: Path) -> dict[str, dict[str, str]]:
    return {"metadata": {"path": str(path.parent)}}


def _is_noise(output: nbformat.NotebookNode) -> bool:
    return output.get("name") == "stderr" or "application/vnd.jupyter.widget-view+json" in output.get("data", {})


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(map(str, FOLDER.glob("*.ipynb"))):
        save(Path(name))
        print(f"{name}: {Path(name).stat().st_size / 1000:.0f} kB")
