"""Sentences that state results: what a run took, where its peak is, how modes compare. Plain text for every view."""

from __future__ import annotations

from ..record.comparison import Comparison, ModeResult, Verdict
from ..record.run import Run
from .numbers import at_least, counted, digits, duration, ordinal, ratio, size, spread
from .source_table import line_label

SIGNIFICANT_MEMORY = 0.02
"""Peaks closer than this share are called equal."""
EQUAL = 0.05
"""Medians closer than this share, and not apart by their ranges, are called equal."""
UNSTEADY = 3
"""Longest over shortest repeat from which times are called unsteady."""

INTERRUPT = "KeyboardInterrupt"
UNEXPLAINED, UNEXPLAINED_NS = 0.1, 100_000_000
"""From this share of a run's time on, and this time, what line times leave out is told."""


def headline(run: Run) -> str:
    """`eager on XLA:CPU`; another device than tpu is named."""
    where = run.target if run.device in ("tpu", "cpu") else f"{run.target} ({run.device})"
    return f"{run.mode} on {where}"


def wall(run: Run) -> tuple[str, str]:
    """The time that counts, and what stands behind it in small print."""
    timing = run.timing
    if timing.repeats:
        return duration(timing.steady_ns), f"median of {timing.repeats}, {spread(timing)}, first {duration(timing.first_ns)}"
    built = run.totals.build_ns
    loaded = sum(program.cache == "disk" for program in run.programs)
    programs = counted(run.totals.builds, "program") + (f", {loaded} from disk" if loaded else "")
    return duration(timing.first_ns or run.totals.wall_ns), f"of it {duration(built)} compiling {programs}" if built else ""


def kernels_counted(run: Run) -> str:
    """`3 kernels`, `1 kernel`, `≥ 4 kernels`."""
    return f"{kernels(run)} {'kernel' if run.totals.kernels == 1 else 'kernels'}"


def kernels(run: Run) -> str:
    """Kernels of the run, marked if it is a lower bound."""
    return at_least(f"{run.totals.kernels:,}", run.totals.kernels_exact)


def peak(run: Run) -> str:
    """The peak of live bytes, marked if it is a lower bound."""
    return at_least(size(run.memory.peak_bytes), run.memory.exact)


def happenings(run: Run) -> list[tuple[str, int, str]]:
    """The counts of a summary: mark, count, text. Zeros are in the list too."""
    totals = run.totals
    interrupts = sum(failure.kind == INTERRUPT for failure in run.failures)
    rows = (
        ("failure", totals.failures - interrupts, "exception", ""),
        *((("failure", interrupts, "interrupt", ""),) if interrupts else ()),
        ("break", totals.graph_breaks, "graph break", ""),
        ("recompile", totals.recompiles, "recompile", ""),
        ("fallback", totals.fallbacks, "CPU fallback", ""),
        ("sync", totals.syncs, "host sync", ""),
    )
    return [(mark, number, counted(number, noun, plural)) for mark, number, noun, plural in rows]


def time_sentence(run: Run) -> str:
    """What the times of lines leave out, where that is much; empty otherwise."""
    totals = run.totals
    outside = max(totals.wall_ns - totals.op_ns - totals.build_ns - totals.sync_ns - totals.fallback_ns, 0)
    if not run.blocking or not totals.ops or totals.flushes or outside + totals.build_ns < max(UNEXPLAINED * totals.wall_ns, UNEXPLAINED_NS):
        return ""
    built = f"{duration(totals.build_ns)} compiling and " if totals.build_ns else ""
    tracing = ", torch.compile's tracing" if run.graphs or run.mode == "compile" else ""
    python = f"{duration(outside)} in Python (the cell's own code{tracing}, in a first cell loading the device)"
    return f"Line times are those of the ops: {built}{python} are not in them."


def peak_sentence(run: Run) -> str:
    """Where the peak is and which tensor or line makes the largest part of it; empty without memory."""
    memory = run.memory
    if not memory.peak_bytes:
        return ""
    at = f" at op {memory.peak_op}" if memory.peak_op >= 0 else " at the start"
    if 0 <= memory.peak_op < len(run.ops) and not run.ops_dropped:
        op = run.ops[memory.peak_op]
        label = line_label(run, op.location, op.cell_location)
        at += f", {label}" if label else ""
    text = f"Peak {peak(run)}{at}"
    if memory.lines and memory.lines[0].nbytes * 2 > memory.peak_bytes:
        label = line_label(run, memory.lines[0].location)
        made = f"was made by {label}" if label else "was there before the run"
        text += f": over half of it {made}"
    return text + "."


def compare_sentences(comparison: Comparison) -> list[str]:
    """Speed against the baseline, one clause for each mode."""
    return [_speed(verdict) for verdict in comparison.verdicts] or [f"{comparison.baseline} is the only mode."]


def conditions(comparison: Comparison) -> str:
    """What the legs have in common."""
    repeats = [r.timing.repeats for r in comparison.modes if not r.failure] or [0]
    each = counted(min(repeats), "repeat") if min(repeats) == max(repeats) else f"{min(repeats)} to {max(repeats)} repeats"
    if comparison.recorded:
        return f"Recorded runs, {each} each: cells and starting states may differ, and no values were compared"
    return f"Same cell, same starting state, {each} each after the first call"


