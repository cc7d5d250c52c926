from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record import samples
from tpu_lab.analysis.compare import break_even, compare, median_range, mode_result, repeats_to_settle, settled
from tpu_lab.errors import OptionError
from tpu_lab.record import Run
from tpu_lab.record.comparison import Difference, Verdict
from tpu_lab.record.memory import CurvePoint
from tpu_lab.record.timing import Timing


def run(first: int, *later: int, id: str = "r") -> Run:
    return replace(samples.run(with_comparison=False), id=id, timing=Timing(first, later))


def verdicts(**runs: Run) -> dict[str, Verdict]:
    return {v.mode: v for v in compare(runs).verdicts}


def test_the_example_of_the_design() -> None:
    """eager 1.31 s, compile 0.856 s: 1.5 times, paid for from the 9th call; cpu overlaps eager."""
    eager = run(1520, 1310, 1270, 1440, 1300, 1330, 1290, 1350)
    compiled = run(5120, 856, 842, 884, 850, 860, 870, 853)
    cpu = run(1150, 1120, 1050, 1290, 1100, 1130, 1090, 1200)
    found = verdicts(eager=eager, compile=compiled, cpu=cpu)
    assert found["compile"].verdict == "faster"
    assert found["compile"].ratio == pytest.approx(1310 / 856)
    assert (found["compile"].extra_first_ns, found["compile"].saving_ns, found["compile"].break_even) == (3600, 454, 9)
    assert (found["cpu"].verdict, found["cpu"].ratio, found["cpu"].break_even) == ("close", None, None)
    assert found["cpu"].repeats_needed is not None and found["cpu"].repeats_needed > 7


def test_the_slower_mode_has_a_ratio_and_no_break_even() -> None:
    found = verdicts(eager=run(100, 10, 11, 12), fuse=run(90, 30, 31, 33))["fuse"]
    assert (found.verdict, found.break_even, found.saving_ns) == ("slower", None, None)
    assert found.ratio == pytest.approx(31 / 11) and found.extra_first_ns == -10


def test_few_repeats_give_no_ratio() -> None:
    for later in ((), (10,), (10, 11)):
        found = verdicts(eager=run(100, 500, 501, 502), compile=run(100, *later))["compile"]
        assert (found.verdict, found.ratio, found.repeats_needed) == ("close", None, 7)


def test_a_failed_leg_has_no_time_and_fails_no_other() -> None:
    result = compare({"eager": run(9, 5, 5, 5), "fuse": Run(), "cpu": run(9, 1, 1, 1)}, failures={"fuse": "RuntimeError: no"})
    assert [(v.mode, v.verdict) for v in result.verdicts] == [("fuse", "failed"), ("cpu", "faster")]
    assert result.modes[1].failure == "RuntimeError: no"
    broken = compare({"eager": Run(), "cpu": run(9, 1, 1, 1)}, failures={"eager": "no"})
    assert [v.verdict for v in broken.verdicts] == ["failed"]


def test_rows_come_from_the_runs() -> None:
    base = run(9, 5, id="r7")
    row = compare({"eager": base}).modes[0]
    totals = base.totals
    assert (row.run_id, row.ops, row.kernels, row.syncs, row.fallbacks) == ("r7", totals.ops, totals.kernels, totals.syncs, totals.fallbacks)
    assert (row.graph_breaks, row.recompiles, row.peak_bytes, row.peak_exact) == (
        totals.graph_breaks,
        totals.recompiles,
        base.memory.peak_bytes,
        True,
    )


def test_baseline_and_reference() -> None:
    modes = {"eager": run(1, 1), "compile": run(1, 1), "cpu": run(1, 1)}
    assert (compare(modes).baseline, compare(modes).reference) == ("eager", "cpu")
    named = compare(modes, baseline="cpu", reference="compile")
    assert [(v.mode, v.against) for v in named.verdicts] == [("eager", "cpu"), ("compile", "cpu")] and named.reference == "compile"
    assert compare({"eager": run(1, 1), "fuse": run(1, 1)}).reference == "eager"


