"""Interrupts, memory after errors, and the state that an error leaves."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from typing import Any

import pytest
import torch

from tests.notebook.conftest import Notebook

MAGIC = "%%tpu eager --device cpu"


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_interrupt(notebook: Notebook, mode: str) -> None:
    notebook.names.update(threading=threading, os=os, signal=signal, time=time)
    started = time.time()
    done = notebook.run(
        f"%%tpu {mode} --device cpu\nthreading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\nkept = 1\nwhile True:\n    time.sleep(0.01)"
    )
    assert isinstance(done.error, KeyboardInterrupt)
    assert time.time() - started < 20
    assert notebook.names["kept"] == 1
    assert notebook.lab.strict_now is None
    assert notebook.run("after = kept + 1").success


@pytest.mark.parametrize("first", ["# plain", MAGIC])
def test_interrupt_of_an_awaiting_cell(notebook: Notebook, first: str) -> None:
    """ipykernel cancels the cell's task at an interrupt."""
    source = f"{first}\nimport asyncio\nkept = 1\nawait asyncio.sleep(30)\nkept = 2"

    async def interrupted() -> Any:
        transformed = notebook.shell.transform_cell(source)
        task = asyncio.ensure_future(notebook.shell.run_cell_async(source, transformed_cell=transformed))
        await asyncio.sleep(0.2)
        task.cancel()
        return await task

    done = asyncio.run(interrupted())
    assert isinstance(done.error_in_exec, asyncio.CancelledError)
    assert notebook.names["kept"] == 1
    assert notebook.lab.strict_now is None


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_tensors_of_a_failed_cell_die_with_its_traceback(notebook: Notebook, mode: str) -> None:
    notebook.run("import torch, weakref\nrefs = []")
    notebook.run(
        f"%%tpu {mode} --device cpu\ndef work():\n    t = torch.ones(1000)\n    refs.append(weakref.ref(t))\n"
        "    u = t * 2\n    refs.append(weakref.ref(u))\n    raise ValueError('no')\nwork()"
    )
    notebook.run("pass")
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    notebook.shell.InteractiveTB.tb = None
    gc.collect()  # IPython's own formatter makes cycles, also for a plain cell
    refs = notebook.names["refs"]
    assert len(refs) == 2
    assert [r() for r in refs] == [None, None]


def test_an_error_ends_the_recording_and_shows_it(notebook: Notebook) -> None:
    notebook.run(f"{MAGIC}\na = 1\n{{}}['x']")
    (recording,) = notebook.lab.recordings
    assert recording.ended_by == "KeyError"
    assert len(notebook.lab.shown) == 1
    assert notebook.lab.strict_now is None


def test_a_failing_display_does_not_cover_the_cells_error(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: object) -> None:
        raise RuntimeError("view")

    monkeypatch.setattr(notebook.lab, "show", broken)
    done = notebook.run(f"{MAGIC}\n1 / 0")
    assert isinstance(done.error, ZeroDivisionError)
    assert done.errors.count("\n") == 1
    assert "could not be kept or shown (RuntimeError: view)" in done.errors


def test_an_exception_that_refuses_attributes(notebook: Notebook) -> None:
    done = notebook.run(
        f"{MAGIC}\nclass Strict(Exception):\n    def __setattr__(self, name, value):\n"
        "        if name[:2] != '__':\n            raise AttributeError(name)\nraise Strict('s')"
    )
    assert type(done.error).__name__ == "Strict"


def test_own_traceback_rendering_is_respected(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC}\nclass Short(Exception):\n    def _render_traceback_(self):\n        return ['only this']\nraise Short('s')")
    assert "only this" in done.text


def test_raised_again_later_shows_the_later_place(notebook: Notebook) -> None:
    notebook.run(f"{MAGIC}\nkept = None\ndef f():\n    raise ValueError('first')\ntry:\n    f()\nexcept ValueError as e:\n    kept = e\nraise kept")
    done = notebook.run("def later():\n    raise kept\nlater()")
    assert "in later()" in done.text


def test_torch_errors_keep_their_type_and_line(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC}\nimport torch\nt = torch.arange(3.0)\nbad = t.view(2, 5)")
    assert type(done.error) is RuntimeError
    assert "-> 4 bad = t.view(2, 5)" in done.text
    assert isinstance(notebook.names["t"], torch.Tensor)
    assert "bad" not in notebook.names


@pytest.mark.parametrize("raised", ["SystemExit('x')", "KeyboardInterrupt()", "GeneratorExit()", "StopIteration(3)", "BaseException('b')"])
def test_unusual_exceptions(notebook: Notebook, raised: str) -> None:
    plain = notebook.run(f"raise {raised}")
    done = notebook.run(f"{MAGIC}\nraise {raised}")
    assert type(done.error) is type(plain.error)
    assert done.success is False
    assert notebook.lab.strict_now is None
