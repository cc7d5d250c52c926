"""The line that says how far a compile is."""

from __future__ import annotations

import time

import pytest

from tpu_lab.notebook import progress


def test_the_line_says_what_is_left_as_far_as_it_is_known() -> None:
    assert progress.line("v6e", 12, 80) == "v6e: compiling for 12 s, about 68 s left (an earlier one of like size tells)"
    assert progress.line("v6e", 12, 250) == "v6e: compiling for 12 s, about 3 min 58 s left (an earlier one of like size tells)"
    assert progress.line("v6e", 90, 80) == "v6e: compiling for 90 s; an earlier one of like size took 80 s"
    assert "no earlier compile" in progress.line("v6e", 12, None)


def test_only_a_long_block_is_told_of_and_the_line_goes_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    with progress.told("v6e", None, lines.append):
        pass
    assert lines == []
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    with pytest.raises(KeyboardInterrupt), progress.told("v6e", 80.0, lines.append):
        deadline = time.monotonic() + 60
        while len(lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert len(lines) >= 3 and all(text.startswith("v6e: compiling for 0 s, about ") for text in lines[:2]) and lines[-1] == ""
