"""A `%%tpu` cell means what the same cell means without the magic. The golden is plain IPython."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.notebook.conftest import Done, Notebook

MAGIC = "%%tpu eager --device cpu"

CELLS = {
    "assignment": "a = 1\nb = a + 1",
    "last expression": "a = 3\na * 2",
    "semicolon": "a = 3\na * 2;",
    "semicolon and comment": "a = 3\na * 2;  # hidden",
    "none is not shown": "None",
    "expression before the last": "1 + 1\na = 2",
    "expression in a block": "if True:\n    5",
    "nested functions": "n = 3\ndef outer():\n    def inner(v):\n        return v * n\n    return [inner(k) for k in range(3)]\nr = outer()",
    "recursion": "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\nfact(5)",
    "comprehension sees cell names": "k = 2\nr = [k * j for j in range(3) if j < k]\nd = {j: k for j in range(2)}",
    "class scope": "f = 2\nclass Box:\n    g = f\n    def get(self):\n        return Box.g + f\nr = Box().get()",
    "late binding": "s = 1\nlater = lambda: s\ns = 5\nr = later()",
    "with and loop variables": "import contextlib\nwith contextlib.nullcontext(4) as w:\n    for i in range(3):\n        pass",
    "del": "a = 1\nb = 2\ndel a",
    "imports": "import os.path as p\nfrom math import *\nr = sqrt(16)",
    "global statement": "def f():\n    global made\n    made = 7\nf()",
    "walrus": "[y := 4, y + 1]",
    "star assignment": "a, *b = [1, 2, 3]",
    "annotations": "x: int = 3\ny: str\nr = __annotations__",
    "future import": "from __future__ import annotations\ndef f(a: nowhere): pass\nr = f.__annotations__",
    "try": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    r = str(e)\nfinally:\n    s = 1",
    "decorator": "def twice(f):\n    return lambda v: f(f(v))\n@twice\ndef up(v):\n    return v + 1\nr = up(1)",
    "print": "print('one')\nprint('two', end='')",
    "display": "display(3)\ndisplay('x')",
    "multi-line string": "t = '''a\n  b\n'''\nt",
    "line magic": "x = 5\n%who_ls int",
    "assigned magic": "r = %pwd\nr = type(r).__name__",
    "shell command": "!echo hello",
    "assigned shell": "r = !printf 'a\\nb'\nr = list(r)",
    "magic in a block": "for i in range(2):\n    %time pass",
    "help syntax": "import math",
    "nested cell magic": "%%capture cap\nprint('inside')\nz = 1",
    "timed": "%%time\nz = 4\nz + 1",
    "indented": "    a = 1\n    b = 2",
    "blank lines": "\n\na = 1\n\na",
    "only a comment": "# nothing",
    "unicode": "größe = 'ä'\ngröße",
    "underscore": "_ = 3\n_",
    "input history": "len(In) > 0",
    "raises": "a = 1\nraise ValueError('no')\nb = 2",
    "raises in a function": "def f(v):\n    return v / missing\na = 1\nb = f(a)",
    "raises in a block": "a = []\nfor i in range(5):\n    a.append(i)\n    if i == 2:\n        raise KeyError(i)",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('second') from e",
    "exit": "import sys\na = 1\nsys.exit('stop')\nb = 2",
    "syntax error": "a = 1\nx = (1 +",
    "syntax error in a string": "a = 'x",
    "indentation error": "if True:\na = 1",
    "return at top": "a = 1\nreturn 5\nb = 2",
    "break at top": "a = 1\n\nbreak",
    "await in a plain function": "a = 1\ndef f():\n    await g()",
    "unknown magic": "a = 1\n%nosuchmagic\nb = 2",
    "await": "import asyncio\nr = await asyncio.sleep(0, 7)\nr",
    "async for": "async def gen():\n    yield 1\n    yield 2\nr = [v async for v in gen()]",
    "await and error": "import asyncio\na = 1\nawait asyncio.sleep(0)\n1 / 0",
    "await in a loop": "import asyncio\nr = []\nfor i in range(3):\n    r.append(await asyncio.sleep(0, i))",
    "cancelled task": "import asyncio\nt = asyncio.ensure_future(asyncio.sleep(9))\nt.cancel()\ntry:\n    await t\nexcept asyncio.CancelledError:\n    r = 'cancelled'",
}


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


@pytest.mark.parametrize("body", CELLS.values(), ids=CELLS.keys())
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
        plain = notebook.run(f"# first line\n{CELLS[name]}")
        notebook.reset()
        magic = notebook.run(f"{MAGIC}\n{CELLS[name]}")
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
