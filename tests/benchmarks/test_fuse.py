"""The benchmark of the fused mode: what a run that is taken up again measures, and what counts."""

from __future__ import annotations

from benchmarks import fuse


def _result(milliseconds: float, others: float) -> dict[str, float]:
    return {"steady_ms": milliseconds, "early_s": 1.0, "early_steps": 10, "peak_mb": 1.0, "new": 0, "others": others}


def test_what_is_missing_is_measured_first_and_then_what_was_disturbed() -> None:
    kept: fuse.Found = {"a": {"strict": _result(1, 0.5), "fuse": _result(1, 0.0)}, "b": {"strict": _result(1, 0.0), "fuse": None}}
    assert fuse._to_measure(kept, ["a", "b"], ["strict", "fuse"]) == [("b", "fuse"), ("a", "strict")]
    assert fuse._to_measure({}, ["a"], ["strict", "fuse"]) == [("a", "strict"), ("a", "fuse")]


def test_the_less_disturbed_of_two_measurements_counts() -> None:
    quiet, disturbed = _result(2, 0.01), _result(1, 0.4)
    assert fuse._better(quiet, disturbed) is quiet and fuse._better(disturbed, quiet) is quiet
    assert fuse._better(None, disturbed) is disturbed and fuse._better(quiet, None) is None


def test_figures_are_of_the_workloads_that_ran_in_both_modes() -> None:
    found: fuse.Found = {"a": {"strict": _result(2, 0), "fuse": _result(1, 0)}, "b": {"strict": _result(2, 0), "fuse": None}}
    figures = {f.name: f for f in fuse.targets(found)}
    assert figures["speed-up of fuse over strict, geometric mean"].measured == 2
    assert [row[-3:] for row in fuse._rows(found, ["strict", "fuse"])] == [
        ["fuse/strict speed", "until take-over", "peak/strict"],
        ["2.00", "1.00", "1.00"],
        ["-", "-", "-"],
    ]
