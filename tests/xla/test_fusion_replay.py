"""Replay of the log that XLA:CPU writes in this process, held to what the compiled module computes (found by values, without the log)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from benchmarks.fusion.truth import Values, counts
from tpu_lab.record.targets import CPU
from tpu_lab.xla.extract import program_from_dump
from tpu_lab.xla.fusion_passes import CPU_PASSES, State, absorbed, held, read_passes
from tpu_lab.xla.fusion_replay import read_replay, with_decisions


def softmax(x: Any) -> Any:
    return jax.nn.softmax(jnp.sin(x) * 2.0, axis=-1)


def shared(x: Any) -> Any:
    y = jnp.tanh(x)
    return jnp.sort(y, axis=-1) + 1.0, (y * x).sum(0), y.T


def dumped(function: Callable[..., Any], folder: Path) -> Path:
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": CPU_PASSES, "xla_dump_fusion_visualization": True}
    jax.jit(function).lower(jax.ShapeDtypeStruct((64, 128), jnp.float32)).compile(compiler_options=options)
    return folder


@pytest.mark.parametrize("function", [softmax, shared])
def test_the_replay_knows_what_each_kernel_holds(function: Callable[..., Any], tmp_path: Path) -> None:
    done = read_replay(dumped(function, tmp_path))
    passes = read_passes(tmp_path)
    before, after = passes[0].before, passes[-1].after
    first = Values(before.module)
    last = Values(after.module, first)
    origin = {node.name: value for node, value in first.of.items() if counts(node)}
    fusions = {name: node for name, node in after.nodes.items() if node.opcode == "fusion"}
    assert fusions and any(d.kind == "fused" for d in done.decisions) and not done.unknown
    for name, node in fusions.items():
        true = {last.of[inner] for inner in held(node) if counts(inner)}
        assert {origin[inner] for inner in done.members[name] if inner in origin} == true, name


def test_ends_of_edges_are_inside_the_kernels(tmp_path: Path) -> None:
    program = program_from_dump(dumped(shared, tmp_path), CPU)
    between = [edge for edge in program.edges if edge.producer >= 0 and edge.consumer >= 0]
    assert between
    for edge in between:
        made = program.kernels[edge.producer]
        assert edge.maker in (*made.members, made.instruction)
        assert edge.users and all(program.instructions[user].kernel == edge.consumer for user in edge.users)


def test_what_vanished_in_a_pass_is_found_without_the_log(tmp_path: Path) -> None:
    passes = read_passes(dumped(shared, tmp_path))
    found = dict(absorbed(passes[0].before, passes[-1].after))
    assert found["add.3"] == "broadcast_add_fusion" and "tuple.1" not in found


def test_decisions_come_with_the_ops_of_kernels(tmp_path: Path) -> None:
    program = program_from_dump(dumped(softmax, tmp_path), CPU)
    done = with_decisions(program, tmp_path)
    assert {d.kind for d in done.decisions} == {"fused", "rejected"} and not done.notes
    for page in tmp_path.glob("*fusion.html"):
        page.unlink()
    kernel = program.kernels[0]
    named = replace(program, kernels=(replace(kernel, ops=("n1:aten.sin",)), *program.kernels[1:]))
    line = "I1201 14:55:57.8 5 instruction_fusion.cc:1] "
    lines = f"{line}Considering fusion of: %other = f32[] add(%a, %b) with operand a\n{line}not fusing operand %{kernel.name} = f32[] x because why\n"
    (tmp_path / "fusion_words.log").write_text(lines)
    [decision] = with_decisions(named, tmp_path).decisions
    assert (decision.producer, decision.words, decision.producer_ops) == (kernel.name, "why", ("n1:aten.sin",))


def test_a_log_of_another_form_is_noted(tmp_path: Path) -> None:
    program = program_from_dump(dumped(softmax, tmp_path), CPU)
    next(tmp_path.glob("*fusion.html")).write_text("a new form")
    done = with_decisions(program, tmp_path)
    assert done.decisions == () and [note.kind for note in done.notes] == ["missing"] and "the fusion log" in done.notes[0].text


def test_a_folder_without_dumps_has_no_decisions(tmp_path: Path) -> None:
    assert read_replay(tmp_path).decisions == [] and read_passes(tmp_path) == ()
    assert State(tmp_path).path == tmp_path
