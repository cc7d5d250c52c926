"""`%%tpu fuse` on the device: values, flushes in the run, and a leg of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tpu_lab.device.modes import EagerMode, current
from tpu_lab.recording.store import store


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell()
    made.run_line_magic("load_ext", "tpu_lab")  # type: ignore[no-untyped-call]
    made.run_cell("import torch")
    yield made
    store.clear()
    InteractiveShell.clear_instance()  # type: ignore[no-untyped-call]


def test_a_cell_runs_deferred_and_leaves_the_mode_as_it_was(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell(
        "%%tpu fuse\nx = torch.ones(4, 13)\nmode = torch.tpu.eager_mode\nfor i in range(3):\n    x = (x * 2).tanh()\n    y = x.sum().item()\nx[0, 0]"
    )
    assert done.success and shell.user_ns["mode"] is EagerMode.DEFER_AND_FUSE and current() is EagerMode.DEFER_NEVER
    run = store.runs()[-1]
    assert run.mode == "fuse" and [f.reason for f in run.flushes][:3] == ["item"] * 3
    places = [run.locations[f.cell_location].line for f in run.flushes[:3]]
    assert places == [6, 6, 6] and not run.blocking


def test_an_exception_comes_out_and_what_was_before_it_stays(shell: InteractiveShell) -> None:
    done = shell.run_cell("%%tpu fuse\na = torch.ones(4, 13) + 1\na @ a")
    assert isinstance(done.error_in_exec, RuntimeError)
    assert shell.user_ns["a"].sum().item() == 104


def test_it_is_a_leg_of_a_comparison(shell: InteractiveShell) -> None:
    done = shell.run_cell("%%tpu compare eager fuse cpu --repeat 4\nx = torch.linspace(0, 1, 40)\nx += 1\ny = (x * 3).sin().sum()")
    assert done.success
    comparison = store.runs()[-1].comparison
    assert comparison is not None and [m.mode for m in comparison.modes] == ["eager", "fuse", "cpu"]
    fuse = comparison.modes[1]
    assert not fuse.failure and fuse.difference is not None and fuse.difference.max_rel < 1e-5
