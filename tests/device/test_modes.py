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


ACROSS_THREADS = """
import threading, torch, tpu_lab
from tpu_lab.device import modes
M = torch.tpu.EagerMode
told = []
def look(name):
    told.append((name, torch.tpu.eager_mode.name, modes.defers_here()))
def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
torch.tpu.eager_mode = M.DEFER_AND_FUSE
in_thread(lambda: look("process"))
with torch.tpu.set_eager_mode(M.DEFER_NEVER):
    look("block")
    in_thread(lambda: look("beside the block"))
    with torch.tpu.set_eager_mode(M.DEFER_AND_FUSE):
        look("inner")
    torch.tpu.eager_mode = M.DEFER_NEVER
    look("assigned inside")
look("after")
for told_one in told:
    print(*told_one)
"""


def test_assignment_is_for_all_threads_and_a_block_for_its_own() -> None:
    assert outcome(ACROSS_THREADS).splitlines() == [
        "process DEFER_AND_FUSE True",
        "block DEFER_NEVER False",
        "beside the block DEFER_AND_FUSE True",
        "inner DEFER_AND_FUSE True",
        "assigned inside DEFER_NEVER False",
        "after DEFER_NEVER False",
    ]


def test_the_mode_may_change_between_any_two_calls_and_in_the_midst_of_a_backward_pass() -> None:
    order = [EagerMode.DEFER_AND_FUSE, EagerMode.DEFER_NEVER, EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING]

    def work(device: str, switch: bool) -> list[float]:
        def turn(i: int) -> None:
            if switch:
                torch.tpu.eager_mode = order[i % 3]  # type: ignore[attr-defined]

        w = torch.linspace(-1, 1, 6).to(device).requires_grad_()
        for step in range(4):
            turn(step)
            y = (w * 2).sin()
            turn(step + 1)
            y.register_hook(lambda gradient, step=step: turn(step + 2))
            z = y * y.detach() + y[1:].sum()
            turn(step + 2)
            z.sum().backward()
            turn(step)
            with torch.no_grad():
                assert w.grad is not None
                w -= 0.1 * w.grad
                w[::2].mul_(0.5)
            w.grad = None
        return w.tolist()

    try:
        assert work("tpu", True) == pytest.approx(work("cpu", False), rel=1e-5)
    finally:
        torch.tpu.eager_mode = EagerMode.DEFER_NEVER  # type: ignore[attr-defined]


def test_an_assignment_that_is_no_mode_changes_nothing() -> None:
    with pytest.raises(TypeError, match=r"1, accepted are EagerMode"):
        torch.tpu.eager_mode = 1  # type: ignore[attr-defined]
    assert modes.current() is EagerMode.DEFER_NEVER


def test_launch_blocking_comes_first_where_both_are_asked_for() -> None:
    assert outcome(READ, TORCH_TPU_LAUNCH_BLOCKING="1", TPU_DEFER_AND_FUSE="1") == "DEFER_NEVER_AND_LAUNCH_BLOCKING True"
