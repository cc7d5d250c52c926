"""Each notebook in `notebooks/` runs from top to bottom in a fresh Jupyter kernel, offline."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 300
MOST_BYTES = 600_000


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    wrong = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs if output.output_type == "error"]
    assert wrong == []


def test_notebooks_were_found() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_is_saved_with_outputs_of_bounded_size(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES, "python -m tests.save_notebooks"
    notebook = nbformat.read(path, as_version=4)
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(shown) >= 4, "it was saved without outputs: python -m tests.save_notebooks"
    assert "/home/" not in path.read_text(encoding="utf-8") and "/root/" not in path.read_text(encoding="utf-8")
