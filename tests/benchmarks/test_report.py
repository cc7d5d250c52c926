"""What the benchmarks say about a figure, and where they write it. Nothing is measured here."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import report, timing
from benchmarks.children import measure
from benchmarks.figure import Figure, at_least, at_most, holds, times_cpu


@pytest.mark.parametrize(
    ("figure", "target", "met"),
    [
        (at_most(9, "a + b", 8.9, "µs"), "≤ 9 µs", True),
        (at_most(9, "a + b", 9.1, "µs"), "≤ 9 µs", False),
        (at_least(50, "generate", 49, "tokens/s"), "≥ 50 tokens/s", False),
        (times_cpu(1.6, "step", 160, 100, "ms"), "≤ 1.6 × CPU", True),
        (times_cpu(1.6, "step", 161, 100, "ms"), "≤ 1.6 × CPU", False),
        (holds("equal", False), "yes", False),
        (Figure("shown only", 3, "ms"), "", None),
    ],
)
def test_targets(figure: Figure, target: str, met: bool | None) -> None:
    assert (figure.target, figure.met) == (target, met)


def test_a_table_names_ratio_and_what_was_missed() -> None:
    text = report.as_text([at_most(9, "a + b", 18, "µs", cpu=2), holds("equal", True)])
    assert text.splitlines()[1].split() == ["a", "+", "b", "≤", "9", "µs", "18", "µs", "2", "µs", "9.00", "NOT", "MET"]
    assert text.splitlines()[2].split() == ["equal", "yes", "yes", "met"]


def test_the_page_keeps_what_stands_around_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    monkeypatch.setattr(report, "PAGE", page)
    page.write_text(f"# Title\n{report.BEGIN}\nold\n{report.END}\nrest\n")
    report.write_page("new")
    assert page.read_text() == f"# Title\n{report.BEGIN}\nnew\n{report.END}\nrest\n"
    page.write_text("# Title\n")
    with pytest.raises(ValueError, match="to write between"):
        report.write_page("new")


def test_the_real_page_has_its_markers() -> None:
    assert report.BEGIN in report.PAGE.read_text() and report.END in report.PAGE.read_text()


def test_a_busy_machine_is_told(tmp_path: Path) -> None:
    assert "not to be trusted" in report.as_markdown([], "command", "load average 9 on 2 cores")
    assert "not to be trusted" not in report.as_markdown([], "command", "")
    report.write_json(tmp_path / "figures.json", [at_most(9, "a + b", 18, "µs", cpu=2)], "command", "busy")
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["busy"] == "busy" and written["figures"][0]["ratio"] == 9 and written["figures"][0]["met"] is False


def test_the_fastest_block_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    calls: list[int] = []
    assert timing.fastest(lambda: calls.append(1), calls=4, blocks=3) == 0.5
    assert len(calls) == 4 + 3 * 4  # warm-up first


def double(value: int) -> int:
    return value * 2


def fail() -> None:
    raise KeyError("its last words")


def test_children_return_results_and_their_last_words() -> None:
    assert measure(double, 21) == 42
    with pytest.raises(RuntimeError, match="its last words"):
        measure(fail)


def test_neighbours_are_a_share() -> None:
    neighbours = timing.Neighbours()
    time.sleep(0.05)
    assert 0 <= neighbours.share() <= 1.5  # the kernel counts in ticks of 10 ms
