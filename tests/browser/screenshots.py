"""Pictures of every view in both themes and two widths, of a real JupyterLab with the sample runs.

python -m tests.browser.screenshots FOLDER
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import Page, sync_playwright

import tpu_lab
from tests.browser import graph_samples, samples
from tests.browser.conftest import CHROMIUM_FLAGS, Notebook
from tests.browser.server import Lab, start
from tests.browser.test_runview import MIME_TYPE, shown
from tpu_lab.coverage import explorer as coverage
from tpu_lab.views.graph import MIME_TYPE as GRAPH_MIME_TYPE

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTHS = {"wide": 1400, "narrow": 600}


def take(page: Page, lab: Lab, folder: Path, theme: str, width: str) -> None:
    notebook = Notebook(page, lab)
    page.set_viewport_size({"width": 1400, "height": 1000})
    notebook.open("views.ipynb")
    notebook.command("apputils:change-theme", theme=THEMES[theme])
    page.locator(f"body[data-jp-theme-light='{str(theme == 'light').lower()}']").wait_for(state="attached")
    if width == "narrow":
        page.set_viewport_size({"width": WIDTHS[width], "height": 1000})
        notebook.command("application:toggle-left-area")
    page.wait_for_timeout(1000)

    def picture(name: str, cell: int) -> None:
        page.wait_for_timeout(300)
        page.locator(".jp-Notebook .jp-Cell").nth(cell).screenshot(path=folder / f"{theme}-{width}-{name}.png")

    page.locator(".jp-CodeCell .cm-content").first.click()
    picture("cell", 0)
    view = page.locator(".jp-Cell:not(:first-child) .tl-RunView")
    picture("line", 1)
    view.nth(0).locator(".tl-RunLine").click()
    picture("source", 1)
    view.nth(0).locator("tr[data-line='8']").click()
    picture("card", 1)
    view.nth(0).get_by_role("tab", name="Ops").click()
    picture("ops", 1)
    view.nth(0).get_by_label("Group by").select_option("module")
    view.nth(0).locator(".tl-GroupButton").first.click()
    picture("ops-groups", 1)
    view.nth(0).get_by_role("tab", name="Memory").click()
    picture("memory", 1)
    picture("compare", 2)
    view.nth(2).locator(".tl-RunLine").click()
    view.nth(2).locator("tr[data-line='2']").click()
    picture("failed", 3)
    picture("broken", 4)
    page.set_viewport_size({"width": WIDTHS[width], "height": 1600})  # a graph and its card are taller than the window
    graph = view.nth(4)
    graph.locator(".tl-Box").first.wait_for(timeout=30_000)
    picture("graph", 5)
    graph.locator(".tl-Pill.tl-mod-why").last.click()
    picture("graph-why", 5)
    graph.locator(".tl-Graph-canvas").focus()
    for key in ("k", "j", "j", "Enter"):
        page.keyboard.press(key)
    picture("graph-kernel", 5)
    table = view.nth(5)
    table.locator(".tl-Pane-code").first.wait_for()
    table.locator(".tl-Heat-cell[aria-label^='sort, search, float32']").click()
    table.locator("tr[data-name='topk']").click()
    picture("coverage", 6)
    table.get_by_role("button", name="Show all").click()
    table.get_by_label("Filter operators").fill("torchtpu:missing loss")
    table.locator("tr[data-name='smooth_l1_loss']").click()
    table.locator("summary", has_text="Lowering").click()
    picture("coverage-pane", 6)


def gutter_cell(run: Any) -> Any:
    """The cell of the sample with its run in the output, so that the gutter shows costs."""
    return new_code_cell(samples.CELL, outputs=[new_output("display_data", {MIME_TYPE: run, "text/plain": "run"})])


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        process, lab = start(Path(place))
        data = samples.data()
        runs = [data["compiled"], data["compared"], data["failed"], data["failed"] | {"schema": "2.0"}]
        graph = new_output("display_data", {GRAPH_MIME_TYPE: graph_samples.small(), "text/plain": "graph"})
        cells = [gutter_cell(data["compiled"]), *map(shown, runs), new_code_cell("tpu_lab.fusion_graph(block, x)", outputs=[graph])]
        cells.append(new_code_cell("tpu_lab.coverage()", outputs=[new_output("display_data", coverage.mime_bundle(tpu_lab.coverage()))]))
        lab.write_notebook("views.ipynb", cells)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS)
        for theme in THEMES:
            for width in WIDTHS:
                page = browser.new_page(device_scale_factor=2 if width == "narrow" else 1)
                take(page, lab, folder, theme, width)
                page.close()
        browser.close()
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
