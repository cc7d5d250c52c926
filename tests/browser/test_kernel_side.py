"""The part in the Jupyter kernel is loaded by itself, and only where a cell asks for it."""

from __future__ import annotations

from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.conftest import WAIT_MS, Notebook


def test_a_cell_with_the_magic_runs_without_load_ext_also_after_a_restart(notebook: Notebook) -> None:
    notebook.lab.write_notebook("side.ipynb", [new_code_cell("%%tpu eager\nimport torch\n(torch.ones(3) * 2).sum().item()")])
    page = notebook.open("side.ipynb")
    status = page.locator(".tl-Status")
    expect(status).to_have_text("TPU Lab: tpu on XLA:CPU", timeout=WAIT_MS)
    page.locator(".jp-CodeCell .cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".jp-OutputArea-output").filter(has_text="6.0").first).to_be_visible(timeout=WAIT_MS)

    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(status).to_have_text("TPU Lab: tpu on XLA:CPU", timeout=WAIT_MS)
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(page.locator(".jp-OutputArea-output").filter(has_text="6.0").first).to_be_visible(timeout=WAIT_MS)


def test_a_notebook_that_does_not_ask_is_left_alone(notebook: Notebook) -> None:
    notebook.lab.write_notebook("alone.ipynb", [new_code_cell("import sys\nprint('tpu_lab' in sys.modules, 'x')")])
    page = notebook.open("alone.ipynb")
    page.locator(".jp-CodeCell .cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".jp-OutputArea-output").filter(has_text="False x")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(".tl-Status")).to_be_hidden()
    page.get_by_role("menuitem", name="TPU Lab").click()
    expect(page.locator(".lm-Menu-itemLabel").filter(has_text="Cell Mode: Fuse")).to_be_visible()