@pytest.mark.parametrize("wrong", [{"baseline": "x"}, {"reference": "x"}, {"differences": {"x": Difference()}}, {"failures": {"x": ""}}])
def test_an_unknown_mode_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=r"mode 'x' was not run\. Accepted: eager"):
        compare({"eager": run(1, 1)}, **wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no runs"):
        compare({})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_differences_that_are_not_finite_are_flagged(value: float) -> None:
    for difference in (Difference(value, 0.5, "y"), Difference(0.5, value, "y")):
        kept = compare({"eager": run(1, 1), "cpu": run(1, 1)}, differences={"eager": difference}).modes[0].difference
        assert kept is not None and kept.nonfinite and kept.name == "y"
        assert {kept.max_abs, kept.max_rel} == {None, 0.5}


@given(st.integers(-1000, 100_000), st.integers(-100, 1000))
def test_break_even_is_the_first_call_by_which_it_has_paid(extra: int, saving: int) -> None:
    found = break_even(extra, saving)
    if extra > 0 and saving <= 0:
        assert found is None
        return
    assert found is not None

    def ahead(calls: int) -> int:
        return (calls - 1) * saving - extra

    assert ahead(found) >= 0 or found == 1
    assert found == 1 or ahead(found - 1) < 0


def test_the_range_of_a_median_is_the_whole_span_for_few_samples_and_narrower_for_many() -> None:
    for count in range(1, 9):
        assert median_range(range(count)) == (0, count - 1)
    assert median_range(range(9)) == (1, 7)
    assert median_range([5, 1, 9, 3, 7, 2, 8, 4, 6]) == (2, 8)
    # tabulated 95 % intervals for the median, e.g. Conover: n = 20 from the 6th to the 15th, n = 30 from the 10th to the 21st
    assert median_range(range(1, 21)) == (6, 15)
    assert median_range(range(1, 31)) == (10, 21)
    low, high = median_range(range(2000))
    assert 950 < low < 960 and 1040 < high < 1050


def test_the_range_holds_the_true_median_in_about_95_of_100_draws() -> None:
    rng = random.Random(0)
    draws = [median_range([int(rng.gauss(0, 1e6)) for _ in range(25)]) for _ in range(2000)]
    inside = sum(low <= 0 <= high for low, high in draws) / 2000
    assert 0.94 < inside < 0.975


def test_settled_means_no_overlap() -> None:
    a, b = Timing(0, (10, 11, 12)), Timing(0, (13, 14, 15))
    assert settled(a, b) and settled(b, a)
    assert not settled(a, Timing(0, (12, 14, 15)))
    assert not settled(a, Timing(0, (13, 14)))


def test_the_suggested_repeats_usually_settle_it() -> None:
    rng = random.Random(1)

    def samples_of(mean: float, count: int) -> Timing:
        return Timing(0, tuple(int(rng.gauss(mean, 40)) for _ in range(count)))

    settled_count, asked = 0, 0
    while asked < 100:
        a, b = samples_of(1000, 7), samples_of(1040, 7)
        needed = repeats_to_settle(a, b)
        if settled(a, b) or needed is None or abs(abs(a.steady_ns - b.steady_ns) - 40) > 10:
            continue  # only pairs whose first seven repeats tell the true distance
        asked += 1
        settled_count += settled(samples_of(1000, needed), samples_of(1040, needed))
    assert settled_count > 55


def test_no_number_of_repeats_separates_equal_timings() -> None:
    same = Timing(0, (10, 12, 14))
    assert repeats_to_settle(same, same) is None
    assert repeats_to_settle(Timing(0, (1000, 2000, 3000)), Timing(0, (1001, 2001, 3001))) is None


def test_a_leg_s_memory_is_told_at_even_steps_of_its_ops() -> None:
    base = samples.run(with_comparison=False)
    points = tuple(CurvePoint(op, nbytes) for op, nbytes in ((0, 10), (1, 30), (119, 20)))
    long = replace(base, totals=replace(base.totals, ops=120), memory=replace(base.memory, start_bytes=5, curve=points))
    curve = mode_result("eager", long).curve
    assert len(curve) == 60
    assert (curve[0], curve[1], curve[58], curve[59]) == (30, 30, 30, 20)
    assert mode_result("eager", replace(long, memory=replace(long.memory, curve=()))).curve == ()
