"""Settings of the extension, and the item in the status bar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.conftest import WAIT_MS, Notebook


@pytest.fixture
def settings(notebook: Notebook) -> Path:
    """The file of the user's settings; it is gone after the test."""
    file = Path(notebook.lab.environment["JUPYTERLAB_SETTINGS_DIR"]) / "tpu-lab" / "plugin.jupyterlab-settings"
    file.parent.mkdir(exist_ok=True)
    return file


def test_the_switch_writes_what_the_settings_say(notebook: Notebook, settings: Path) -> None:
    settings.write_text(json.dumps({"defaultMode": "compile", "target": "v6e", "traceLevel": "off"}))
    try:
        notebook.lab.write_notebook("settings.ipynb", [new_code_cell("x = 1")])
        page = notebook.open("settings.ipynb")
        page.locator(".jp-CodeCell .cm-content").click()
        written = []
        for _ in range(5):
            notebook.command("tpu-lab:cycle-cell-mode")
            written.append(notebook.source(0))
        assert written == [
            "%%tpu compile --trace off --target v6e\nx = 1",
            "%%tpu compare\nx = 1",
            "%%tpu eager\nx = 1",
            "%%tpu fuse\nx = 1",
            "x = 1",
        ]
    finally:
        settings.unlink()


def test_the_status_bar_names_targets_and_cancels_a_cell(notebook: Notebook) -> None:
    slow = "%%tpu eager\nimport time\nfor _ in range(600):\n    time.sleep(0.1)"
    notebook.lab.write_notebook("cancel.ipynb", [new_code_cell(slow), new_code_cell("%%tpu compile --target v6e\nx")])
    page = notebook.open("cancel.ipynb")
    status = page.locator(".tl-Status")
    expect(status).to_have_text("TPU Lab: tpu on XLA:CPU, asks v6e", timeout=WAIT_MS)
    cancel = status.get_by_role("button", name="Cancel")
    expect(cancel).to_be_hidden()
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    expect(status).to_contain_text("TPU Lab: eager runs, 1 s")
    cancel.click()
    expect(page.locator(".jp-OutputArea-output").filter(has_text="KeyboardInterrupt").first).to_be_visible(timeout=WAIT_MS)
    expect(cancel).to_be_hidden()
    expect(status).to_contain_text("tpu on XLA:CPU")