def _speed(verdict: Verdict) -> str:
    if verdict.verdict == "failed":
        return f"{verdict.mode} has no time: one of the two legs failed."
    if verdict.ratio is None:
        return f"{verdict.mode} against {verdict.against} is too close to call."
    return f"{verdict.mode} is {ratio(verdict.ratio)} {verdict.verdict} than {verdict.against}."


def overlap_notes(comparison: Comparison) -> list[str]:
    """For each pair that is too close to call: the ranges, and the repeats that would settle it."""
    by_mode = {result.mode: result for result in comparison.modes}
    notes = []
    for verdict in comparison.verdicts:
        if verdict.verdict != "close":
            continue
        ours, theirs = by_mode[verdict.mode].timing, by_mode[verdict.against].timing
        if min(ours.repeats, theirs.repeats) < 2:
            text = f"{verdict.mode} and {verdict.against} ran too few times to compare."
        else:
            text = f"{verdict.mode} and {verdict.against} are not apart ({spread(ours)} against {spread(theirs)})."
        needed = verdict.repeats_needed
        if needed:
            notes.append(f"{text} About {needed} repeats would separate them.")
        elif abs(ours.steady_ns - theirs.steady_ns) <= EQUAL * max(ours.steady_ns, theirs.steady_ns):
            notes.append(f"{text} They are as good as equal.")
        else:
            notes.append(f"{text} Their times vary too much for any number of repeats to tell.")
    return notes


def unsteady_notes(comparison: Comparison) -> list[str]:
    """For each mode whose later times differ widely: how much, and what may cause it."""
    notes = []
    for result in comparison.modes:
        timing = result.timing
        if not result.failure and timing.repeats > 1 and timing.high_ns > UNSTEADY * timing.low_ns:
            threads = ", or its threads waited for each other (OMP_NUM_THREADS=1 tells)" if result.device == "cpu" else ""
            notes.append(
                f"The times of {result.mode} vary {ratio(timing.high_ns / timing.low_ns)}: the machine was busy{threads}. Repeat when it is quiet."
            )
    return notes


def break_even_sentences(comparison: Comparison) -> list[str]:
    """From which call a faster mode has paid for its first one."""
    found = []
    for verdict in comparison.verdicts:
        if verdict.verdict != "faster" or verdict.break_even is None or verdict.saving_ns is None or verdict.extra_first_ns is None:
            continue
        if verdict.break_even == 1:
            found.append(f"{verdict.mode} is ahead from the 1st call.")
            continue
        costs = f"It costs {duration(verdict.extra_first_ns)} more on the first call and saves {duration(verdict.saving_ns)} on each later one."
        found.append(f"{verdict.mode} pays for itself from the {ordinal(verdict.break_even)} call. {costs}")
    return found


def memory_sentences(comparison: Comparison) -> list[str]:
    """Peak memory against the baseline."""
    base = next(result for result in comparison.modes if result.mode == comparison.baseline)
    found = []
    for result in comparison.modes:
        gap = result.peak_bytes - base.peak_bytes
        if result.mode == base.mode or result.failure or abs(gap) <= SIGNIFICANT_MEMORY * base.peak_bytes:
            continue
        found.append(f"{result.mode} peaks {size(abs(gap))} {'higher' if gap > 0 else 'lower'} than {base.mode}.")
    return found


def difference_text(result: ModeResult, comparison: Comparison) -> str:
    """The largest relative difference of a mode, `reference` for the mode compared with, empty if none was taken."""
    if result.mode == comparison.reference:
        return "reference"
    difference = result.difference
    if difference is None:
        return ""
    if difference.nonfinite:
        return "NaN or ∞ in one only"
    return digits(difference.max_rel, narrow=True) if difference.max_rel is not None else ""


def largest_sentence(comparison: Comparison) -> str:
    """Which values differ most, with the lines that made them; empty where no more than one does."""
    parts = []
    for result in comparison.modes:
        largest = result.difference.largest if result.difference is not None else ()
        if len(largest) > 1:
            named = [
                f"{one.name}{f' (line {one.line})' if one.line else ''} {digits(one.max_rel, narrow=True) if one.max_rel is not None else 'NaN or ∞'}"
                for one in largest
            ]
            parts.append(f"{result.mode}: {', '.join(named)}")
    return f"Values that differ most: {'; '.join(parts)}." if parts else ""


def numerics_sentence(comparison: Comparison) -> str:
    """The largest difference over all modes, where it is, and whether it is within tolerance; empty if nothing was compared."""
    rows = [(result, result.difference) for result in comparison.modes if result.difference is not None and result.mode != comparison.reference]
    for result, difference in rows:
        if difference.nonfinite:
            where = f" in {difference.name}" if difference.name else ""
            return f"{result.mode} and {comparison.reference} differ in NaN or ∞{where}."
    known = [(result, difference, difference.max_rel) for result, difference in rows if difference.max_rel is not None]
    if not known:
        return ""
    result, difference, largest = max(known, key=lambda row: row[2])
    if largest == 0:
        return f"All values equal those of {comparison.reference} exactly."
    where = f" ({difference.name})" if difference.name else ""
    text = f"Largest relative difference from {comparison.reference}: {digits(largest, narrow=True)} in {result.mode}{where}"
    if difference.tolerance is not None:
        text += f", {'within' if largest <= difference.tolerance else 'outside'} the tolerance of {digits(difference.tolerance, narrow=True)}"
    return text + "."
