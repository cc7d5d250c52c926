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
def test_a_mode_of_the_environment_that_does_not_exist_here_is_told(name: str) -> None:
    read = f"import warnings; warnings.simplefilter('error'); from tpu_lab.device import modes; modes.from_environment(); {READ}"
    assert "UserWarning: TORCH_TPU_DEFER_AND_FUSE is set, but" in outcome(read, **{name: "1", "TPU_LAB_AUTOLOAD": "0"})
    assert outcome(READ, **{name: "1"}) == "DEFER_NEVER False"


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
    with pytest.raises(NotImplementedError, match=r"torch\.compile"):
        modes.set_process_mode(EagerMode.DEFER_AND_FUSE)
    assert modes.current() is EagerMode.DEFER_NEVER
