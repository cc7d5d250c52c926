"""The picture in README.md: the first notebook, run in a real JupyterLab, its comparison open.

python -m tests.browser.first_notebook FILE.png
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, Notebook
from tests.browser.server import REPOSITORY, start

SECONDS = 600


def main(file: Path) -> None:
    """Runs the notebook up to the comparison and takes the picture of that part of the page."""
    file.parent.mkdir(parents=True, exist_ok=True)
    first = nbformat.read(REPOSITORY / "notebooks" / "01_first_run.ipynb", as_version=4)
    last = next(i for i, cell in enumerate(first.cells) if cell.source.startswith("%%tpu compare"))
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        process, lab = start(Path(place))
        lab.write_notebook("01_first_run.ipynb", first.cells[: last + 1])
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1240, "height": 1500}, device_scale_factor=1.5)
        notebook = Notebook(page, lab)
        notebook.open("01_first_run.ipynb")
        notebook.command("application:toggle-left-area")
        notebook.command("notebook:run-all-cells")
        page.locator(".jp-Notebook .jp-Cell").nth(last).locator(".tl-RunView").wait_for(timeout=SECONDS * 1000)
        page.wait_for_timeout(1500)
        page.locator(".jp-Notebook .jp-Cell").nth(last).screenshot(path=file)
        browser.close()
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
