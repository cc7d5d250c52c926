"""Each notebook in `notebooks/` runs from top to bottom in a fresh Jupyter kernel, offline."""

from __future__ import annotations

import html
import re
from pathlib import Path

import nbconvert
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_nbconvert_shows_every_view_of_a_saved_notebook(path: Path) -> None:
    """`jupyter nbconvert --to html`: no renderer of ours, so each view must come as HTML."""
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    views = [output.data for output in outputs if any("tpu-lab" in kind for kind in output.get("data", {}))]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    shown = re.findall(r'data-mime-type="text/html"[^>]*>\s*<div aria-label="([^"]*)"', page)
    wanted = [name for view in views for name in re.findall(r'aria-label="([^"]*)"', view["text/html"])[:1]]
    assert len(wanted) == len(views) > 0
    assert set(map(html.unescape, wanted)) <= set(map(html.unescape, shown))
