"""A run in the output of a cell: shown without a Jupyter kernel from a saved notebook, opened, looked through, and never trusted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import Locator, Page, expect

from tests.browser import samples
from tests.browser.conftest import WAIT_MS, Notebook
from tpu_lab.views.packed import packed

MIME_TYPE = "application/vnd.tpu-lab.run+json"


def shown(data: Any) -> Any:
    """A cell with a run in its output, beside the forms that other readers take."""
    bundle = {MIME_TYPE: data, "text/html": "<p>wrong: html</p>", "text/plain": "wrong: text"}
    return new_code_cell("%%tpu eager\nx", outputs=[new_output("display_data", bundle)])


def open_run(notebook: Notebook, name: str, data: Any) -> tuple[Page, Locator]:
    notebook.lab.write_notebook(name, [shown(data)])
    page = notebook.open(name)
    return page, page.locator(".tl-RunView")


def test_samples_of_the_extension_are_current() -> None:
    assert samples.FILE.read_text(encoding="utf-8") == samples.text(), "run `python -m tests.browser.samples`"


def test_a_run_is_one_line_that_opens_and_closes(notebook: Notebook) -> None:
    _, view = open_run(notebook, "line.ipynb", samples.data()["compiled"])
    line = view.locator(".tl-RunLine")
    expect(line).to_contain_text("XLA:CPU")
    expect(line.locator(".tl-num")).to_have_text(["856\u00a0ms", "49 → ≥ 12"])
    expect(line.get_by_role("img", name="1 graph break")).to_be_visible()
    line.click()
    expect(view.locator(".tl-Summary strong")).to_have_text("XLA:CPU")
    expect(view.get_by_role("tab")).to_have_text(["Source", "Ops 49", "Memory"])
    view.get_by_role("button", name="Close").click()
    expect(view.locator(".tl-RunLine")).to_be_focused()


def test_source_shows_costs_and_marks_and_why(notebook: Notebook) -> None:
    _, view = open_run(notebook, "source.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    row = view.locator(".tl-Source tr[data-line='13']")
    expect(row.locator("td").nth(0)).to_have_text("358")
    expect(row.locator("td").nth(1)).to_have_text("134")
    expect(row.locator("td").nth(4)).to_have_text("    y = x + mlp(norm2(x))")
    expect(view.locator(".tl-Source thead th").nth(0)).to_have_text("ms")
    view.get_by_role("button", name="1 graph break").click()
    marked = view.locator(".tl-Source tr[data-line='8']")
    expect(marked).to_have_attribute("aria-selected", "true")
    card = view.locator(".tl-Card").first
    expect(card).to_contain_text("Python branches on a tensor's value")
    expect(card.locator("code")).to_have_text("s = s.clamp(max=1e4)")
    expect(card.locator("pre")).to_have_text("Unsupported Tensor.item() call with capture_scalar_outputs=False")
    expect(view.locator(".tl-FootBar")).to_contain_text("Selected: line 8 · 1 op, 22.4\u00a0ms · 2 findings")


def test_the_selection_is_shared_by_the_tabs(notebook: Notebook) -> None:
    _, view = open_run(notebook, "selection.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    view.locator(".tl-Source tr[data-line='10']").click()
    view.get_by_role("tab", name="Ops").click()
    expect(view.locator(".tl-Ops tr[aria-selected='true'] code").first).to_have_text("aten._softmax")
    view.locator(".tl-Ops tr[data-op='8']").click()
    view.get_by_role("tab", name="Source").click()
    expect(view.locator(".tl-Source tr[aria-selected='true']")).to_have_attribute("data-line", "11")


def test_ops_are_sorted_and_found(notebook: Notebook) -> None:
    _, view = open_run(notebook, "ops.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    view.get_by_role("tab", name="Ops").click()
    view.get_by_role("button", name="ms", exact=True).click()
    expect(view.locator(".tl-Ops tr[data-op]").first).to_contain_text("148")
    view.get_by_label("Find in ops").fill("kthvalue")
    expect(view.locator(".tl-Ops tr[data-op]")).to_have_count(4)
    expect(view.locator(".tl-Bar")).to_contain_text("4 of 49 ops")


def test_many_ops_are_a_virtual_table(notebook: Notebook) -> None:
    run = samples.codec.to_data(samples.compiled_run(copies=1000))
    page, view = open_run(notebook, "many.ipynb", json.loads(json.dumps(run)))
    view.locator(".tl-RunLine").click()
    view.get_by_role("tab", name="Ops").click()
    assert view.locator(".tl-Ops tr[data-op]").count() < 60
    page.evaluate("document.querySelector('.tl-Ops-scroll').scrollTop = 1e9")
    expect(view.locator(".tl-Ops tr[data-op='12000']")).to_be_visible()


def test_ops_are_grouped(notebook: Notebook) -> None:
    _, view = open_run(notebook, "groups.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    view.get_by_role("tab", name="Ops").click()
    view.get_by_label("Group by").select_option("module")
    first = view.locator(".tl-GroupRow").first
    expect(first.locator("td")).to_have_text(["Block.attn 24", "279", "11,280", "639"])
    expect(view.locator(".tl-Ops tr[data-op]")).to_have_count(0)
    first.get_by_role("button").click()
    expect(view.locator(".tl-Ops tr[data-op]")).to_have_count(24)
    first.get_by_role("button").click()
    expect(view.locator(".tl-GroupRow")).to_have_count(7)
    view.get_by_role("tab", name="Memory").click()
    view.locator(".tl-Peak tbody tr").nth(1).click()
    view.get_by_role("tab", name="Ops").click()
    expect(view.locator(".tl-Ops tr[aria-selected='true']")).to_have_attribute("data-op", "7")  # its group has opened


def test_memory_shows_the_peak_and_shares_the_selection(notebook: Notebook) -> None:
    page, view = open_run(notebook, "memory.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    view.get_by_role("tab", name="Memory").click()
    expect(view.locator(".tl-Memory h4")).to_have_text("Peak 1.11\u00a0GB at op 8, line 11.")
    expect(view.get_by_role("img", name="Peak 1.11")).to_be_visible()
    row = view.locator(".tl-Peak tbody tr").first
    expect(row.locator("td").nth(0)).to_have_text("f32[8,16,1024,1024]")
    expect(row.locator("td").nth(4)).to_have_text("48 %")
    row.click()
    expect(view.locator(".tl-FootBar")).to_contain_text("Selected: tensor of 537\u00a0MB · op 8 · line 11")
    view.get_by_role("tab", name="Ops").click()
    expect(view.locator(".tl-Ops tr[aria-selected='true']")).to_have_attribute("data-op", "8")
    view.get_by_role("tab", name="Memory").click()
    view.get_by_role("button", name="Line").click()
    expect(view.locator(".tl-Peak tbody tr").first).to_contain_text("line 11")
    view.get_by_role("button", name="Module").click()
    expect(view.locator(".tl-Peak tbody tr").filter(has_text="Block.attn")).to_contain_text("268")
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function("() => { const c = document.querySelector('.tl-Chart-svg'); return c && c.getBoundingClientRect().width <= 700; }")


def test_keys_act_in_the_view_and_not_in_the_notebook(notebook: Notebook) -> None:
    page, view = open_run(notebook, "keys-run.ipynb", samples.data()["compiled"])
    view.locator(".tl-RunLine").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(view.locator(".tl-Source tr[aria-selected='true']")).to_have_attribute("data-line", "2")
    page.keyboard.press("2")
    expect(view.get_by_role("tab", name="Ops")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("/")
    page.keyboard.type("addmm")
    expect(view.locator(".tl-Bar")).to_contain_text("8 of 49 ops")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(view.locator(".tl-RunLine")).to_be_focused()
    assert notebook.source(0) == "%%tpu eager\nx"
    assert page.locator(".jp-Cell").count() == 1


def test_compare_states_its_results(notebook: Notebook) -> None:
    _, view = open_run(notebook, "compare.ipynb", samples.data()["compared"])
    expect(view.locator(".tl-Compare h4").first).to_have_text(
        "compile is 1.5× faster than eager. cpu against eager is too close to call. fuse failed."
    )
    expect(view.locator(".tl-Compare")).to_contain_text("compile pays for itself from the 9th call.")
    expect(view.locator(".tl-Compare")).to_contain_text("compile leaves the tolerance against cpu.")
    compare = view.locator(".tl-Compare")
    expect(compare).to_contain_text("Kernels started: 47 in eager, ≥ 8 in compile.")
    expect(compare.get_by_role("img", name="Peak memory: 1.31\u00a0GB in eager, 1.04\u00a0GB in compile, 1.31\u00a0GB in cpu.")).to_be_visible()
    expect(compare.locator(".tl-Curve")).to_have_count(3)
    worst = compare.locator(".tl-Largest li")
    expect(worst).to_contain_text(["p line 10", "model.0.weight line 13", "NaN or infinity in one only, or another shape"])
    # One late call of eager (9.8 s) does not shrink the bars: its whisker has an open end, and the bar of compile is a third of the width.
    expect(compare.locator(".tl-SpreadBar-track u.tl-mod-beyond")).to_have_count(1)
    width = compare.locator(".tl-SpreadBar-track i").nth(1).evaluate("bar => parseFloat(bar.style.width)")
    assert 25 < width < 40
    expect(view.get_by_role("listitem", name="eager: 1.38\u00a0s, from 1.27\u00a0s to 9.80\u00a0s")).to_be_visible()
    expect(view.locator(".tl-Modes tbody tr")).to_have_count(4)
    expect(view.locator(".tl-Modes")).to_contain_text("OptionError: Mode fuse does not exist yet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "2.0"}, "This run was saved with schema 2.0; this version of TPU Lab reads 1.x."),
        ({"ops": {"id": [1]}}, "This run is damaged at ops.program"),
        ({"format": "other"}, "This is not a record of a run."),
    ],
)
def test_what_is_no_run_is_one_message(notebook: Notebook, change: dict[str, Any], message: str) -> None:
    _, view = open_run(notebook, "broken.ipynb", samples.data()["compiled"] | change)
    expect(view.get_by_role("alert")).to_contain_text(message)


def test_a_hostile_run_is_only_text(notebook: Notebook) -> None:
    attack = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    text = json.dumps(samples.data()["compiled"])
    for word in ("aten.kthvalue", "XLA:CPU", "Block.attn", "Python branches", "y = x + mlp", "Unsupported Tensor"):
        text = text.replace(word, word + attack)
    data = json.loads(text)
    data["findings"][0]["title"] = "x" * 1_000_000
    page, view = open_run(notebook, "hostile.ipynb", data)
    view.locator(".tl-RunLine").click()
    view.get_by_role("button", name="1 graph break").click()
    expect(view.locator(".tl-Card").first).to_contain_text("<script>")
    view.get_by_role("tab", name="Ops").click()
    expect(view.locator(".tl-Ops")).to_contain_text("onerror")
    assert page.evaluate("window.hit") is None
    assert view.locator("img, script").count() == 0


def test_an_interrupt_is_no_exception(notebook: Notebook) -> None:
    data = samples.data()["failed"]
    data["failures"][0] |= {"kind": "KeyboardInterrupt", "op": "", "message": ""}
    _, view = open_run(notebook, "interrupt.ipynb", data)
    expect(view.locator(".tl-RunLine").get_by_role("img", name="1 interrupt")).to_be_visible()
    view.locator(".tl-RunLine").click()
    expect(view.get_by_role("button", name="1 interrupt")).to_be_visible()
    expect(view).not_to_contain_text("exception")


def test_line_times_say_what_they_leave_out_and_packed_runs_are_read(notebook: Notebook) -> None:
    data = samples.data()["compiled"]
    data["totals"] |= {"wall_ns": 3_000_000_000, "op_ns": 800_000_000, "build_ns": 1_700_000_000, "sync_ns": 0, "fallback_ns": 0, "flushes": 0}
    _, view = open_run(notebook, "packed.ipynb", packed(data))
    view.locator(".tl-RunLine").click()
    expect(view.locator(".tl-Note")).to_contain_text("1.70\u00a0s compiling and 500\u00a0ms in Python (the cell's own code, torch.compile's tracing")
    _, damaged = open_run(notebook, "damaged.ipynb", packed(data) | {"deflate": "AAAA"})
    expect(damaged.get_by_role("alert")).to_contain_text("cannot be unpacked")


def test_a_running_cell_shows_its_run(notebook: Notebook) -> None:
    data = json.dumps(samples.data()["failed"])
    code = f"import json\nfrom IPython.display import display\ndisplay({{{MIME_TYPE!r}: json.loads({data!r}), 'text/plain': 'run'}}, raw=True)"
    notebook.lab.write_notebook("live.ipynb", [new_code_cell(code)])
    page = notebook.open("live.ipynb")
    page.locator(".jp-CodeCell .cm-content").click()
    page.keyboard.press("Control+Enter")
    line = page.locator(".tl-RunLine")
    line.click()
    page.get_by_role("button", name="1 exception").click()
    expect(page.locator(".tl-Card")).to_contain_text("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")


def test_a_magic_cell_shows_what_it_did(notebook: Notebook) -> None:
    """The whole way: the magic runs the cell on the device, records it, and the extension shows the record."""
    cell = "%%tpu eager\nimport torch\nx = torch.ones(4, 4)\n(x @ x).sum().item()"
    notebook.lab.write_notebook("magic.ipynb", [new_code_cell("%load_ext tpu_lab"), new_code_cell(cell)])
    page = notebook.open("magic.ipynb")
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    line = page.locator(".tl-RunLine")
    line.wait_for(timeout=WAIT_MS)
    expect(page.locator(".jp-OutputArea-output").filter(has_text="64.0").first).to_be_visible()
    line.click()
    expect(page.locator(".tl-Summary strong")).to_have_text("XLA:CPU")
    expect(page.locator(".tl-Source .tl-Code")).to_have_text(cell.splitlines())
    page.get_by_role("button", name="1 host sync").click()
    expect(page.locator(".tl-Source tr[aria-selected='true']")).to_have_attribute("data-line", "4")
    page.get_by_role("tab", name="Ops").click()
    expect(page.locator(".tl-Ops")).to_contain_text("aten.mm")
