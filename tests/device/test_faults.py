"""What a user reads when something fails: PyTorch's type and words, the operator and its operands, few frames."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest
import torch
import torch.nn.functional as F

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import faults
from tpu_lab.device.plan import plan_for
from tpu_lab.lowering.registry import TABLE
from tpu_lab.recording.recorder import Recorder

MISTAKES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "product": ("aten.mm", lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d)),
    "broadcast": ("aten.add.Tensor", lambda d: torch.ones(2, device=d) + torch.ones(3, device=d)),
    "cat": ("aten.cat", lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(3, device=d)])),
    "dimension": ("aten.sum.dim_IntList", lambda d: torch.ones(2, 2, device=d).sum(5)),
    "convolution": ("aten.convolution", lambda d: F.conv2d(torch.ones(1, 3, 4, 4, device=d), torch.ones(1, 2, 3, 3, device=d))),
    "dtypes": ("aten.mv", lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, dtype=torch.float64, device=d)),
    "step": ("aten.arange.start_step", lambda d: torch.arange(0, 5, -1, device=d)),
    "range": ("aten.randint", lambda d: torch.randint(5, 2, (2,), device=d)),
    "index dtype": ("aten.embedding", lambda d: F.embedding(torch.ones(2, device=d), torch.ones(2, 2, device=d))),
    "singular": ("", lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d))),
    "not definite": ("", lambda d: torch.linalg.cholesky(-torch.eye(2, device=d))),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_torchs_type_and_few_frames(name: str) -> None:
    op, mistake = MISTAKES[name]
    with pytest.raises(Exception) as expected:
        mistake("cpu")
    with pytest.raises(type(expected.value)) as actual:
        mistake("tpu")
    frames = traceback.extract_tb(actual.value.__traceback__)
    assert len([f for f in frames if f.filename != __file__]) <= 2, "\n".join(traceback.format_list(frames))
    if op:
        notes = "".join(getattr(actual.value, "__notes__", []))
        assert op in notes and "on the device tpu" in notes


def test_notes_say_what_the_operands_were() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2, 3, device="tpu") @ torch.ones(2, 3, device="tpu")
    assert caught.value.__notes__ == ["(in aten.mm.default(float32[2, 3], float32[2, 3]) on the device tpu)"]
    assert faults.describe([torch.ones(2), 3, [torch.ones(1)] * 6]) == "float32[2], 3, [float32[1], float32[1], float32[1], float32[1], …]"


@pytest.fixture
def broken_tanh() -> Iterator[None]:
    """The lowering of tanh makes a call that jax refuses."""
    entry, plan = TABLE["tanh"], plan_for(torch.ops.aten.tanh.default)
    function, programs = entry.function, plan.programs
    object.__setattr__(entry, "function", lambda self: jax.numpy.reshape(self, (5,)))
    plan.programs = {}
    yield
    object.__setattr__(entry, "function", function)
    plan.programs = programs


def test_a_lowering_that_fails_is_a_runtime_error_with_the_call(broken_tanh: None) -> None:
    with pytest.raises(RuntimeError, match=r"aten\.tanh\.default\(float32\[7, 1, 7\]\): the lowering failed: TypeError: cannot reshape"):
        torch.ones(7, 1, 7, device="tpu").tanh()
    assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2], "the device works on"


def test_what_xla_refuses_is_a_runtime_error() -> None:
    options = {"no_such_option_of_xla": "1"}
    with torch.tpu.compiler.custom_compiler_options(options), pytest.raises(RuntimeError, match="no_such_option_of_xla"):  # type: ignore[attr-defined]
        torch.ones(3, 1, 5, 1, device="tpu").sinh()
    assert torch.zeros(3, 1, 5, 1, device="tpu").sinh().sum().item() == 0


def test_naming_the_operands_reads_none_of_them() -> None:
    x, at = torch.ones(3, 4, device="tpu"), torch.tensor([0, 7], device="tpu")
    with Recorder() as recorder, pytest.raises(IndexError) as raised:
        x[at].tolist()
    assert "[int64[2]]" in str(raised.value.__notes__)
    assert recorder.run.totals.syncs <= 1
