from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.record import samples
from tpu_lab.record import Run
from tpu_lab.record.comparison import Comparison
from tpu_lab.views.html import run_html
from tpu_lab.views.html_compare import comparison_html
from tpu_lab.views.markup import Markup, code_text, element, escape, join

ALLOWED_TAGS = {"div", "span", "table", "thead", "tbody", "tr", "th", "td", "b", "code", "pre", "details", "summary", "a"}
"""All of them pass JupyterLab's sanitizer."""
ALLOWED_ATTRIBUTES = {"style", "title", "scope", "role", "aria-label", "aria-hidden", "href"}


class Reader(HTMLParser):
    """Collects tags, attributes and text; fails on tags that do not nest."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: list[str] = []
        self.titles: list[str] = []
        self.words: list[str] = []
        self.feed(fragment)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        for name, value in attributes:
            self.attributes.add(name)
            if name == "style":
                self.styles.append(value or "")
            if name == "title":
                self.titles.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


FRAGMENTS = {
    "full": run_html(samples.run()),
    "empty": run_html(Run()),
    "queued": run_html(replace(samples.run(), blocking=False)),
    "comparison": comparison_html(samples.comparison()),
}


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_fragments_use_only_what_a_sanitizer_keeps(fragment: str) -> None:
    read = Reader(fragment)
    assert read.tags <= ALLOWED_TAGS
    assert read.attributes <= ALLOWED_ATTRIBUTES
    assert "url(" not in fragment and "javascript" not in fragment and "expression(" not in fragment


def test_what_comes_from_the_record_is_text() -> None:
    read = Reader(FRAGMENTS["full"])
    assert "y = net(x)  # <script>alert('é')</script>" in read.text
    assert "sample & co" in read.text and "mat1 and mat2 <shapes> cannot be multiplied" in read.text
    assert "Unsupported <b>\nsecond" in read.text and "aten::frobnicate <here>" in read.text


nasty = st.text(st.sampled_from("<>&\"'`/= ab\n\u202e\x00;:"), max_size=25)


@given(nasty, nasty)
@settings(max_examples=80)
def test_no_text_becomes_markup(first: str, second: str) -> None:
    base = samples.run()
    run = replace(
        base,
        name=first,
        target=second,
        mode=first,
        sources=(
            replace(base.sources[0], lines=tuple(replace(line, text=second) for line in base.sources[0].lines)),
            replace(base.sources[1], name=first),
        ),
        findings=tuple(replace(f, id=second, title=first, reason=second, remedy=first, message=second) for f in base.findings),
        failures=tuple(replace(f, op=first, kind=second, message=first) for f in base.failures),
        modules=tuple(replace(m, path=second) for m in base.modules),
        programs=tuple(replace(p, op=first) for p in base.programs),
    )
    read = Reader(run_html(run))
    assert read.tags <= ALLOWED_TAGS and read.attributes <= ALLOWED_ATTRIBUTES
    assert not any("<" in style or '"' in style for style in read.styles)


def test_numbers_in_the_page_are_those_of_the_run() -> None:
    text = Reader(FRAGMENTS["full"]).text.replace("\u00a0", " ")
    for words in (
        "XLA:CPU",
        "856 ms",
        "measured",
        "5 → 3",
        "1.04 GB",
        "1 graph break",
        "2 CPU fallbacks",
        "models/net.py",
        "TL202",
        "96.0 ms",
        "2 × 48.0 ms",
        "line 4",
        "bf16[8,16,1024,1024]",
    ):
        assert words in text
    assert "Peak 1.04 GB at op 2, line 4: over half of it was made by line 2." in text


def test_a_mark_tells_reason_cost_and_remedy() -> None:
    tips = [tip for tip in Reader(FRAGMENTS["full"]).titles if "kthvalue" in tip]
    assert tips and all("No <lowering>." in tip and "96.0\u00a0ms" in tip and "topk" in tip for tip in tips)


def test_zeros_are_quiet() -> None:
    text = Reader(FRAGMENTS["empty"]).text
    assert "no exceptions, graph breaks, recompiles, CPU fallbacks, host syncs" in text


def test_long_lists_are_cut_and_say_so() -> None:
    run = samples.run()
    text = Reader(run_html(replace(run, findings=run.findings[:1] * 30))).text
    assert text.count("aten.kthvalue runs on the host") == 12 and "18\u00a0more findings not shown." in text


def test_the_comparison_marks_the_fastest_mode_and_keeps_bars_to_one_scale() -> None:
    fragment = FRAGMENTS["comparison"]
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%;height:14px;background", fragment)]
    assert widths == pytest.approx([100 * ms / 1440 for ms in (1310, 856, 1120)], abs=0.06)
    assert fragment.count("background-color:#2b7fd6") == 1
    assert "cpu against eager is too close to call." in Reader(fragment).text
    assert "failed" in Reader(fragment).text


def test_a_comparison_in_which_all_failed_still_shows() -> None:
    failed = samples.comparison().modes[3]
    only = Comparison("fuse", "fuse", (failed,), ())
    assert "NotImplementedError" in Reader(comparison_html(only)).text


def test_markup_is_escaped_once() -> None:
    assert escape('<a href="x">&') == "&lt;a href=&quot;x&quot;&gt;&amp;"
    assert element("td", "<", Markup("<b>ok</b>"), title='"') == '<td title="&quot;">&lt;<b>ok</b></td>'
    assert join(["<", Markup("&lt;")], "&") == "&lt;&amp;&lt;"
    assert element("td", "x", title="") == "<td>x</td>"
    assert escape("a\x00b\u202ec\td\n") == "a\ufffdb\ufffdc\td\n"


def test_backquotes_make_code() -> None:
    assert code_text("use `a<b`, or `c`", "s") == 'use <code style="s">a&lt;b</code>, or <code style="s">c</code>'
    assert code_text("one ` alone", "s") == "one ` alone"
