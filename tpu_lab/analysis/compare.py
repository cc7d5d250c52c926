"""Runs of one cell in several modes, side by side: who is faster, by how much, and whether that is settled.

Rule for "too close to call": two modes differ if the ranges of their medians do not overlap. The range is the distribution-free
95 % confidence interval of the median (order statistics; Conover, Practical Nonparametric Statistics, section 3.2). Up to 8 repeats it is
the span from the shortest to the longest repeat; with more it narrows, so that more repeats can settle a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import variance

from ..errors import OptionError, one_of
from ..record.comparison import Comparison, Difference, ModeResult, Verdict
from ..record.run import Run
from ..record.timing import Timing

MIN_REPEATS = 3
"""With fewer repeats no ratio is given."""
MOST_REPEATS = 1_000
"""More repeats than this are not suggested."""
CURVE_STEPS = 60
"""Steps of a leg's memory curve."""
_CONFIDENCE = 0.95
_TWO_SIGMA = 1.96 * math.sqrt(math.pi / 2)
"""A median of n normal samples has standard error sqrt(pi/2) * sigma / sqrt(n)."""
_MARGIN = 1.3
"""Makes the suggested repeats enough in about four of five cases: (2 * 1.96 + 0.84 * sqrt(2)) / (2 * 1.96)."""


def compare(
    runs: Mapping[str, Run],
    baseline: str = "",
    reference: str = "",
    differences: Mapping[str, Difference] | None = None,
    failures: Mapping[str, str] | None = None,
    recorded: bool = False,
) -> Comparison:
    """Compares runs of the same cell, by mode in the order to show; `recorded`: any runs, whose values nobody compared.

    `baseline` is the mode others are timed against (default: the first), `reference` the one whose numbers count (default:
    `cpu` if there, else the baseline). `differences` gives each mode's largest numeric difference from the reference,
    `failures` the exception text of modes that did not finish. Raises OptionError for a name that is not in `runs`.
    """
    if not runs:
        raise OptionError("a comparison of no runs", accepted="at least one mode")
    baseline = baseline or next(iter(runs))
    reference = reference or ("cpu" if "cpu" in runs else baseline)
    for name in (baseline, reference, *(differences or {}), *(failures or {})):
        if name not in runs:
            raise OptionError(f"mode {name!r} was not run", accepted=one_of(runs))
    results = tuple(mode_result(mode, run, _finite((differences or {}).get(mode)), (failures or {}).get(mode, "")) for mode, run in runs.items())
    base = next(result for result in results if result.mode == baseline)
    verdicts = tuple(verdict(result, base) for result in results if result.mode != baseline)
    return Comparison(baseline, reference, results, verdicts, recorded)


def mode_result(mode: str, run: Run, difference: Difference | None = None, failure: str = "") -> ModeResult:
    """One leg's row, from its run."""
    totals = run.totals
    return ModeResult(
        mode=mode,
        device=run.device,
        target=run.target,
        run_id=run.id,
        timing=run.timing,
        peak_bytes=run.memory.peak_bytes,
        peak_exact=run.memory.exact,
        ops=totals.ops,
        kernels=totals.kernels,
        kernels_exact=totals.kernels_exact,
        syncs=totals.syncs,
        fallbacks=totals.fallbacks,
        graph_breaks=totals.graph_breaks,
        recompiles=totals.recompiles,
        difference=difference,
        failure=failure,
        curve=_steps(run),
    )


