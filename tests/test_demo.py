"""`python -m tpu_lab.demo`: its options, what it prints, how it ends. The first notebook itself runs in tests/test_notebooks.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
import pytest

from tpu_lab import demo


def notebook(folder: Path, *sources: str) -> Path:
    path = folder / "small.ipynb"
    cells = [nbformat.v4.new_markdown_cell("# Title"), *map(nbformat.v4.new_code_cell, sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_a_notebook_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(["--notebook", str(tmp_path / "none.ipynb")])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "there is no notebook" in said and "--notebook" in said


def test_a_missing_package_is_named_with_the_remedy(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nbclient", None)
    with pytest.raises(SystemExit):
        demo.main(["--notebook", str(notebook(tmp_path))])
    assert "pip install 'tpu-lab[demo]'" in capsys.readouterr().err


def test_a_failing_cell_ends_it_with_the_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert demo.main(["--notebook", str(notebook(tmp_path, "print('fine')", "1 / 0"))]) == 1
    printed = capsys.readouterr()
    assert "fine" in printed.out and "ZeroDivisionError" in printed.err


def test_the_last_line_is_json_and_the_notebook_is_saved_without_the_counting_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    setup = "%load_ext tpu_lab\nimport torch\ncosine = 0.5"
    compared = "%%tpu compare eager compile cpu\nx = torch.ones(4)\ny = (x * 3).sum()\nprint('total', y.item())"
    saved = tmp_path / "done.ipynb"
    assert demo.main(["--notebook", str(notebook(tmp_path, setup, compared)), "--save", str(saved)]) == 0
    printed = capsys.readouterr().out
    figures = json.loads(printed.strip().splitlines()[-1])["main_job"]
    assert figures["max_rel_diff"] == 0 and figures["minilm_cosine"] == 0.5
    assert all(0 <= figures[name] < 60 for name in ("eager_s", "compile_s", "cpu_s"))
    assert "cell 3: %%tpu compare eager compile cpu" in printed and "total 12" in printed
    assert len(nbformat.read(saved, as_version=4).cells) == 3
