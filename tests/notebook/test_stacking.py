"""`%%tpu` with other cell magics above and below it, and inside itself (ipython/ipython#13926)."""

from __future__ import annotations

import re

import pytest

from tests.notebook.conftest import Notebook

MAGIC = "%%tpu eager --device cpu"


@pytest.mark.parametrize("order", [f"%%capture cap\n{MAGIC}", f"{MAGIC}\n%%capture cap"], ids=["capture first", "capture second"])
def test_capture_keeps_names_and_text(notebook: Notebook, order: str) -> None:
    done = notebook.run(f"{order}\nprint('hidden')\na = 1\na + 1")
    assert done.success
    assert "hidden" not in done.text
    assert "hidden" in notebook.names["cap"].stdout
    assert notebook.names["a"] == 1


@pytest.mark.parametrize("order", [f"%%time\n{MAGIC}", f"{MAGIC}\n%%time"], ids=["time first", "time second"])
def test_time_keeps_names_value_and_errors(notebook: Notebook, order: str) -> None:
    done = notebook.run(f"{order}\nb = 3\nb * 2")
    assert done.success
    assert "Wall time" in done.text
    assert done.text.count("Out[") == 1
    assert notebook.names["_"] == 6
    failed = notebook.run(f"{order}\nc = 4\n1 / 0")
    assert isinstance(failed.error, ZeroDivisionError)
    assert failed.text.count("ZeroDivisionError: division by zero") == 1
    assert notebook.names["c"] == 4


def test_errors_under_capture_are_as_without_the_magic(notebook: Notebook) -> None:
    plain = notebook.run("%%capture cap\nprint('x')\n1 / 0")
    text = notebook.names["cap"].stdout
    magic = notebook.run(f"%%capture cap\n{MAGIC}\nprint('x')\n1 / 0")
    assert magic.success == plain.success
    assert text.startswith("x") and notebook.names["cap"].stdout.startswith("x")
    assert ("ZeroDivisionError" in notebook.names["cap"].stdout) == ("ZeroDivisionError" in text)


def test_line_numbers_count_the_whole_cell(notebook: Notebook) -> None:
    done = notebook.run(f"%%time\n{MAGIC}\na = 1\n1 / 0")
    assert re.search(r"line 4\b", done.text)
    assert "-> 4 1 / 0" in done.text


def test_bash_inside(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC}\n%%bash\necho from bash")
    assert done.success
    assert "from bash" in done.text


def test_tpu_inside_tpu(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC} --name outer\n{MAGIC} --name inner\na = 1")
    assert done.success
    assert notebook.names["a"] == 1
    assert [r.name for r in notebook.lab.shown] == ["inner", "outer"]


def test_run_cell_inside(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC}\nget_ipython().run_cell('n = 5')\nn + 1")
    assert done.success
    assert notebook.names["n"] == 5
    assert "6" in done.text


def test_await_under_time_is_refused_as_in_a_plain_cell(notebook: Notebook) -> None:
    plain = notebook.run("%%time\nimport asyncio\nawait asyncio.sleep(0)")
    magic = notebook.run(f"%%time\n{MAGIC}\nimport asyncio\nawait asyncio.sleep(0)")
    assert type(magic.error) is type(plain.error) is SyntaxError
