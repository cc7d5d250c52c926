from __future__ import annotations

from dataclasses import replace

from tests.record import samples
from tpu_lab.record import Run
from tpu_lab.record.happenings import Failure
from tpu_lab.record.memory import Memory
from tpu_lab.record.timing import Timing
from tpu_lab.record.totals import Totals
from tpu_lab.views import sentences, text
from tpu_lab.views.html import run_html
from tpu_lab.views.numbers import NBSP
from tpu_lab.views.source_table import CELL_LINES, source_tables
from tpu_lab.views.text_table import table, width


def plain(words: str) -> str:
    return words.replace(NBSP, " ")


def test_the_overview_names_target_time_ops_memory_and_counts() -> None:
    first, second = plain(text.overview(samples.run())).split("\n")
    assert first == "compile on XLA:CPU · r12 · sample & co"
    assert second.split(" · ") == [
        "856 ms (median of 3, 842–884 ms, first 5.12 s)",
        "5 ops → 3 kernels",
        "peak 1.04 GB",
        "1 exception",
        "1 graph break",
        "1 recompile",
        "2 CPU fallbacks",
        "1 host sync",
    ]


def test_lower_bounds_and_dropped_ops_are_told() -> None:
    run = replace(samples.run(), totals=Totals(ops=9, kernels=4, kernels_exact=False), memory=Memory(1000, exact=False), ops_dropped=4)
    assert "9 ops → ≥ 4 kernels · peak ≥ 1.00 kB · 4 ops not kept" in plain(text.overview(run))


def test_each_line_of_the_cell_stands_with_its_costs_and_marks() -> None:
    lines = plain(text.summary(samples.run(with_comparison=False))).split("\n")
    at = next(i for i, line in enumerate(lines) if line.endswith("Cell as it ran"))
    assert lines[at].split() == ["ms", "backward", "MB", "new", "line", "Cell", "as", "it", "ran"]
    assert lines[at + 2].split(None, 4) == ["3.0", "0.90", "268", "raised", "2  y = net(x)  # <script>alert('é')</script>"]
    assert lines[at + 3].split(None, 4) == ["22.4", "<0.01", "break", "3", "if y.sum().item() > 0:"]
    assert lines[at + 1].split() == ["1", "%%tpu", "eager"]
    columns = {line.index(code) for line, code in zip(lines[at + 1 : at + 4], ("%%tpu", "y = net", "if y.sum"), strict=True)}
    assert len(columns) == 1 and lines[at].index("Cell") in columns


def test_other_sources_show_only_lines_that_cost_without_their_indentation() -> None:
    tables = source_tables(samples.run())
    assert [t.title for t in tables] == ["Cell as it ran", "models/net.py"]
    assert [(row.number, row.text, row.time_ns) for row in tables[1].rows] == [(7, "return x @ self.w", 2_000_000)]


def test_a_long_cell_is_cut_and_says_so() -> None:
    run = samples.run(with_comparison=False)
    line = run.sources[0].lines[0]
    long = replace(run.sources[0], lines=tuple(replace(line, number=n) for n in range(1, CELL_LINES + 11)))
    assert f"... 10{NBSP}more lines" in text.summary(replace(run, sources=(long, run.sources[1])))


def test_findings_have_cost_reason_and_remedy_in_that_order() -> None:
    words = plain(text.summary(samples.run(with_comparison=False)))
    assert "2 findings" in words
    for lines in (
        (
            "TL202  aten.kthvalue runs on the host  line 4  96.0 ms (2 × 48.0 ms)",
            "No <lowering>. Moved 537 MB.",
            "→ Use `x.topk(2)`, which is native.",
        ),
        ("TL302  Python reads a value inside the graph  line 3", "A value is needed.", "→ goes away with TL201", "| Unsupported <b>", "| second"),
    ):
        assert "\n       ".join(lines) in words


def test_findings_are_worked_out_where_they_are_missing() -> None:
    assert ".item() waits for the device" in text.summary(replace(samples.run(), findings=()))


def test_exceptions_and_memory_are_told() -> None:
    words = plain(text.summary(samples.run(with_comparison=False)))
    assert "RuntimeError in aten.mm at line 2, models/net.py:7: mat1 and mat2 <shapes> cannot be multiplied" in words
    assert words.endswith("Peak 1.04 GB at op 2, line 4: over half of it was made by line 2.")


def test_an_interrupt_is_no_exception_and_has_no_empty_tail() -> None:
    failed = (Failure("", "KeyboardInterrupt", "", 1, 0, 2),)
    run = replace(samples.run(with_comparison=False), failures=failed)
    words = plain(text.summary(run))
    assert "KeyboardInterrupt at line 2, models/net.py:7\n" in words
    assert " · 1 interrupt · " in words and "exception" not in words.split("\n")[1]


def test_time_outside_the_lines_is_told_where_it_is_much() -> None:
    most = Totals(wall_ns=10_700_000_000, ops=2, kernels=1, op_ns=34_000_000, builds=2, build_ns=974_000_000)
    words = plain(text.summary(Run(totals=most)))
    assert "2 ops → 1 kernel · " in words
    assert "Line times are those of the ops: 974 ms compiling and 9.69 s in Python" in words
    assert "Line times" in plain(run_html(Run(totals=most))) and "tracing" not in words
    assert "torch.compile's tracing" in text.summary(Run(totals=most, mode="compile"))
    assert "Line times" not in text.summary(Run(totals=replace(most, wall_ns=35_000_000, build_ns=0)))
    assert "Line times" not in text.summary(Run(totals=replace(most, wall_ns=27_000_000, build_ns=24_000_000, op_ns=1_000_000)))


