"""The operator coverage explorer: in the output of a cell, and in a page that opens from disk."""

from __future__ import annotations

import csv
from pathlib import Path

from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import Page, expect

import tpu_lab
from tests.browser.conftest import Notebook
from tests.browser.test_graph import Disk, disk  # noqa: F401  a fixture
from tpu_lab.coverage.explorer import MIME_TYPE, mime_bundle, view_data
from tpu_lab.views.page import page as page_of


def opened(disk: Disk) -> Page:  # noqa: F811
    page = disk.open(tpu_lab.coverage().to_html())
    page.locator(".tl-Pane-code").first.wait_for()
    return page


def test_it_filters_at_once_and_keeps_the_rest_out_of_the_page(disk: Disk) -> None:  # noqa: F811
    page = opened(disk)
    table = tpu_lab.coverage()
    rows = page.locator(".tl-Overloads tbody tr[data-name]")
    expect(page.locator(".tl-Bar b")).to_have_text(f"{len(table):,} overloads")
    assert rows.count() < 60  # of 3,000: only what is in sight is built
    find = page.get_by_label("Filter operators")
    find.fill("softmax backward")
    expected = [row.name for row in table.filter("softmax backward")]
    expect(rows).to_have_count(len(expected))
    assert sorted(rows.evaluate_all("rows => rows.map(row => row.dataset.name)")) == sorted(expected)
    find.fill("no such operator")
    expect(page.locator(".tl-Coverage-side")).to_contain_text("No overload has all of that")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".tl-Bar b")).to_have_text(f"{len(table):,} overloads")
    for name in ("native", "decomposed", "missing"):
        page.locator(".tl-StatusChip", has_text=name).click()
    expect(page.locator(".tl-Bar b")).to_have_text(f"{table.counts()['fallback']} overloads")


def test_a_cell_of_the_heat_map_filters_the_table(disk: Disk) -> None:  # noqa: F811
    page = opened(disk)
    page.locator(".tl-Heat-cell[aria-label^='FFT, complex64']").click()
    expected = tpu_lab.coverage().filter(family="FFT", dtype="complex64")
    expect(page.locator(".tl-Bar b")).to_have_text(f"{len(expected)} overloads")
    expect(page.locator(".tl-Bar.tl-mod-ruled")).to_contain_text("family FFT · complex64")
    page.locator(".tl-Ops-scroll").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".tl-Heat [aria-pressed='true']")).to_have_count(0)


def test_the_pane_tells_what_is_known(disk: Disk) -> None:  # noqa: F811
    page = opened(disk)
    page.get_by_label("Filter operators").fill("kthvalue")
    page.locator("tr[data-name='kthvalue']").click()
    side = page.locator(".tl-Coverage-side")
    expect(side.locator("h3")).to_have_text("aten.kthvalue")
    expect(side).to_contain_text("missing, needs aten.kthvalue.values")
    expect(side).to_contain_text("kthvalue(Tensor self, SymInt k")
    side.locator("summary", has_text="Lowering").click()
    expect(side.locator("details[open] pre")).to_contain_text('@lowering("kthvalue")')
    side.locator("summary", has_text="Lowering").click()
    side.locator("summary", has_text="StableHLO").click()
    expect(side.locator("details[open] pre")).to_contain_text("stablehlo.")
    page.get_by_label("Filter operators").fill("linalg_det")
    page.locator("tr[data-name='linalg_det']").click()
    side.locator("summary", has_text="Decomposition").first.click()
    expect(side.locator("details[open] pre")).to_contain_text("aten._linalg_det")


def test_keys_and_export(disk: Disk, tmp_path: Path) -> None:  # noqa: F811
    page = opened(disk)
    page.locator(".tl-Ops-scroll").focus()
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    second = tpu_lab.coverage().rows[1].name
    expect(page.locator("tr[aria-selected='true']")).to_have_attribute("data-name", second)
    expect(page.locator(".tl-FootBar")).to_contain_text(f"Selected: aten.{second}")
    page.keyboard.press("/")
    page.keyboard.type("kthvalue")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export CSV").click()
    download.value.save_as(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert {row["overload"]: row["torch_tpu"] for row in rows} == {"aten.kthvalue": "missing", "aten.kthvalue.values": "missing"}


def test_damaged_and_newer_tables_are_one_line(disk: Disk) -> None:  # noqa: F811
    data = view_data(tpu_lab.coverage("kthvalue"))
    for change, message in (({"schema": "2.0"}, "reads 1.x"), ({"here": [0]}, "damaged at here"), ({"name": ["<b>x</b>", "y"]}, "")):
        page = disk.open(page_of("coverage", {**data, **change}, "table", ""))
        if message:
            expect(page.locator(".tl-Error")).to_contain_text(message)
        else:
            expect(page.locator(".tl-Overloads tbody")).to_contain_text("<b>x</b>")


def test_in_a_notebook_it_inserts_a_cell_that_tries_the_operator(notebook: Notebook) -> None:
    bundle = {**mime_bundle(tpu_lab.coverage("kthvalue")), "text/html": "wrong: html"}
    assert MIME_TYPE in bundle
    cells = [new_code_cell("tpu_lab.coverage('kthvalue')", outputs=[new_output("display_data", bundle)]), new_code_cell("last")]
    notebook.lab.write_notebook("coverage.ipynb", cells)
    page = notebook.open("coverage.ipynb")
    page.locator("tr[data-name='kthvalue']").click()
    page.get_by_role("button", name="Insert below").click()
    expect(page.locator(".tl-Pane-try")).to_contain_text("a cell was inserted")
    text = notebook.source(1)
    assert text.startswith("%%tpu compare eager compile cpu\n") and "torch.ops.aten.kthvalue.default(x, 2)" in text
    assert notebook.source(2) == "last"