def _steps(run: Run) -> tuple[int, ...]:
    """The memory curve of a run at `CURVE_STEPS` even steps; where a step has no point, what was alive before goes on."""
    points, last = run.memory.curve, max(run.totals.ops, 1)
    steps = [-1] * min(CURVE_STEPS, last)
    for point in points:
        at = min(point.op * len(steps) // last, len(steps) - 1)
        steps[at] = max(steps[at], point.nbytes)
    alive, found = run.memory.start_bytes, []
    for value in steps:
        alive = value if value >= 0 else alive
        found.append(alive)
    return tuple(found) if points else ()


def verdict(result: ModeResult, base: ModeResult) -> Verdict:
    """A mode against the baseline: faster, slower, too close to call, or failed."""
    if result.failure or base.failure:
        return Verdict(result.mode, base.mode, "failed")
    ours, theirs = result.timing, base.timing
    extra = ours.first_ns - theirs.first_ns
    if not settled(ours, theirs):
        return Verdict(result.mode, base.mode, "close", repeats_needed=repeats_to_settle(ours, theirs), extra_first_ns=extra)
    saving = theirs.steady_ns - ours.steady_ns
    ratio = max(theirs.steady_ns, 1.0) / max(ours.steady_ns, 1.0)
    if saving > 0:
        return Verdict(result.mode, base.mode, "faster", ratio, None, extra, saving, break_even(extra, saving))
    return Verdict(result.mode, base.mode, "slower", 1 / ratio, None, extra)


def break_even(extra_first_ns: float, saving_ns: float) -> int | None:
    """The first call, from 1, by which a mode has made good its dearer first call; None if it saves nothing."""
    if extra_first_ns <= 0:
        return 1
    if saving_ns <= 0:
        return None
    return math.ceil(extra_first_ns / saving_ns) + 1


def median_range(samples: Sequence[int]) -> tuple[int, int]:
    """The 95 % confidence interval of the median; the whole span for up to 8 samples."""
    ordered = sorted(samples)
    skip = _skipped(len(ordered))
    return ordered[skip], ordered[-1 - skip]


def _skipped(count: int) -> int:
    """How many samples at each end lie outside the interval: the most for which both tails together have at most 5 %."""
    if count > 1000:  # the binomial's normal approximation
        return int(count / 2 - 0.98 * math.sqrt(count))
    skip, tail = -1, 0
    while 2 * (tail := tail + math.comb(count, skip + 1)) <= (1 - _CONFIDENCE) * 2**count:
        skip += 1
    return max(skip, 0)


def settled(a: Timing, b: Timing) -> bool:
    """Whether one is faster beyond doubt: enough repeats, and the ranges of the medians do not overlap."""
    if min(a.repeats, b.repeats) < MIN_REPEATS:
        return False
    (low_a, high_a), (low_b, high_b) = median_range(a.later_ns), median_range(b.later_ns)
    return high_a < low_b or high_b < low_a


def repeats_to_settle(a: Timing, b: Timing) -> int | None:
    """About how many repeats of each would separate two timings; None if more than a person would run.

    The ranges stop overlapping when the medians are further apart than the sum of their half widths, which shrink with the
    square root of the number of repeats.
    """
    if min(a.repeats, b.repeats) < MIN_REPEATS:
        return 2 * MIN_REPEATS + 1
    apart = abs(a.steady_ns - b.steady_ns)
    spread = math.sqrt(variance(a.later_ns)) + math.sqrt(variance(b.later_ns))
    if apart == 0:
        return None
    needed = math.ceil((_MARGIN * _TWO_SIGMA * spread / apart) ** 2)
    needed = max(needed, max(a.repeats, b.repeats) + 2, 9)
    return _round_up(needed) if needed <= MOST_REPEATS else None


def _round_up(count: int) -> int:
    """An estimate is not shown to the last digit."""
    step = 1 if count < 20 else 10 if count < 100 else 50
    return math.ceil(count / step) * step


def _finite(difference: Difference | None) -> Difference | None:
    """NaN and infinity do not go into a record: they become `nonfinite`."""
    if difference is None:
        return None
    largest = tuple(replace(one, max_rel=_or_none(one.max_rel)) for one in difference.largest)
    difference = replace(difference, largest=largest)
    if all(value is None or math.isfinite(value) for value in (difference.max_abs, difference.max_rel)):
        return difference
    return replace(difference, max_abs=_or_none(difference.max_abs), max_rel=_or_none(difference.max_rel), nonfinite=True)


def _or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
