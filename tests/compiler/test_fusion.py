"""Why not fused, from a torch module to the compiler's own words, in the worker process."""

from __future__ import annotations

import pytest
import torch

import tpu_lab
from tpu_lab.analysis.fusion_steps import fusion_steps
from tpu_lab.record.fusion_reasons import FusionReason
from tpu_lab.xla import target_compile

needs_libtpu = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.sin(x), dim=-1)


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256), torch.nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.down(torch.nn.functional.gelu(self.up(x)))).softmax(-1)


@needs_libtpu
@pytest.mark.parametrize("effort", ["quick", "full"])
def test_pairs_of_ops_come_with_the_compiler_s_words(effort: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    program = tpu_lab.compile_for(Mlp().bfloat16(), torch.zeros(512, 256, dtype=torch.bfloat16), target="v6e", effort=effort)
    assert program.not_fused and {n.source for n in program.not_fused} <= {"log", "pass", "rule"}
    said = [n for n in program.not_fused if n.source == "log"]
    assert len(said) > len(program.not_fused) / 2
    known = {op.id for op in program.ops}
    assert {n.producer for n in said} <= known and "n13:aten.native_layer_norm" in {n.consumer for n in said}
    assert "unknown" not in {n.reason for n in program.not_fused}
    for pair in program.not_fused:
        assert pair.text == FusionReason.of(pair.reason).sentence and pair.evidence
        assert pair.producer_kernel != pair.consumer_kernel


@needs_libtpu
def test_a_small_program_tells_every_step(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    program = tpu_lab.compile_for(softmax, torch.zeros(512, 512), target="v5e", effort="quick")
    steps = fusion_steps(program)
    assert {step.decision.kind for step in steps} == {"fused", "rejected"}
    assert any(step.decision.producer_ops for step in steps if step.decision.kind == "fused")
    assert "reduction_then_broadcast" in {n.reason for n in program.not_fused}


def test_on_the_cpu(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    program = tpu_lab.compile_for(Mlp(), torch.zeros(512, 256), target="cpu")
    assert "library_call" in {n.reason for n in program.not_fused} and all(n.evidence for n in program.not_fused)
