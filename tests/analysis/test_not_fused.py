"""Why not fused, on programs made by hand: two kernels and what may lie between."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tpu_lab.analysis.not_fused import not_fused, unknown_codes, with_not_fused
from tpu_lab.record import Program
from tpu_lab.record.fusion import Decision, NotFused
from tpu_lab.record.fusion_reasons import FusionReason
from tpu_lab.record.program import Edge, Instruction, Kernel
from tpu_lab.record.targets import CPU, target_named

A, B = "n1:aten.exp", "n2:aten.mm"


def instruction(name: str, opcode: str, op: str = "", shape: tuple[int, ...] = (64, 128), kernel: int = -1, target: str = "") -> Instruction:
    return Instruction(name, opcode, 0, "f32", shape, "{1,0}", "HBM", 32_768, 32_768, (), (), kernel, op, target)


def kernel(name: str, place: int, kind: str = "fusion", op: str = "") -> Kernel:
    return Kernel(name, kind, place, (place,), (op,) if op else (), (), False, "", "", 0.0, 0, 0, 0.0, "")


def program(first: Instruction, second: Instruction, kinds: tuple[str, str] = ("fusion", "fusion"), *decisions: Decision) -> Program:
    """Two kernels of one instruction each, the second using the first's result."""
    kernels = (kernel(first.name, 0, kinds[0], first.op), kernel(second.name, 1, kinds[1], second.op))
    edge = Edge(0, 1, 0, first.bytes, "HBM", 0, (1,))
    return Program(target=target_named("v6e"), instructions=(first, second), kernels=kernels, edges=(edge,), decisions=decisions)


def only(program: Program) -> NotFused:
    [found] = not_fused(program)
    return found


EXP, SIN = instruction("exp.1", "exponential", A), instruction("sin.1", "sine", B)


@pytest.mark.parametrize(
    ("first", "second", "kinds", "reason"),
    [
        (EXP, SIN, ("matmul", "matmul"), "two_matmuls"),
        (EXP, SIN, ("matmul", "fusion"), "after_matmul"),
        (EXP, SIN, ("collective", "fusion"), "collective"),
        (EXP, SIN, ("fusion", "copy"), "layout_change"),
        (instruction("s", "copy-start", A), SIN, ("single", "fusion"), "memory_move"),
        (instruction("r", "reduce", A, (64,)), SIN, ("single", "fusion"), "reduction_then_broadcast"),
        (instruction("r", "reduce", A, (64,)), instruction("s", "sine", B, (64,)), ("single", "single"), "after_reduction"),
        (instruction("r", "reduce", A, ()), SIN, ("single", "single"), "scalar_result"),
        (instruction("e", "exponential", A, (64,)), SIN, ("fusion", "fusion"), "small_value"),
        (EXP, instruction("s", "sort", B), ("fusion", "single"), "sort"),
        (instruction("g", "gather", A), SIN, ("fusion", "fusion"), "gather_scatter"),
        (EXP, instruction("w", "reduce-window", B), ("fusion", "single"), "window"),
        (instruction("v", "reverse", A), SIN, ("single", "fusion"), "not_fusible"),
        (EXP, instruction("c", "custom-call", B, target="tpu_custom_call"), ("fusion", "custom call"), "custom_call"),
        (EXP, instruction("c", "custom-call", B, target="X64SplitLow"), ("fusion", "custom call"), "emulated_dtype"),
        (instruction("b", "rng-bit-generator", A), SIN, ("single", "fusion"), "random"),
        (EXP, replace(SIN, computation=1), ("fusion", "fusion"), "control_flow"),
        (EXP, SIN, ("fusion", "fusion"), "unknown"),
    ],
)
def test_rules(first: Instruction, second: Instruction, kinds: tuple[str, str], reason: str) -> None:
    found = only(program(first, second, kinds))
    assert (found.producer, found.consumer, found.reason, found.source) == (A, B, reason, "rule")
    assert found.text == FusionReason.of(reason).sentence and found.remedy == FusionReason.of(reason).remedy


def test_on_the_cpu_a_matrix_product_is_a_library_call() -> None:
    there = replace(program(EXP, instruction("dot.1", "dot", B), ("fusion", "single")), target=CPU)
    assert only(there).reason == "library_call"


def rejected(producer: str, consumer: str, words: str) -> Decision:
    return Decision("tpu_fusion", 0, "rejected", producer, consumer, "", words)


def fused(producer: str, consumer: str, result: str, words: str = "") -> Decision:
    return Decision("tpu_fusion", 0, "fused", producer, consumer, result, words)


def test_the_compiler_s_last_words_are_the_evidence() -> None:
    early, late = (
        rejected("exp.1", "sin.1", "Not fusing MOF at: x.cc:1"),
        rejected("exp.1", "sin.1", "Not allowed at: tpu_instruction_fusion.cc:4409"),
    )
    found = only(program(EXP, SIN, ("fusion", "fusion"), early, late, rejected("exp.1", "other", "no")))
    assert (found.reason, found.source) == ("compiler_choice", "log")
    assert found.evidence == "Not allowed at: tpu_instruction_fusion.cc:4409 [4409: should not fuse with elementwise]"


