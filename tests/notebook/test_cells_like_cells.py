"""A `%%tpu` cell means what the same cell means without the magic. The golden is plain IPython."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.notebook.conftest import Done, Notebook
from tests.notebook.corpus import PYTHON

MAGIC = "%%tpu eager --device cpu"


def _names(notebook: Notebook) -> dict[str, Any]:
    return {
        name: value if isinstance(value, (int, float, str, list, dict, tuple, bool)) else type(value).__name__
        for name, value in notebook.names.items()
        if not name.startswith("_") and name not in ("In", "Out", "get_ipython", "exit", "quit", "open")
    }


def _seen(text: str) -> str:
    """Text without what differs in every run: times and numbers of cells."""
    text = re.sub(r"(CPU times|Wall time).*", r"\1", text)
    return re.sub(r"In\[\d+\]|Out\[\d+\]|ipython-input-\d+-[0-9a-f]+", "N", text)


def _compare(plain: Done, magic: Done) -> None:
    assert magic.success == plain.success
    assert type(magic.error) is type(plain.error)
    assert str(magic.error) == str(plain.error) or isinstance(plain.error, SyntaxError)
    assert magic.outputs == plain.outputs


@pytest.mark.parametrize("body", PYTHON.values(), ids=PYTHON.keys())
def test_same_as_the_plain_cell(notebook: Notebook, body: str) -> None:
    plain = notebook.run(body)
    names, shown = _names(notebook), notebook.names.get("_")
    notebook.reset()
    magic = notebook.run(f"{MAGIC}\n{body}")
    _compare(plain, magic)
    assert _names(notebook) == names
    assert repr(notebook.names.get("_")) == repr(shown)
    if plain.success:
        assert _seen(magic.text) == _seen(plain.text)


@pytest.mark.parametrize("xmode", ["Context", "Plain", "Verbose", "Minimal"])
@pytest.mark.parametrize(
    "name", ["raises", "raises in a function", "raises in a block", "chained", "await and error", "syntax error", "return at top"]
)
def test_same_traceback_one_line_further_down(notebook: Notebook, name: str, xmode: str) -> None:
    """In the same form, without frames of the machinery; the magic is line 1, so numbers are one higher."""
    notebook.shell.InteractiveTB.set_mode(xmode)
    try:
        plain = notebook.run(f"# first line\n{PYTHON[name]}")
        notebook.reset()
        magic = notebook.run(f"{MAGIC}\n{PYTHON[name]}")
    finally:
        notebook.shell.InteractiveTB.set_mode("Context")
    assert _seen(magic.text).replace("# " + MAGIC, "# first line") == _seen(plain.text)


def test_the_value_reaches_the_result_and_the_output_history(notebook: Notebook) -> None:
    done = notebook.shell.run_cell(f"{MAGIC}\nv = 20\nv + 1", store_history=True)
    assert done.result == 21
    assert notebook.names["_"] == 21
    assert notebook.names["Out"][notebook.shell.execution_count - 1] == 21


def test_one_cell_is_one_execution(notebook: Notebook) -> None:
    before = notebook.shell.execution_count
    notebook.run(f"{MAGIC}\na = 1")
    assert notebook.shell.execution_count == before + 1
    assert notebook.shell.history_manager.input_hist_raw[-1] == f"{MAGIC}\na = 1"


def test_an_error_is_reported_once(notebook: Notebook) -> None:
    done = notebook.run(f"{MAGIC}\n1 / 0")
    assert done.text.count("ZeroDivisionError: division by zero") == 1
    assert "run_cell_magic" not in done.text
    assert "tpu_lab" not in done.text


@pytest.mark.parametrize("interactivity", ["all", "last", "last_expr", "last_expr_or_assign", "none"])
@pytest.mark.parametrize("body", ["1\n2", "a = 5", "a = 1\na += 1", "3\nb = 4", "if True:\n    7"])
def test_interactivity_setting(notebook: Notebook, interactivity: str, body: str) -> None:
    notebook.shell.ast_node_interactivity = interactivity
    try:
        plain = notebook.run(body)
        notebook.reset()
        magic = notebook.run(f"{MAGIC}\n{body}")
    finally:
        notebook.shell.ast_node_interactivity = "last_expr"
    assert _seen(magic.text) == _seen(plain.text)


def test_silent_execution_shows_no_value(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.shell.run_cell(f"{MAGIC}\n1 + 1", silent=True)
    assert "2" not in capsys.readouterr().out


def test_ast_transformers_apply(notebook: Notebook) -> None:
    import ast

    class Negate(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.copy_location(ast.Constant(-node.value), node) if isinstance(node.value, int) else node

    transformer = Negate()
    notebook.shell.ast_transformers.append(transformer)
    try:
        # in a plain cell the call that the magic becomes is transformed as well, so only the body counts
        notebook.run(f"{MAGIC}\na = 4")
    finally:
        notebook.shell.ast_transformers.remove(transformer)
    assert notebook.names["a"] == -4


def test_autoawait_off_refuses_await(notebook: Notebook) -> None:
    notebook.shell.autoawait = False
    try:
        done = notebook.run(f"{MAGIC}\na = 1\nimport asyncio\nawait asyncio.sleep(0)")
    finally:
        notebook.shell.autoawait = True
    assert isinstance(done.error, SyntaxError)
    assert notebook.names["a"] == 1


def test_call_by_hand(notebook: Notebook) -> None:
    done = notebook.run("def f():\n    get_ipython().run_cell_magic('tpu', 'eager --device cpu', 'h = 3\\nraise KeyError(1)')\nf()")
    assert isinstance(done.error, KeyError)
    assert notebook.names["h"] == 3


def test_awaiting_body_called_by_hand_can_be_awaited(notebook: Notebook) -> None:
    notebook.run("import asyncio\nawait get_ipython().run_cell_magic('tpu', 'eager --device cpu', 'h = await asyncio.sleep(0, 3)')")
    assert notebook.names["h"] == 3
