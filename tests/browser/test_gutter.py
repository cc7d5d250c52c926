"""Costs and marks of the last run beside the lines of the cell, tied to their text."""

from __future__ import annotations

from typing import Any

from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import expect

from tests.browser import samples
from tests.browser.conftest import Notebook
from tests.browser.test_runview import MIME_TYPE


def ran(data: Any, source: str) -> Any:
    return new_code_cell(source, outputs=[new_output("display_data", {MIME_TYPE: data, "text/plain": "run"})])


def test_marks_stand_beside_their_lines_and_leave_with_them(notebook: Notebook) -> None:
    notebook.lab.write_notebook("gutter.ipynb", [ran(samples.data()["compiled"], samples.CELL), new_code_cell("plain = 1")])
    page = notebook.open("gutter.ipynb")
    cell = page.locator(".jp-CodeCell").first
    lines = cell.locator(".tl-Gutter-line")
    expect(lines).to_have_count(12)
    slowest = cell.locator(".tl-Gutter-line[title='358\u00a0ms']")
    expect(slowest.locator("span")).to_have_text("358")
    assert "22.4\u00a0ms; Python branches on a tensor's value; .item() waits for the device" in lines.evaluate_all("all => all.map(one => one.title)")
    expect(page.locator(".jp-CodeCell").nth(1).locator(".tl-Gutter")).to_be_hidden()

    # An edited line loses its mark, the others keep theirs; a line above moves them along.
    page.evaluate("""() => {
        const model = window.jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel;
        model.setSource('# new first line\\n' + model.getSource().replace('n // 2', 'n // 3'));
    }""")
    expect(lines).to_have_count(11)
    expect(cell.locator(".tl-Gutter-line[title*='aten.kthvalue']")).to_have_count(0)
    expect(slowest).to_have_count(1)


def test_marks_explain_themselves_and_can_be_walked(notebook: Notebook) -> None:
    data = samples.data()["compiled"]
    notebook.lab.write_notebook("walk.ipynb", [ran(data, samples.CELL), ran(data, samples.CELL)])
    page = notebook.open("walk.ipynb")
    page.locator(".jp-CodeCell .cm-line", has_text="s.amax().item()").first.hover(position={"x": 60, "y": 8})
    popover = page.locator(".tl-Popover")
    expect(popover).to_contain_text("Python branches on a tensor's value")
    expect(popover.locator("code").first).to_have_text("s = s.clamp(max=1e4)")

    where = """() => {
        const { activeCellIndex, activeCell } = window.jupyterapp.shell.currentWidget.content;
        return [activeCellIndex, activeCell.editor.getCursorPosition().line];
    }"""
    page.locator(".jp-CodeCell .cm-line").first.click(position={"x": 20, "y": 8})  # its middle may lie below the toolbar
    seen = []
    for _ in range(4):
        page.keyboard.press("F8")
        page.wait_for_timeout(150)
        seen.append(page.evaluate(where))
    assert seen == [[0, 2], [0, 7], [0, 10], [1, 2]]
    page.keyboard.press("Shift+F8")
    page.wait_for_timeout(150)
    assert page.evaluate(where) == [0, 10]
    expect(popover).to_contain_text("aten.kthvalue runs on the host")
    page.keyboard.press("Escape")
    expect(popover).to_have_count(0)
    page.locator(".jp-CodeCell").nth(1).locator(".tl-Gutter-line[title*='Python branches']").click()
    expect(popover).to_contain_text(".item() waits for the device")
