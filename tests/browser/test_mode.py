"""The mode of a cell: switch, chip, commands and shortcut all edit the `%%tpu` line of the cell."""

from __future__ import annotations

import subprocess
import sys

from nbformat.v4 import new_code_cell, new_markdown_cell
from playwright.sync_api import expect

from tests.browser.conftest import Notebook
from tests.browser.server import Lab


def test_extension_is_enabled(lab: Lab) -> None:
    command = [sys.executable, "-m", "jupyter", "labextension", "list"]
    listed = subprocess.run(command, env=lab.environment, capture_output=True, text=True, timeout=120)
    line = next(line for line in (listed.stdout + listed.stderr).splitlines() if "tpu-lab" in line)
    assert "enabled" in line and "OK" in line and "(python, tpu-lab)" in line


def test_switch_edits_the_first_line_and_undo_takes_it_back(notebook: Notebook) -> None:
    notebook.lab.write_notebook("switch.ipynb", [new_code_cell("x = 1\nx + 1"), new_markdown_cell("text")])
    page = notebook.open("switch.ipynb")
    page.locator(".jp-CodeCell .cm-content").first.click()
    switch = page.get_by_role("radiogroup", name="Mode of this cell")
    expect(switch.get_by_role("radio")).to_have_text(["Eager", "Fuse", "Compile", "Compare", "Off"])
    expect(switch.get_by_role("radio", name="Off")).to_have_attribute("aria-checked", "true")

    switch.get_by_role("radio", name="Eager").click()
    assert notebook.source(0) == "%%tpu eager\nx = 1\nx + 1"
    expect(switch.get_by_role("radio", name="Eager")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".tl-Chip")).to_have_text("eager")

    page.wait_for_timeout(700)  # edits within half a second are one step of undo
    switch.get_by_role("radio", name="Compile").click()
    assert notebook.source(0) == "%%tpu compile\nx = 1\nx + 1"
    page.keyboard.press("Control+z")  # the cursor never left the editor
    assert notebook.source(0) == "%%tpu eager\nx = 1\nx + 1"

    switch.get_by_role("radio", name="Off").click()
    assert notebook.source(0) == "x = 1\nx + 1"
    expect(page.locator(".tl-Chip")).to_have_count(0)


def test_switch_is_a_radio_group_for_the_keyboard(notebook: Notebook) -> None:
    notebook.lab.write_notebook("keys.ipynb", [new_code_cell("%%tpu eager --repeat 3\nx = 1")])
    page = notebook.open("keys.ipynb")
    page.locator(".jp-CodeCell .cm-content").click()
    page.get_by_role("radio", name="Eager").focus()
    page.keyboard.press("ArrowRight")
    assert notebook.source(0) == "%%tpu fuse --repeat 3\nx = 1"
    expect(page.get_by_role("radio", name="Fuse")).to_be_focused()


def test_typing_the_magic_moves_the_switch(notebook: Notebook) -> None:
    notebook.lab.write_notebook("typed.ipynb", [new_code_cell("")])
    page = notebook.open("typed.ipynb")
    page.locator(".jp-CodeCell .cm-content").click()
    page.keyboard.type("%%tpu compare eager cpu")
    expect(page.get_by_role("radio", name="Compare")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".tl-Chip")).to_have_text("compare")


def test_chip_opens_a_menu_for_its_own_cell(notebook: Notebook) -> None:
    notebook.lab.write_notebook("chip.ipynb", [new_code_cell("a = 1"), new_code_cell("%%tpu eager\nb = 2")])
    page = notebook.open("chip.ipynb")
    page.locator(".tl-Chip").click()
    items = page.locator(".lm-Menu .lm-Menu-itemLabel")
    expect(items).to_have_text(["Eager", "Fuse", "Compile", "Compare", "Off"])
    items.get_by_text("Compile").click()
    assert [notebook.source(0), notebook.source(1)] == ["a = 1", "%%tpu compile\nb = 2"]


def test_shortcut_and_command_act_on_the_active_cell(notebook: Notebook) -> None:
    notebook.lab.write_notebook("command.ipynb", [new_code_cell("a = 1"), new_code_cell("b = 2")])
    page = notebook.open("command.ipynb")
    page.locator(".jp-CodeCell .cm-content").nth(1).click()
    page.keyboard.press("Alt+m")
    assert notebook.source(1) == "%%tpu eager\nb = 2"
    notebook.command("tpu-lab:set-cell-mode", mode="compare")
    assert [notebook.source(0), notebook.source(1)] == ["a = 1", "%%tpu compare\nb = 2"]
    page.keyboard.press("Control+Shift+c")
    page.locator("#modal-command-palette input.lm-CommandPalette-input").fill("cell mode")
    expect(page.locator(".lm-CommandPalette-itemLabel")).to_contain_text(
        ["Cell Mode: Eager", "Cell Mode: Fuse", "Cell Mode: Compile", "Cell Mode: Compare", "Cell Mode: Off"]
    )


def test_nothing_where_no_mode_makes_sense(notebook: Notebook) -> None:
    cells = [new_code_cell("%%bash\nls"), new_markdown_cell("# %%tpu eager")]
    notebook.lab.write_notebook("other.ipynb", cells)
    page = notebook.open("other.ipynb")
    page.locator(".jp-CodeCell .cm-content").click()
    expect(page.locator(".jp-cell-toolbar")).to_be_visible()
    expect(page.locator(".tl-ModeSwitch")).to_be_hidden()
    expect(page.locator(".tl-Chip")).to_have_count(0)
    page.keyboard.press("Alt+m")
    assert notebook.source(0) == "%%bash\nls"


def test_a_narrow_cell_offers_the_chip_instead_of_the_switch(notebook: Notebook) -> None:
    notebook.lab.write_notebook("narrow.ipynb", [new_code_cell("a = 1")])
    page = notebook.open("narrow.ipynb")
    page.set_viewport_size({"width": 600, "height": 800})
    page.locator(".jp-CodeCell .cm-content").click()
    expect(page.locator(".tl-Chip")).to_have_text("TPU off")
    page.locator(".tl-Chip").click()
    page.locator(".lm-Menu .lm-Menu-itemLabel").get_by_text("Eager").click()
    assert notebook.source(0) == "%%tpu eager\na = 1"
    expect(page.locator(".tl-Chip")).to_have_text("eager")
