"""The two logs of the fusion passes, from lines that libtpu 0.0.42.1 wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpu_lab.xla.fusion_log import ABOUT, FUSED, REJECTED, Step, fusions, parse, read_log
from tpu_lab.xla.fusion_words import WordLog, environment, read_rejections, rejections
from tpu_lab.xla.hlo_proto import DecodeError

INSIDE = "inside InstructionFusion with may_duplicate=1"
WHY = (
    "operand can not be duplicated at: third_party/tensorflow/compiler/xla/service/instruction_fusion.cc:671 ; "
    "Not allowed at: platforms/xla/service/jellyfish/tpu_instruction_fusion.cc:4392 at: third_party/tensorflow/compiler/xla/service/decision.h:119"
)


def page(*labels: str) -> str:
    return (
        f"<html><script>const x = 1;\nconst frames = {json.dumps([[i, label, '#node1 polygon'] for i, label in enumerate(labels)])};\nmore</script>"
    )


def test_labels_become_steps() -> None:
    steps = parse(
        page(
            f"About to fuse |sin.1| into |add.3| {INSIDE}",
            f"Fused |sin.1| into |sine_add_fusion| {INSIDE}",
            f"About to MOF-fuse |exp.1| into |sine_add_fusion| {INSIDE}",
            f"Fused |exp.1| into |sine_add_fusion| {INSIDE}",
            f"Not fusing |fusion.15| into |reduce.1| as {WHY}",
        )
    )
    assert steps[0] == Step(ABOUT, "sin.1", "add.3") and steps[1] == Step(FUSED, "sin.1", "sine_add_fusion")
    assert steps[2].multi_output and not steps[3].multi_output
    assert steps[4].kind == REJECTED
    assert steps[4].words == "operand can not be duplicated at: instruction_fusion.cc:671 ; Not allowed at: tpu_instruction_fusion.cc:4392"
    assert [(place, about.consumer, step.consumer) for place, about, step in fusions(steps)] == [
        (1, "add.3", "sine_add_fusion"),
        (3, "sine_add_fusion", "sine_add_fusion"),
    ]


@pytest.mark.parametrize("text", ["<html></html>", "const frames = oops", "const frames = [[1]]", page("Considered |a| and |b|")])
def test_another_form_is_named(text: str) -> None:
    with pytest.raises(DecodeError, match="the fusion log"):
        parse(text)


def test_a_fusion_without_announcement_is_refused() -> None:
    with pytest.raises(DecodeError, match="without saying into what"):
        list(fusions([Step(FUSED, "a", "b")]))


def test_a_folder_without_a_log_has_no_steps(tmp_path: Path) -> None:
    assert read_log(tmp_path) == () and read_rejections(tmp_path) == ()


def test_only_the_lines_of_one_compile_are_kept(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    log = WordLog(tmp_path)
    log.begin()
    log.keep(tmp_path / "dump")
    assert read_rejections(tmp_path / "dump") == ()
    written, line = tmp_path / "tpu_driver.log.INFO.1", "I1201 14:55:57.8 5 instruction_fusion.cc:{}\n"
    (tmp_path / "tpu_driver.INFO").symlink_to(written)
    with written.open("a") as file:  # as libtpu does: open all the time, appending
        file.write(line.format("649] Considering fusion of: %old = f32[] add(%a, %b) with operand a"))
        file.write(line.format("687] not fusing operand %a = x because no"))
        file.flush()
        log.begin()
        file.write(line.format("649] Considering fusion of: %new = f32[] add(%c, %d) with operand c") + "I1201 14:55:57.8 5 other.cc:1] noise\n")
        file.write(line.format("687] not fusing operand %c = f32[] x because why"))
    log.keep(tmp_path / "dump")
    assert read_rejections(tmp_path / "dump") == (Step(REJECTED, "c", "new", "why"),)
    assert "noise" not in (tmp_path / "dump" / "fusion_words.log").read_text()


def test_what_the_user_gives_libtpu_stays() -> None:
    given = environment("--xla_tpu_something=1")["LIBTPU_INIT_ARGS"]
    assert given == "--xla_tpu_something=1 --logbuflevel=-1" and environment(given)["LIBTPU_INIT_ARGS"] == given


def test_verbose_lines_give_rejections() -> None:
    text = (
        "I1201 14:55:57.836054    5656 tpu_instruction_fusion.cc:2817] Running TpuInstructionFusion with options: only_mof_=true\n"
        "I1201 14:55:57.836055    5656 instruction_fusion.cc:649] Considering fusion of: %tuple.1 = (f32[2048,1024]{1,0:T(8,128)}) tuple(%a, %exp.1)"
        " with operand exp.1\n"
        "I1201 14:55:57.836055    7777 instruction_fusion.cc:649] Considering fusion of: %other = f32[] add(%b, %c) with operand b\n"
        "  %param_0.1 = f32[2048,1024] parameter(0)\n"
        "I1201 14:55:57.836056    5656 instruction_fusion.cc:687] not fusing operand %exp.1 = f32[2048,1024]{1,0:T(8,128)} exponential(%x.1),"
        ' metadata={op_name="jit(f)/exp"} because Not fusing MOF at: platforms/xla/service/jellyfish/tpu_instruction_fusion.cc:4582\n'
        "I1201 14:55:57.836057    9999 instruction_fusion.cc:687] not fusing operand %lost = f32[] add(%b, %c) because it stands alone\n"
    )
    assert rejections(text) == (Step(REJECTED, "exp.1", "tuple.1", "Not fusing MOF at: tpu_instruction_fusion.cc:4582"),)