def test_the_most_expensive_ops_come_first() -> None:
    words = plain(text.summary(samples.run(with_comparison=False)))
    rows = words[words.index("Most expensive ops") :].split("\n")
    assert rows[0] == "Most expensive ops, 4 of 4 kinds"
    assert rows[2].split() == ["aten.kthvalue", "4", "f32[8,16]", "1", "48.0"]
    assert rows[3].split()[:4] == ["aten.mm", "Net.proj", "2", "bf16[8,16,1024,1024]"]
    queued = text.summary(replace(samples.run(), blocking=False))
    assert "ops were queued" in queued and "ops were queued" not in words


def test_an_empty_run_is_two_lines() -> None:
    assert plain(text.summary(Run())).split("\n") == ["eager on XLA:CPU", "0 · 0 ops → 0 kernels · peak 0"]


def test_a_comparison_says_who_is_faster_what_is_open_and_what_it_costs() -> None:
    words = plain(text.comparison(samples.comparison()))
    assert words.startswith(
        "compile is 1.5× faster than eager. cpu against eager is too close to call. fuse has no time: one of the two legs failed."
    )
    assert "cpu and eager are not apart (1.05–1.29 s against 1.27–1.44 s). About 30 repeats would separate them." in words
    assert "compile pays for itself from the 9th call. It costs 3.60 s more on the first call and saves 454 ms on each later one." in words
    assert "compile peaks 270 MB lower than eager." in words
    assert "Largest relative difference from cpu: 8.3e−7 in compile (net.weight), within the tolerance of 1.3e−6." in words
    rows = {line.split()[0]: line.split() for line in words[words.index("mode ") :].split("\n")}
    assert rows["eager"] == ["eager", "1.52", "1.31", "1.27–1.44", "1.31", "47", "12", "1", "1", "0", "0", "3.1e−7"]
    assert rows["cpu"][-1] == "reference"
    assert "fuse failed: NotImplementedError: aten::frobnicate <here>" in words


def test_sentences_for_the_other_outcomes() -> None:
    base = samples.comparison()
    eager, compiled, cpu, _ = base.modes
    same = replace(base, modes=(replace(eager, difference=replace(eager.difference, max_rel=0.0)), cpu))  # type: ignore[arg-type, type-var]
    assert sentences.numerics_sentence(same) == "All values equal those of cpu exactly."
    odd = replace(base, modes=(replace(eager, difference=replace(eager.difference, nonfinite=True, max_rel=None)), cpu))  # type: ignore[arg-type, type-var]
    assert sentences.numerics_sentence(odd) == "eager and cpu differ in NaN or ∞ in y."
    far = replace(base, modes=(replace(eager, difference=replace(eager.difference, max_rel=0.5)), cpu))  # type: ignore[arg-type, type-var]
    assert "outside the tolerance" in sentences.numerics_sentence(far)
    assert sentences.numerics_sentence(replace(base, modes=(cpu,))) == ""
    ahead = replace(base, verdicts=(replace(base.verdicts[0], break_even=1),))
    assert sentences.break_even_sentences(ahead) == ["compile is ahead from the 1st call."]
    never = replace(base, verdicts=(replace(base.verdicts[1], repeats_needed=None),))
    assert sentences.overlap_notes(never)[0].endswith("Their times vary too much for any number of repeats to tell.")
    equal = replace(never, modes=(replace(eager, timing=cpu.timing), *never.modes[1:]))
    assert sentences.overlap_notes(equal)[0].endswith("They are as good as equal.")
    once = replace(base, modes=(replace(eager, timing=replace(eager.timing, later_ns=())), cpu), verdicts=(base.verdicts[1],))
    assert "too few times" in sentences.overlap_notes(once)[0]
    assert compiled.mode in sentences.compare_sentences(base)[0]


def test_columns_are_aligned_and_empty_ones_left_out() -> None:
    rows = table(["n", "", "name"], [["1", "", "a"], ["22", "", "日本"]], "rrl")
    assert rows == [" n  name", " 1  a", "22  日本"]
    assert width("日本") == 4 and width("é") == 1 and width("e\u0301") == 1


def test_recorded_runs_are_not_called_the_same_cell() -> None:
    data = replace(samples.comparison(), recorded=True)
    assert "cells and starting states may differ, and no values were compared" in text.comparison(data)
    assert "Same cell" not in text.comparison(data)


def test_times_that_vary_widely_say_so() -> None:
    data = samples.comparison()
    wild = replace(data.modes[-1], failure="", device="cpu", mode="cpu", timing=Timing(10**9, (5 * 10**8, 9 * 10**9, 10**9)))
    notes = sentences.unsteady_notes(replace(data, modes=(*data.modes[:-1], wild)))
    assert notes == [
        "The times of cpu vary 18.0×: the machine was busy, or its threads waited for each other (OMP_NUM_THREADS=1 tells). Repeat when it is quiet."
    ]
