from __future__ import annotations

from dataclasses import replace

from tests.record import program_samples
from tpu_lab.analysis.program_memory import advice, peak_rows
from tpu_lab.record.memory_advice import MemoryAdvice
from tpu_lab.record.program import PREDICTED, Program
from tpu_lab.views.targets import TargetTable, memory_text, over_sentence, target_lines


def overfull() -> Program:
    return replace(program_samples.program(), outcome="out_of_memory", message="RESOURCE_EXHAUSTED: Ran out of memory")


def test_every_table_says_that_it_is_predicted() -> None:
    table = TargetTable((program_samples.program(), overfull()))
    assert PREDICTED in table.summary() and PREDICTED in table.to_html()
    assert PREDICTED in program_samples.program().summary()


def test_a_row_tells_time_memory_and_limits() -> None:
    text = TargetTable((program_samples.program(),)).summary()
    header, row = text.splitlines()[1:3]
    assert "bound, ns" in header and "peak, kB" in header and "of, GB" in header and row.split()[6:8] == ["8.2", "33.6"]
    assert row.startswith("TPU v6e") and row.rstrip().endswith("HBM")
    assert "float64 is emulated" in text


def test_what_does_not_fit_is_a_table_of_what_fills_it() -> None:
    program = overfull()
    assert over_sentence(program).startswith("Needs 8.19") and "192\u00a0B more" in over_sentence(program)
    rows = peak_rows(program)
    assert [(r.label, r.bytes, r.padding, r.place) for r in rows] == [("x", 4096, 896, ""), ("n2:aten.tanh", 4096, 896, "model.py:12")]
    text = memory_text(program)
    assert "f32[8,100]" in text and "model.py:12" in text and "layers.0" in text
    assert text in TargetTable((program,)).summary()


def test_advice_is_given_for_what_is_large() -> None:
    found = dict(advice(overfull()))
    assert found[MemoryAdvice.BFLOAT16] == 4096 and found[MemoryAdvice.SHARD] == 4096
    assert found[MemoryAdvice.CHECKPOINT] == 4096, "made by a forward op of a program with a backward pass"
    assert MemoryAdvice.PADDING not in found
    assert advice(Program()) == ()


def test_html_escapes_names() -> None:
    assert "<b>x" not in TargetTable((replace(program_samples.program(), name="<b>x"),)).to_html()


def test_a_refused_program_shows_the_compilers_words() -> None:
    refused = Program(name="f", target=program_samples.program().target, outcome="refused", message="UNIMPLEMENTED: s64")
    assert "UNIMPLEMENTED: s64" in TargetTable((refused,)).summary() and "refused" in TargetTable((refused,)).summary()


def test_the_list_of_targets() -> None:
    assert "tpu7x" in target_lines() and "Ironwood" in target_lines()
