"""The fusion graph: in the output of a cell, and in a page that opens from disk (which is quicker, so most tests use that)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import graph_samples, samples
from tests.browser.conftest import Notebook
from tpu_lab.record.program_codec import from_data
from tpu_lab.views.graph import MIME_TYPE, FusionGraph
from tpu_lab.views.page import page as page_of
from tpu_lab.views.page import run_page


@dataclass
class Disk:
    """Opens pages from files in a browser without a network. A message on its console fails the test."""

    page: Page
    folder: Path
    complaints: list[str] = field(default_factory=list)

    def open(self, text: str) -> Page:
        file = self.folder / "page.html"
        file.write_text(text, encoding="utf-8")
        self.page.goto(file.as_uri())
        return self.page

    def graph(self, data: dict[str, Any] | None = None) -> Page:
        page = self.open(page_of("graph", data or graph_samples.small(), "graph", ""))
        page.locator(".tl-Box").first.wait_for()
        return page


@pytest.fixture
def disk(browser: Browser, tmp_path: Path) -> Iterator[Disk]:
    context = browser.new_context(viewport={"width": 1100, "height": 1000}, offline=True, accept_downloads=True)
    context.set_default_timeout(20_000)
    disk = Disk(context.new_page(), tmp_path)
    disk.page.on("console", lambda message: disk.complaints.append(message.text) if message.type == "error" else None)
    disk.page.on("pageerror", lambda error: disk.complaints.append(str(error)))
    yield disk
    context.close()
    assert disk.complaints == []


def box(page: Page, title: str) -> Locator:
    return page.locator(".tl-Box", has=page.locator(".tl-Box-note", has_text=title))


def test_a_graph_in_a_notebook(notebook: Notebook) -> None:
    bundle = {MIME_TYPE: graph_samples.small(), "text/html": "wrong: html", "text/plain": "wrong: text"}
    run = {**bundle, "application/vnd.tpu-lab.run+json": samples.data()["compiled"]}
    cells = [new_code_cell("graph", outputs=[new_output("display_data", bundle)]), new_code_cell("run", outputs=[new_output("display_data", run)])]
    notebook.lab.write_notebook("graph.ipynb", cells)
    page = notebook.open("graph.ipynb")
    view = page.locator(".tl-RunView").first
    expect(view.locator(".tl-Target strong")).to_have_text("TPU v6e")
    expect(view.locator(".tl-Box-title").first).to_contain_text("native_layer", timeout=30_000)
    # As a tab of a run it shares the run's selection.
    second = page.locator(".tl-RunView").nth(1)
    second.locator(".tl-RunLine").click()
    expect(second.get_by_role("tab")).to_have_text(["Source", "Ops 49", "Graph 12", "Memory"])
    second.locator(".tl-Source tr[data-line='12']").click()
    second.get_by_role("tab", name="Graph").click()
    expect(second.locator(".tl-Box.tl-mod-selected .tl-Box-title")).to_have_text("bmm, transpose")
    second.locator(".tl-Graph-canvas").focus()
    page.keyboard.press("j")
    expect(second.locator(".tl-Box.tl-mod-selected .tl-Box-title")).to_have_text("addmm, add")
    page.keyboard.press("j")
    expect(second.locator(".tl-FootBar")).to_contain_text("line 13")
    page.keyboard.press("1")
    expect(second.locator(".tl-Source tr[aria-selected='true']")).to_have_attribute("data-line", "13")


def test_why_two_kernels_are_two(disk: Disk) -> None:
    page = disk.graph()
    page.locator(".tl-Pill", has_text="why two?").last.click()
    side = page.locator(".tl-Side")
    expect(side).to_contain_text("Boundary K4 → K5")
    expect(side).to_contain_text("Softmax needs each row's finished sum")
    expect(side.locator(".tl-Quote")).to_have_text("Not fusing reduce.41 into divide.44 as operand can not be duplicated")
    expect(side.locator("code").first).to_have_text("F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)")
    expect(side).to_contain_text("Crosses the boundary")
    side.get_by_role("button", name="↓ sub, exp, div").click()
    expect(side).to_contain_text("Optimized HLO")
    expect(side.locator(".tl-Hlo")).to_contain_text("%fusion.5 = bf16[8,")
    expect(side).to_contain_text("≥ 328\u00a0µs predicted")


def test_keys_walk_open_and_search(disk: Disk) -> None:
    page = disk.graph()
    page.locator(".tl-Graph-canvas").focus()
    for key, title in (("ArrowDown", "native_layer_norm"), ("ArrowDown", "addmm"), ("j", "bmm, mul"), ("k", "addmm")):
        page.keyboard.press(key)
        expect(page.locator(".tl-Side h4").first).to_contain_text(title)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-Box-op")).to_have_text(["bmm", "mul", "masked_fill", "amax"])
    page.keyboard.press("Enter")
    expect(page.locator(".tl-Box-op")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.locator(".tl-Side")).to_contain_text("Boundary K4 → K5")
    page.keyboard.press("Escape")
    expect(page.locator(".tl-Side")).to_contain_text("Where the time goes")
    page.keyboard.press("/")
    page.keyboard.type("gelu")
    expect(page.locator(".tl-Found")).to_have_text("1 found")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-FootBar")).to_contain_text("K9")


def test_targets_and_groupings_keep_what_is_open(disk: Disk) -> None:
    page = disk.graph()
    expect(page.locator(".tl-Graph-head")).to_contain_text("eager is ≥ 4.87\u00a0ms, 2.5× as long")
    expect(page.locator(".tl-Side li").nth(1)).to_have_text("v6e eager30 kernels · ≥ 4.87\u00a0ms")
    box(page, "K3").dblclick()
    expect(page.locator(".tl-Box-op")).to_have_count(4)
    page.get_by_role("button", name="v5e").click()
    expect(page.locator(".tl-Target strong")).to_have_text("TPU v5e")
    expect(page.locator(".tl-Box-op")).to_have_count(4)
    page.get_by_role("button", name="XLA:CPU").click()
    expect(page.locator(".tl-Target strong")).to_have_text("XLA:CPU")
    expect(page.locator(".tl-Graph-head")).not_to_contain_text("Lower bound")
    page.get_by_role("button", name="v6e eager").click()
    expect(page.locator(".tl-Graph-head")).to_contain_text("30 → 30")
    page.get_by_label("Collapse by").select_option("module")
    expect(page.locator(".tl-Box-title", has_text="Block.attn")).to_have_count(1)
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".tl-KernelTable tbody tr")).to_have_count(8)


@pytest.mark.parametrize(("kind", "start"), [("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("DOT", b"digraph"), ("JSON", b"{")])
def test_exports(disk: Disk, kind: str, start: bytes) -> None:
    page = disk.graph()
    with page.expect_download() as download:
        page.get_by_label("Export").select_option(kind)
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(start)
    if kind == "SVG":
        assert content.count(b"<text") > 40 and b"class=" not in content and b"var(" not in content
    if kind == "JSON":
        assert from_data(json.loads(content)).name == "attention"


def test_a_hostile_graph_is_only_text(disk: Disk) -> None:
    attack = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    text = json.dumps(graph_samples.small())
    for word in ("Block.attn", "Softmax needs", "Not fusing reduce", "fusion.4", "masked_fill"):
        text = text.replace(word, word + attack)
    page = disk.graph(json.loads(text))
    page.locator(".tl-Pill", has_text="why two?").last.click()
    expect(page.locator(".tl-Side")).to_contain_text("onerror")
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".tl-KernelTable")).to_contain_text("masked_fill")
    assert page.evaluate("window.hit") is None
    assert page.locator("#view img, #view script").count() == 0


def test_a_newer_schema_is_one_line(disk: Disk) -> None:
    data = graph_samples.small()
    data["programs"][0]["schema"] = "2.0"
    page = disk.open(page_of("graph", data, "graph", ""))
    expect(page.get_by_role("alert")).to_contain_text("This program was saved with schema 2.0; this version of TPU Lab reads 1.x.")


def test_a_report_opens_from_disk(disk: Disk) -> None:
    page = disk.open(run_page(samples.compiled_run(), graph_samples.small()))
    expect(page.get_by_role("tab")).to_have_text(["Source", "Ops 49", "Graph 12", "Memory"])
    expect(page.locator(".tl-Source tr[data-line='13']")).to_contain_text("mlp(norm2(x))")
    page.get_by_role("tab", name="Graph").click()
    expect(page.locator(".tl-Box-title").first).to_contain_text("native_layer")
    assert page.locator("#static").count() == 0


def test_without_scripts_a_report_still_reads(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    (tmp_path / "page.html").write_text(
        FusionGraph((graph_samples.with_reasons(graph_samples.attention(graph_samples.target_named("v6e"))),)).to_html()
    )
    page.goto((tmp_path / "page.html").as_uri())
    expect(page.locator("#static")).to_contain_text("Why these did not fuse: 2 pairs")
    context.close()
