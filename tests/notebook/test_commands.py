"""`%tpu`: status, mode, runs, compare, coverage, doctor, reset, help."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook.conftest import Notebook
from tpu_lab.errors import RunNotFoundError
from tpu_lab.notebook import doctor


def test_status_and_runs(notebook: Notebook) -> None:
    assert "no run has been recorded yet" in notebook.run("%tpu runs").text
    notebook.run("%%tpu eager --device cpu --name alpha\npass")
    notebook.run("%%tpu eager --device cpu\npass")
    status = notebook.run("%tpu").text
    assert status == notebook.run("%tpu status").text
    assert "eager" in status and "2 recorded, the last is r2" in status
    first, second = notebook.run("%tpu runs").text.splitlines()
    assert first.split()[:3] == ["r1", "eager", "cpu"] and first.endswith("alpha")
    assert second.split()[0] == "r2"


def test_compare_of_runs(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    by_id = {}

    def find(name: str) -> object:
        by_id.update({run.id: run for run in notebook.lab.kept})
        if name not in by_id:
            raise RunNotFoundError(f"there is no run {name!r}", accepted="r1 or r2")
        return by_id[name]

    monkeypatch.setattr(notebook.lab, "find", find)
    notebook.run("%%tpu eager --device cpu\npass")
    notebook.run("%%tpu eager --device cpu\npass")
    assert notebook.run("%tpu compare r1 r2").success
    shown = notebook.lab.shown[-1]
    assert shown.mode == "compare" and shown.comparison is not None
    assert [m.mode for m in shown.comparison.modes] == ["eager (r1)", "eager (r2)"]
    assert shown.comparison.recorded
    done = notebook.run("%tpu compare r1 r9")
    assert (done.text + done.errors).strip() == "UsageError: there is no run 'r9'. Accepted: r1 or r2. [TE301]"
    assert "different runs" in notebook.run("%tpu compare r1 r1").errors


def test_coverage(notebook: Notebook) -> None:
    shown = notebook.run("%tpu coverage kthvalue")
    assert shown.success
    (data,) = [output.get("data", output) for output in shown.outputs]
    assert "2 ATen overloads" in str(data) and "application/vnd.tpu-lab.coverage+json" in str(data)


def test_reset(notebook: Notebook) -> None:
    notebook.run("%%tpu eager --device cpu\nkept = 1")
    assert "forgotten" in notebook.run("%tpu reset").text
    assert notebook.lab.kept == []
    assert notebook.names["kept"] == 1


def test_help_names_every_command_mode_and_option(notebook: Notebook) -> None:
    from tpu_lab.notebook.options import COMMANDS, cell_parser

    text = notebook.run("%tpu help").text
    for command in COMMANDS:
        assert f"%tpu {command}" in text
    for option in cell_parser().accepted().split(", "):
        assert option in text
    for mode in ("eager", "fuse", "compile", "compare"):
        assert f"%%tpu {mode}" in text


def test_doctor_reports_everything_once_with_a_next_step(notebook: Notebook) -> None:
    text = notebook.run("%tpu doctor").text
    for topic in ("python", "torch", "jax", "device", "JupyterLab"):
        assert topic in text
    for line in text.splitlines():
        assert not line.startswith("!") or "next:" in text


def test_doctor_tells_of_programs_on_disk(notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def told() -> doctor.Finding:
        return next(f for f in doctor.examine(notebook.lab) if f.topic == "programs on disk")

    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path / "cache"))
    assert f"0 in {tmp_path / 'cache'}" in told().state and not told().remedy
    (tmp_path / "cache").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="TE410"):
        assert "chmod 700" in told().remedy
    monkeypatch.setenv("TPU_LAB_CACHE", "0")
    assert "off" in told().state


def test_doctor_goes_on_after_a_fault(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise OSError("no device tree")

    monkeypatch.setattr(notebook.lab, "owns_device", broken)
    findings = doctor.examine(notebook.lab)
    assert any(f.topic == "device" and "OSError: no device tree" in f.state for f in findings)
    assert any(f.topic == "JupyterLab" for f in findings)


def test_report_writes_a_page(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpu_lab.notebook.commands.run_page", lambda run: f"page of {run.id}")
    assert "before any run" in notebook.run(f"%tpu report {tmp_path}/page.html").errors
    notebook.run("%%tpu eager --device cpu --name alpha\npass")
    notebook.run("%%tpu eager --device cpu\npass")
    assert "r2 is in" in notebook.run(f"%tpu report {tmp_path}/page.html").text
    assert (tmp_path / "page.html").read_text() == "page of r2"
    assert "without one file" in notebook.run("%tpu report").errors
    assert "folder that exists" in notebook.run(f"%tpu report {tmp_path}/none/page.html").errors
