"""Each notebook in `notebooks/` runs from top to bottom in a fresh Jupyter kernel, offline."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 300


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    wrong = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs if output.output_type == "error"]
    assert wrong == []


def test_notebooks_were_found() -> None:
    assert any(path.stem.startswith("01_") for path in NOTEBOOKS)
