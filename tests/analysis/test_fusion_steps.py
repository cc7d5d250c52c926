from __future__ import annotations

from tpu_lab.analysis.fusion_steps import fusion_steps, joined_by
from tpu_lab.record import Program
from tpu_lab.record.fusion import Decision

EXP, SIN, MM = "n1:aten.exp", "n2:aten.sin", "n3:aten.mm"
DECISIONS = (
    Decision("tpu_fusion", 0, "rejected", "exp.1", "mm.1", "", "Not allowed", (EXP,), (MM,)),
    Decision("tpu_fusion", 1, "fused", "exp.1", "sin.1", "fusion.2", "", (EXP,), (SIN,)),
    Decision("tpu_multi_output_fusion", 2, "fused", "fusion.2", "mm.1", "mm.1", "one kernel with several results", (EXP, SIN), (MM,)),
)


def test_steps_tell_what_happened_in_order() -> None:
    steps = fusion_steps(Program(decisions=DECISIONS))
    assert [step.number for step in steps] == [1, 2, 3]
    assert [step.sentence for step in steps] == [
        "tpu_fusion left exp.1 out of mm.1: Not allowed",
        "tpu_fusion put exp.1 into sin.1, now fusion.2",
        "tpu_multi_output_fusion put fusion.2 into mm.1 (one kernel with several results)",
    ]
    assert steps[2].ops == (EXP, SIN, MM)


def test_the_step_that_joined_two_ops() -> None:
    program = Program(decisions=DECISIONS)
    step = joined_by(program, "n1", SIN)
    assert step is not None and step.number == 2
    later = joined_by(program, EXP, MM)
    assert later is not None and later.decision.pass_name == "tpu_multi_output_fusion"
    assert joined_by(program, EXP, "n9") is None and fusion_steps(Program()) == ()
