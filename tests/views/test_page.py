"""Pages that open from disk: what stands in them, and that nothing of a record can leave its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.record import program_samples, samples
from tpu_lab import cli
from tpu_lab.errors import MissingPackageError
from tpu_lab.views import page
from tpu_lab.views.graph import FusionGraph


class Page(HTMLParser):
    """Collects script elements by id, and everything that names an address."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: dict[str, str] = {}
        self.addresses: list[str] = []
        self._current: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self._current = given.get("id") or "start"
            self.scripts[self._current] = ""
        # A link is followed only by whoever presses it; everything else would be fetched.
        self.addresses += [str(given[name]) for name in ("src", "href") if name in given and tag != "a"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._current = None

    def handle_data(self, data: str) -> None:
        if self._current:
            self.scripts[self._current] += data


@pytest.fixture(autouse=True)
def front_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A front end of three small files, so that these tests need no build."""
    for name in ("page.js", "page.css", "engine.js"):
        (tmp_path / name).write_text(f"/* {name} */")
    monkeypatch.setattr(page, "STATIC", tmp_path)
    page._text.cache_clear()
    yield
    page._text.cache_clear()


def test_a_page_holds_the_run_and_nothing_from_outside() -> None:
    text = page.run_page(samples.run())
    parsed = Page(text)
    assert json.loads(parsed.scripts["data"])["run"]["id"] == "r12"
    assert json.loads(parsed.scripts["engine"]) == ""
    assert parsed.addresses == []
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert re.search(r'<div id="static">.*aten\.mm', text, re.DOTALL)


def test_a_graph_brings_its_engine() -> None:
    parsed = Page(FusionGraph((program_samples.program(),)).to_html())
    assert json.loads(parsed.scripts["engine"]) == "/* engine.js */"
    assert json.loads(parsed.scripts["kind"]) == "graph"
    assert json.loads(parsed.scripts["data"])["programs"][0]["name"] == "forward"


def test_data_cannot_end_its_script_element() -> None:
    hostile = {"name": "</script><script>alert(1)</script><!-- \u2028"}
    parsed = Page(page.page("run", hostile, "</title><script>", ""))
    assert json.loads(parsed.scripts["data"]) == hostile
    assert set(parsed.scripts) == {"kind", "data", "engine", "start"}


def test_without_a_built_front_end_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "page.css").unlink()
    with pytest.raises(MissingPackageError, match="make front"):
        page.run_page(samples.run())


def test_the_command_line_makes_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples.run().save(tmp_path / "run.tpulab")
    (tmp_path / "program.json").write_text(program_samples.program().to_json())
    for name in ("run.tpulab", "program.json"):
        assert cli.main(["report", str(tmp_path / name), str(tmp_path / "page.html")]) == 0
        assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert cli.main(["report", str(tmp_path / "page.html"), str(tmp_path / "other.html")]) == 1
    assert "tpu-lab: " in capsys.readouterr().err
