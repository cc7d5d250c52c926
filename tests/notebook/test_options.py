"""The words and options of the magics: what is accepted, and one line that says so for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.notebook.conftest import Notebook
from tpu_lab.errors import OptionError
from tpu_lab.notebook.options import CELL_MODES, COMMANDS, CellOptions, CommandOptions, parse_cell, parse_command


def test_defaults() -> None:
    assert parse_cell("eager") == CellOptions("eager")
    assert parse_cell("", "compile") == CellOptions("compile")
    assert parse_cell("compare") == CellOptions("compare", legs=("eager", "compile", "cpu"), repeat=0)


def test_every_option(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    line = f"compile --device cpu --no-default-device --repeat 3 --trace light --precision highest --name 'two words' --save '{file}' --quiet"
    assert parse_cell(line) == CellOptions("compile", (), "cpu", False, 3, "light", "highest", "two words", file, True)


@pytest.mark.parametrize(
    "line", ["compare --repeat 2 eager cpu", "compare eager --repeat 2 cpu", "--repeat 2 compare eager cpu", "compare eager cpu --repeat=2"]
)
def test_options_and_words_in_any_order(line: str) -> None:
    assert parse_cell(line) == CellOptions("compare", ("eager", "cpu"), repeat=2)


@pytest.mark.parametrize("line", ["--help", "-h", "eager --help"])
def test_help(line: str) -> None:
    assert parse_cell(line) is None


WRONG = {
    "egar": ("'egar'", "eager, fuse, compile or compare"),
    "eager now": ("'now'", "--repeat"),
    "eager --speed 3": ("--speed", "--device, --no-default-device, --repeat, --trace, --precision, --name, --save, --quiet"),
    "eager -x": ("-x", "--quiet"),
    "eager --repeat": ("--repeat", "accepted"),
    "eager --repeat 0": ("'0'", "a whole number from 1"),
    "eager --repeat 2.5": ("'2.5'", "a whole number from 1"),
    "eager --repeat ²": ("'²'", "a whole number from 1"),
    "eager --rep 3": ("--rep", "--repeat"),
    "eager --device gpu": ("'gpu'", "cpu, cuda or tpu"),
    "eager --trace full": ("'full'", "off or light"),
    "eager --precision low": ("'low'", "default, high or highest"),
    "eager --save /no/such/folder/f": ("'/no/such/folder/f'", "a file in a folder that exists"),
    "eager --save /tmp": ("'/tmp'", "a file in a folder that exists"),
    "eager --trace off --save /tmp/f": ("--save", "--trace light"),
    "eager --quiet=1": ("--quiet", "accepted"),
    "eager --name 'a": ("quotation", "quotes in pairs"),
    "compare eager": ("'eager' alone", "two or more"),
    "compare eager gpu": ("'gpu'", "eager, fuse, compile or cpu"),
    "compare eager cpu eager": ("'eager' twice", "once"),
    "compare eager cpu --trace off": ("--trace off", "--trace light"),
}


@pytest.mark.parametrize(("line", "parts"), WRONG.items(), ids=WRONG.keys())
def test_a_wrong_option_is_one_line(notebook: Notebook, line: str, parts: tuple[str, str]) -> None:
    done = notebook.run(f"%%tpu {line}\nran = True")
    assert "ran" not in notebook.names
    assert not done.success
    assert "Traceback" not in done.text + done.errors
    (text,) = (done.text + done.errors).strip().splitlines()
    assert text.startswith("UsageError: ")
    assert all(part in text.replace("Accepted", "accepted") for part in parts)


WRONG_COMMANDS = {
    "fly": ("'fly'", "status, mode, target, runs, compare, report, coverage, doctor, reset or help"),
    "eager": ("'eager'", "%%tpu eager"),
    "status now": ("'now'", "nothing after it"),
    "mode eager fuse": ("'fuse'", "at most one mode"),
    "mode egar": ("'egar'", "eager, fuse, compile or compare"),
    "compare r1": ("fewer than two", "two or more"),
    "runs 'x": ("quotation", "quotes in pairs"),
}


@pytest.mark.parametrize(("line", "parts"), WRONG_COMMANDS.items(), ids=WRONG_COMMANDS.keys())
def test_a_wrong_command_is_one_line(notebook: Notebook, line: str, parts: tuple[str, str]) -> None:
    done = notebook.run(f"%tpu {line}")
    assert not done.success
    (text,) = (done.text + done.errors).strip().splitlines()
    assert all(part in text for part in parts)


def test_commands() -> None:
    assert parse_command("") == CommandOptions("status")
    assert parse_command("compare r1 'my run'") == CommandOptions("compare", ("r1", "my run"))
    assert parse_command("--help") == CommandOptions("help")


@given(st.text(max_size=40))
def test_no_line_is_answered_with_anything_but_options_or_an_option_error(line: str) -> None:
    for parse, words in ((parse_cell, CELL_MODES), (parse_command, COMMANDS)):
        try:
            found = parse(line)
        except OptionError as error:
            assert "\n" not in str(error).replace(line, "").replace(line.strip(), "")
        else:
            assert found is None or getattr(found, "mode", getattr(found, "command", "")) in words


def test_an_option_error_of_the_cells_own_code_keeps_its_traceback(notebook: Notebook) -> None:
    done = notebook.run("%%tpu eager --device cpu\nfrom tpu_lab.errors import OptionError\nraise OptionError('mine')")
    assert type(done.error) is OptionError
    assert "line 3" in done.text


def test_variables_in_the_line(notebook: Notebook) -> None:
    notebook.run("n = 2")
    done = notebook.run("%%tpu eager --device cpu --repeat {n} --name $n\nprint('once')")
    assert done.text.count("once") == 2
    assert notebook.lab.recordings[0].name == "2"


def test_help_of_a_cell_runs_nothing(notebook: Notebook) -> None:
    done = notebook.run("%%tpu --help\nran = True")
    assert done.success
    assert "--repeat N" in done.text
    assert "ran" not in notebook.names


def test_empty_cell(notebook: Notebook) -> None:
    done = notebook.run("%%tpu eager")
    assert "Did you mean the line magic %tpu" in done.text + done.errors
