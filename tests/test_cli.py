"""`tpu-lab`: the same as in a notebook, from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpu_lab import cli
from tpu_lab.record import Program, program_codec
from tpu_lab.record.program import PREDICTED
from tpu_lab.xla import cache_folder, executable_store, program_store, target_compile

FILE = """\
import torch
net = torch.nn.Linear(64, 32)
example = torch.zeros(8, 64)
pair = (torch.zeros(4, 4), torch.zeros(4, 4))
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "model.py").write_text(FILE)
    return tmp_path / "model.py"


def test_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["targets"]) == 0
    assert "v6e" in (text := capsys.readouterr().out) and "libtpu" in text


@pytest.mark.skipif(not target_compile.installed(), reason="libtpu is not installed (Linux x86-64 only)")
def test_a_file_is_compiled_for_targets(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", f"{model}:net", "--target", "v5e", "--mode", "compile", "--json", str(model.parent / "out")]
    assert cli.main(words) == 0
    assert PREDICTED in (text := capsys.readouterr().out) and "TPU v5e" in text
    program = Program.from_json((model.parent / "out" / "v5e-compile.json").read_text())
    assert program.target.name == "v5e" and program.kernels


def test_examples_by_name(model: Path) -> None:
    assert [tuple(t.shape) for t in cli.load_function(f"{model}:net", "pair")[1]] == [(4, 4), (4, 4)]
    assert len(cli.load_function(f"{model}:net", "example")[1]) == 1


@pytest.mark.parametrize(
    ("name", "words"), [("net", "has no 'missing'"), ("nothing", "has no 'nothing'"), ("", "has no ''")], ids=["example", "function", "empty"]
)
def test_wrong_names_are_one_line(model: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile", f"{model}:{name}", "--example", "missing", "--target", "v5e"]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile", f"{tmp_path}/no.py:net"]) == 1
    assert "no.py" in capsys.readouterr().err


def test_the_cache_is_told_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))
    cache_folder.opened("executables")
    executable_store.save(executable_store.key(b"one"), bytes(10), 1.0)
    assert program_store.save("two", program_codec.pack(Program()))
    assert cli.main(["cache", "info"]) == 0
    text = capsys.readouterr().out
    assert str(tmp_path) in text and "executables       1 files" in text and "programs          1 files" in text and "2 GiB" in text
    assert cli.main(["cache", "clear"]) == 0
    assert "2 files removed" in capsys.readouterr().out
    assert cache_folder.size("executables") == cache_folder.size("programs") == (0, 0)


def test_a_cache_that_is_not_safe_is_not_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "executables").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path / "link"))
    assert cli.main(["cache", "clear"]) == 1
    error = capsys.readouterr().err
    assert "is a symbolic link" in error and error.count("\n") == 1


def test_the_operator_table_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["coverage", "kthvalue", "--torch-tpu", "missing", "--save", str(tmp_path / "table.csv")]) == 0
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["overload", "aten.kthvalue", "aten.kthvalue.values"]
    assert "2 overloads" in capsys.readouterr().out
    assert cli.main(["coverage", "--here", "gone"]) == 1
    assert "Accepted: native, decomposed, fallback or missing" in capsys.readouterr().err
