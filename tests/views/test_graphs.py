from __future__ import annotations

from dataclasses import replace

from tests.record import samples
from tpu_lab.record import Run
from tpu_lab.record.graphs import Graph, Region
from tpu_lab.record.happenings import GraphBreak
from tpu_lab.record.integrity import check
from tpu_lab.views import html, mime, text
from tpu_lab.views.graphs import MOST, graph_table, region_sentence


def test_regions_are_told_by_lines_and_reasons() -> None:
    regions = (Region(0, 2, 2, False, "statement"), Region(0, 3, 7, True), Region(0, 8, 8, False, "statement"), Region(0, 9, 9, True))
    words = region_sentence(replace(samples.run(), regions=regions))
    assert words == "Compiled together: lines 3–7, 9. As plain Python: 2, 8 (a statement Dynamo cannot take)."
    assert region_sentence(Run()) == ""


def test_graphs_are_rows_with_the_break_at_their_end() -> None:
    table = graph_table(samples.run())
    assert table.rows == [["graph 0", "cell", "line 2", "4", "2", "3", "break, line 3", "1.0"]] and table.unit == "µs"
    many = graph_table(replace(samples.run(), graphs=(Graph("g"),) * (MOST + 3)))
    assert (len(many.rows), many.more) == (MOST, 3) and many.rows[0][-2:] == ["its return", "before"]


def test_text_and_html_show_them_and_the_page_of_a_break() -> None:
    run = samples.run()
    assert "Graphs of torch.compile" in text.summary(run) and "| https://example.org/gb0109.html" in text.summary(run)
    page = html.run_html(run)
    assert "1 graph of torch.compile" in page.replace(" ", " ") and 'href="https://example.org/gb0109.html"' in page
    unsafe = replace(run, findings=tuple(replace(f, link="javascript:alert(1)") for f in run.findings))
    assert "javascript:" not in html.run_html(unsafe)


def test_a_run_cut_for_a_notebook_still_fits_together() -> None:
    run = replace(samples.run(), graph_breaks=(GraphBreak("item"),) * 300, graphs=(Graph("g", ended_by=299), Graph("h", ended_by=3)))
    small = mime.shrink(run, 4_000)
    check(small)
    assert [g.ended_by for g in small.graphs] == [-1, 3]
