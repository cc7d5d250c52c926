"""What a cell's options do: recording, mode, repeats, times, names, saving, quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.fakes import FakeLab
from tpu_lab.notebook.session import timing_line
from tpu_lab.record.run import Run
from tpu_lab.record.timing import Timing


def test_a_cell_is_recorded_kept_and_shown(notebook: Notebook) -> None:
    notebook.names["lab"] = notebook.lab
    notebook.run("%%tpu eager --device cpu --name 'my run'\ninside = (lab.recordings[-1].active, lab.strict_now)")
    (recording,) = notebook.lab.recordings
    assert notebook.names["inside"] == (True, True)
    assert (recording.mode, recording.device, recording.name) == ("eager", "cpu", "my run")
    assert recording.cell.text.startswith("%%tpu eager")
    assert [r.id for r in notebook.lab.kept] == [r.id for r in notebook.lab.shown] == ["r1"]
    assert notebook.lab.shown[0].timing.first_ns > 0


def test_the_mode_ends_with_the_cell(notebook: Notebook) -> None:
    notebook.names["lab"] = notebook.lab
    notebook.run("%%tpu eager --device cpu\npass")
    notebook.run("after = lab.strict_now, lab.recordings[-1].active")
    assert notebook.names["after"] == (None, False)


def test_trace_off(notebook: Notebook) -> None:
    notebook.names["lab"] = notebook.lab
    done = notebook.run("%%tpu eager --device cpu --trace off\ninside = lab.strict_now")
    assert notebook.names["inside"] is False  # nothing records, so nothing has to wait
    assert notebook.lab.recordings == [] and notebook.lab.shown == []
    assert done.text == ""


def test_repeat_runs_n_times_and_shows_the_value_once(notebook: Notebook) -> None:
    notebook.names["lab"] = notebook.lab
    notebook.run("n = 0\nmodes = []")
    done = notebook.run("%%tpu eager --device cpu --repeat 4\nn += 1\nmodes.append((lab.recordings[-1].active, lab.strict_now))\nprint('run', n)\nn")
    assert notebook.names["n"] == 4
    assert notebook.names["modes"] == [(True, True), (False, False), (False, False), (False, False)]
    assert done.text.count("Out[") == 1
    assert [line for line in done.text.splitlines() if line.startswith("run")] == ["run 1", "run 2", "run 3", "run 4"]
    (run,) = notebook.lab.shown
    assert run.timing.repeats == 3


def test_repeat_without_recording_prints_the_spread(notebook: Notebook) -> None:
    done = notebook.run("%%tpu eager --device cpu --repeat 3 --trace off\npass")
    assert done.text.startswith("first run ")
    assert "; 2 more: min " in done.text
    assert notebook.run("%%tpu eager --device cpu --repeat 3 --trace off --quiet\npass").text == ""


def test_repeat_stops_at_an_error(notebook: Notebook) -> None:
    notebook.run("n = 0")
    done = notebook.run("%%tpu eager --device cpu --repeat 5\nn += 1\nif n == 3:\n    raise ValueError(n)")
    assert isinstance(done.error, ValueError)
    assert notebook.names["n"] == 3
    assert notebook.lab.shown[0].timing.repeats == 1


def test_repeat_of_an_awaiting_cell(notebook: Notebook) -> None:
    notebook.run("n = 0\nimport asyncio")
    done = notebook.run("%%tpu eager --device cpu --repeat 3\nawait asyncio.sleep(0)\nn += 1\nn")
    assert notebook.names["n"] == 3
    assert done.text.count("Out[") == 1


def test_timing_line() -> None:
    assert timing_line(Timing(1_500_000_000, (2_000, 4_000, 9_000))) == "first run 1.5 s; 3 more: min 2 µs, median 4 µs, max 9 µs"
    assert timing_line(Timing(12_300_000, (640,))) == "first run 12.3 ms; 1 more: min 640 ns, median 640 ns, max 640 ns"


def test_quiet(notebook: Notebook) -> None:
    done = notebook.run("%%tpu eager --device cpu --quiet\n1 + 1")
    assert "2" in done.text
    assert len(notebook.lab.kept) == 1 and notebook.lab.shown == []


def test_save(notebook: Notebook, tmp_path: Path) -> None:
    file = tmp_path / "run.json.gz"
    notebook.run(f"%%tpu eager --device cpu --save {file} --name kept\npass")
    assert Run.load(file).name == "kept"


def test_save_that_fails_is_one_line(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Run, path: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Run, "save", full)
    done = notebook.run(f"%%tpu eager --device cpu --save {tmp_path / 'f'}\na = 1")
    assert done.success
    assert notebook.names["a"] == 1
    assert "disk full" in done.errors and done.errors.count("\n") == 1


def test_precision(notebook: Notebook) -> None:
    notebook.run("%%tpu eager --device cpu --precision high\npass")
    notebook.run("%%tpu eager --device cpu\npass")
    assert notebook.lab.precisions == ["high", None]


def test_default_mode_of_a_bare_cell(notebook: Notebook) -> None:
    notebook.run("%tpu mode compile")
    notebook.run("%%tpu --device cpu\npass")
    assert notebook.lab.recordings[-1].mode == "compile"
    notebook.run("%tpu mode eager")
    notebook.run("%%tpu --device cpu\npass")
    assert notebook.lab.recordings[-1].mode == "eager"


def test_static_form_of_what_is_shown(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(FakeLab, "show")
    done = notebook.run("%%tpu eager --device cpu\npass")
    (bundle,) = done.outputs
    assert bundle["text/plain"] and "text/html" in bundle
    assert "object at 0x" not in bundle["text/plain"]


def test_loading_twice_and_unloading(notebook: Notebook) -> None:
    from tpu_lab.notebook import extension

    extension.load_ipython_extension(notebook.shell)
    done = notebook.run("%%tpu eager --device cpu\nprint('once')")
    assert done.text.count("once") == 1
    extension.unload_ipython_extension(notebook.shell)
    done = notebook.run("%%tpu eager\na = 1")
    assert "not found" in done.text + done.errors
