"""A real InteractiveShell with the extension loaded, and cells run in it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.notebook.fakes import FakeLab
from tpu_lab.notebook import extension, magics
from tpu_lab.notebook.state import is_hidden


@dataclass
class Done:
    """What a cell did."""

    success: bool
    error: BaseException | None
    text: str
    """Standard output, tracebacks and displayed values included, without colours."""
    errors: str
    """Standard error."""
    outputs: list[dict[str, Any]] = field(default_factory=list)


class Notebook:
    """Cells in a shell whose lab is a fake."""

    def __init__(self, shell: Any, lab: FakeLab) -> None:
        self.shell, self.lab = shell, lab

    @property
    def names(self) -> dict[str, Any]:
        return self.shell.user_ns

    def reset(self) -> None:
        """Empties the namespace. `shell.reset` does more and takes a second."""
        _forget_programs()  # Dynamo keeps names in it
        names, display = self.shell.user_ns, self.shell.displayhook
        for name in [n for n in names if not is_hidden(n) or re.fullmatch(r"_\d+|__annotations__", n)]:
            del names[name]
        names["_oh"].clear()
        for under in ("_", "__", "___"):
            names[under] = self.shell.user_ns_hidden[under] = ""
            setattr(display, under, "")

    def run(self, source: str) -> Done:
        """Runs a cell as ipykernel does: cells that await through `run_cell_async` in a running loop."""

        async def run() -> Any:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's own would only cancel the task
            transformed = self.shell.transform_cell(source)
            if self.shell.should_run_async(source, transformed_cell=transformed):
                return await self.shell.run_cell_async(source, store_history=True, transformed_cell=transformed)
            return self.shell.run_cell(source, store_history=True)

        self.shell.display_pub = CapturingDisplayPublisher()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            done = asyncio.run(run())
        text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
        return Done(
            done.success, done.error_before_exec or done.error_in_exec, text, err.getvalue(), [o["data"] for o in self.shell.display_pub.outputs]
        )


current: Notebook | None = None
"""The notebook of the running test, for cells that must reach it past their namespace (what is in there is part of the cell's state)."""


@pytest.fixture(scope="session")
def shell() -> Iterator[Any]:
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config)
    made.display_formatter.active_types = made.display_formatter.format_types
    yield made
    _forget_programs()
    made.reset(new_session=False)


@pytest.fixture
def notebook(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    lab = FakeLab()
    monkeypatch.setattr(magics, "Lab", lambda: lab)
    extension.load_ipython_extension(shell)
    global current
    current = Notebook(shell, lab)
    current.reset()
    yield current
    current = None
    extension.unload_ipython_extension(shell)
    assert not torch.overrides._get_current_function_mode_stack(), "a mode was left on"
    _forget_programs()


def _forget_programs() -> None:
    """As at exit; slow, so only after something was compiled."""
    if "torch._dynamo" in sys.modules and torch._dynamo.utils.counters["frames"]:
        extension.forget_programs()