def test_words_about_what_a_kernel_was_made_of_count() -> None:
    """A rejection names the parts; the kernels of the end have other names."""
    before = rejected("old", "part", "operand can not be duplicated at: instruction_fusion.cc:671")
    found = only(program(EXP, SIN, ("fusion", "fusion"), before, fused("old", "x", "exp.1"), fused("y", "part", "sin.1")))
    assert found.source == "log" and found.evidence.startswith("operand can not be duplicated")


def test_words_about_something_else_do_not_count() -> None:
    assert only(program(EXP, SIN, ("matmul", "matmul"), rejected("exp.1", "third", "no"), rejected("third", "sin.1", "no"))).source == "rule"


def test_words_without_a_place_speak_for_themselves() -> None:
    found = only(program(EXP, SIN, ("fusion", "fusion"), rejected("exp.1", "sin.1", "Fusion is not profitable.")))
    assert (found.reason, found.evidence) == ("compiler_choice", "Fusion is not profitable.")


def test_a_code_without_wording_is_unknown_and_counted() -> None:
    there = program(EXP, SIN, ("fusion", "fusion"), rejected("exp.1", "sin.1", "Not allowed at: tpu_instruction_fusion.cc:9999"))
    found = only(there)
    assert found.reason == "unknown" and "9999: not in the table of this version" in found.evidence
    assert unknown_codes(there) == {"tpu_instruction_fusion.cc:9999": 1}


def test_several_results_by_a_pass_without_words() -> None:
    found = only(program(EXP, SIN, ("matmul", "matmul"), fused("exp.0", "exp.1", "exp.1", "one kernel with several results")))
    assert found.source == "pass" and found.reason == "two_matmuls"


def test_a_copy_the_compiler_added_is_no_op() -> None:
    """exp → copy → sine is one pair, apart because of the copy."""
    copy = kernel("copy.1", 1, "copy")
    edges = (Edge(0, 1, 0, 100, "HBM", 0, (1,)), Edge(1, 2, 1, 200, "HBM", 1, (2,)))
    kernels = (kernel("exp.1", 0, op=A), copy, kernel("sin.1", 2, op=B))
    there = Program(target=target_named("v6e"), instructions=(EXP, instruction("copy.1", "copy"), SIN), kernels=kernels, edges=edges)
    found = only(there)
    assert (found.producer, found.consumer, found.reason) == (A, B, "layout_change")
    assert (found.producer_kernel, found.consumer_kernel, found.bytes) == (0, 2, 200)


def test_a_prefetch_is_neither_an_op_nor_the_reason() -> None:
    """exp → prefetch → matrix product, and a prefetch of an input."""
    kernels = (kernel("exp.1", 0, "matmul", A), kernel("copy-start.1", 1, "prefetch"), kernel("sin.1", 2, "matmul", B), kernel("in", 1, "prefetch"))
    edges = (Edge(0, 1, 0, 100, "HBM", 0, (1,)), Edge(1, 2, 1, 100, "VMEM", 1, (2,)), Edge(-1, 3, 1, 9, "HBM"), Edge(3, 2, 1, 9, "VMEM", 1, (2,)))
    there = Program(target=target_named("v6e"), instructions=(EXP, instruction("copy-done", "copy-done"), SIN), kernels=kernels, edges=edges)
    found = only(there)
    assert (found.producer, found.consumer, found.reason, found.space) == (A, B, "two_matmuls", "VMEM")


def test_several_consumers() -> None:
    there = program(EXP, SIN)
    there = replace(there, edges=(*there.edges, Edge(0, -1, 0, 100, "HBM", 0)))
    assert only(there).reason == "used_more_than_once"


def test_without_an_id_the_instruction_is_named() -> None:
    assert only(program(replace(EXP, op=""), SIN, ("matmul", "matmul"))).producer == "%exp.1"


def test_a_large_program_is_quick() -> None:
    count = 6000
    instructions = tuple(instruction(f"i.{i}", "exponential", f"n{i}:aten.exp", kernel=i) for i in range(count))
    kernels = tuple(kernel(f"i.{i}", i, op=f"n{i}:aten.exp") for i in range(count))
    edges = tuple(Edge(i, i + 1, i, 100, "HBM", i, (i + 1,)) for i in range(count - 1))
    decisions = tuple(rejected(f"i.{i}", f"i.{i + 1}", "Not allowed at: tpu_instruction_fusion.cc:4409") for i in range(count - 1))
    start = time.process_time()
    done = with_not_fused(Program(target=target_named("v6e"), instructions=instructions, kernels=kernels, edges=edges, decisions=decisions))
    assert len(done.not_fused) == count - 1 and {n.source for n in done.not_fused} == {"log"}
    assert time.process_time() - start < 20  # seconds; 0.2 on a quiet machine: it must not grow with the square
