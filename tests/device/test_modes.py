"""Eager modes: from the environment, for the process, for a block."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import modes
from tpu_lab.device.modes import EagerMode


def outcome(code: str, **environment: str) -> str:
    """What `code` prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


READ = "import torch, tpu_lab; from tpu_lab.device import modes; print(torch.tpu.eager_mode.name, modes.blocking)"


@pytest.mark.parametrize("name", ["TORCH_TPU_LAUNCH_BLOCKING", "TPU_LAUNCH_BLOCKING"])
def test_the_environment_makes_operators_wait(name: str) -> None:
    assert outcome(READ, **{name: "1"}) == "DEFER_NEVER_AND_LAUNCH_BLOCKING True"
    assert outcome(READ, **{name: "0"}) == "DEFER_NEVER False"


@pytest.mark.parametrize("name", ["TORCH_TPU_DEFER_AND_FUSE", "TPU_DEFER_AND_FUSE"])
def test_the_environment_makes_operators_fuse(name: str) -> None:
    assert outcome(READ, **{name: "1"}) == "DEFER_AND_FUSE False"
    assert outcome(READ, **{name: "0"}) == "DEFER_NEVER False"


def test_the_innermost_block_wins_and_leaves_nothing() -> None:
    waiting, strict = EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING, EagerMode.DEFER_NEVER
    with modes.set_eager_mode(waiting):
        assert modes.blocking and modes.current() is waiting
        with modes.set_eager_mode(strict):
            assert not modes.blocking and torch.tpu.eager_mode is strict  # type: ignore[attr-defined]
        assert modes.blocking
    assert not modes.blocking and modes.current() is strict


def test_values_that_are_no_mode() -> None:
    with pytest.raises(TypeError, match=r"'fast', accepted are EagerMode.DEFER_NEVER"), modes.set_eager_mode("fast"):  # type: ignore[arg-type]
        pass
    assert modes.current() is EagerMode.DEFER_NEVER


def test_fusing_is_switched_by_assignment_and_by_block_and_autograd_follows() -> None:
    fuse, strict = EagerMode.DEFER_AND_FUSE, EagerMode.DEFER_NEVER
    torch.tpu.eager_mode = fuse  # type: ignore[attr-defined]
    try:
        assert modes.defers_here() and torch.tpu.eager_mode is fuse  # type: ignore[attr-defined]
        with modes.set_eager_mode(strict):
            assert not modes.defers_here()
    finally:
        torch.tpu.eager_mode = strict  # type: ignore[attr-defined]
    assert not modes.fusing
    seen = []
    x = torch.ones(2, device="tpu", requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: seen.append(modes.defers_here()))
    with modes.set_eager_mode(fuse):
        y.sum().backward()
    assert seen == [True] and not modes.defers_here()
