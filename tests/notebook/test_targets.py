"""`--target` on a cell, `%tpu target`, and programs side by side, with the real device and where it is installed the real TPU compiler."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tpu_lab
from tests.notebook.conftest import Notebook, _forget_programs
from tpu_lab.errors import OptionError
from tpu_lab.notebook import extension, progress, targets
from tpu_lab.record.program import PREDICTED, Program
from tpu_lab.xla import compile_service, target_compile

needs_libtpu = pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")
CELL = """\
import torch
torch.manual_seed(0)
w = torch.randn(128, 128, requires_grad=True)
x = torch.randn(64, 128)
"""
STEP = """\
loss = (x @ w).tanh().square().mean()
loss.backward()
"""


@pytest.fixture
def real(shell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Notebook]:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    extension.load_ipython_extension(shell)
    made = Notebook(shell, None)  # type: ignore[arg-type]
    made.reset()
    yield made
    extension.unload_ipython_extension(shell)
    _forget_programs()


@needs_libtpu
def test_a_compiled_cell_shows_what_targets_make_of_it(real: Notebook) -> None:
    assert real.run("%%tpu eager --quiet\n" + CELL).success
    done = real.run("%%tpu compile --quiet --target v5e\n" + STEP)
    assert done.success, done.text
    shown = [o["text/plain"] for o in done.outputs if PREDICTED in o.get("text/plain", "")]
    assert shown and "TPU v5e" in shown[-1] and "eager" in shown[-1]
    assert real.names["w"].grad is not None and real.names["loss"].item() > 0, "the cell ran as well"
    page = next(o["text/html"] for o in done.outputs if PREDICTED in o.get("text/plain", ""))
    assert "<script" not in page and "TPU v5e" in page


@needs_libtpu
def test_the_full_answer_follows_in_the_background(real: Notebook) -> None:
    real.run("%%tpu eager --quiet\n" + CELL)
    done = real.run("%%tpu compile --quiet --target v5e --effort full\n" + STEP)
    assert done.success
    for thread in threading.enumerate():
        if thread.name == "tpu_lab targets":
            thread.join(200)
    texts = [o["data"]["text/plain"] for o in real.shell.display_pub.outputs if PREDICTED in o["data"].get("text/plain", "")]
    assert "TPU v5e (quick)" in texts[0] and "TPU v5e (quick)" not in texts[-1] and "compiler, " in texts[-1]


@needs_libtpu
def test_a_long_compile_says_how_far_it_is_and_ends_on_demand(real: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    real.run("%%tpu eager --quiet\n" + CELL.replace("128", "1024"))
    monkeypatch.setattr(progress, "EVERY_S", 0.02)
    real.run("%%tpu compile --quiet --target v6e --effort full\n" + STEP)
    deadline = time.monotonic() + 100
    while "in full: compiling for" not in (told := _texts(real)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "v6e, in full: compiling for" in told
    real.run("%tpu target off")
    for thread in threading.enumerate():
        if thread.name == "tpu_lab targets":
            thread.join(60)
            assert not thread.is_alive()


def _texts(real: Notebook) -> str:
    return "\n".join(o["data"].get("text/plain", "") for o in list(real.shell.display_pub.outputs))


@needs_libtpu
def test_the_default_target_of_compiled_cells(real: Notebook) -> None:
    assert "ironwood" not in real.run("%tpu target ironwood").text
    real.run("%%tpu eager --quiet\n" + CELL)
    done = real.run("%%tpu compile --quiet\n" + STEP)
    assert any("TPU7x" in o.get("text/plain", "") for o in done.outputs)
    assert "for no target" in real.run("%tpu target off").text


def test_targets_are_listed_with_their_figures(real: Notebook) -> None:
    text = real.run("%tpu target").text
    assert all(name in text for name in ("v4", "v5e", "v5p", "v6e", "tpu7x")) and "TFLOP/s" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%%tpu compile --target v9", "v5e"),
        ("%%tpu compile --target cpu", "all"),
        ("%%tpu eager --target v6e", "%%tpu compile --target"),
        ("%%tpu compile --effort much", "quick or full"),
    ],
)
def test_wrong_words_leave_the_cell_unrun(real: Notebook, line: str, words: str) -> None:
    done = real.run(line + "\nran = True")
    assert not done.success and "ran" not in real.names and words in str(done.error)


def test_without_libtpu_the_cell_says_so_before_it_runs(real: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_service, "installed", lambda: "")
    done = real.run("%%tpu compile --target v6e\nran = True")
    assert not done.success and "ran" not in real.names and "libtpu==0.0.42.1" in str(done.error)


def test_a_compiler_that_dies_leaves_the_cell_as_it_ran(real: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_service, "require", lambda target: None)
    monkeypatch.setattr(compile_service, "compiler_version", lambda target: "libtpu 0")
    monkeypatch.setattr("tpu_lab.xla.compile_service.sys.executable", "/bin/false")
    compile_service.stop_workers()
    real.run("%%tpu eager --quiet\n" + CELL)
    done = real.run("%%tpu compile --quiet --target v6e\n" + STEP)
    assert done.success and "died 2 times" in done.text and real.names["w"].grad is not None


@needs_libtpu
def test_side_by_side_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    table = tpu_lab.compare_targets(torch.nn.Linear(64, 64), torch.randn(8, 64), targets=["v5e,v6e"])
    assert [(p.target.name, p.mode) for p in table.programs] == [("v5e", "compile"), ("v5e", "eager"), ("v6e", "compile"), ("v6e", "eager")]
    assert all(isinstance(p, Program) and p.kernels for p in table.programs)


def test_all_targets_once() -> None:
    assert [t.name for t in targets.targets_named(["all", "v6e"])] == ["v4", "v5e", "v5p", "v6e", "tpu7x"]
    with pytest.raises(OptionError):
        targets.targets_named(["v6e", "nonsense"])
