"""The text of a `%%tpu` cell: what to run, under which file name, and at which line numbers the user sees it.

Line k of the cell on the screen is line k in tracebacks, records and the debugger; the magic is normally line 1.
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from typing import Any

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@dataclass(frozen=True)
class Cell:
    """A cell ready to run. `nodes` carry the line numbers of `text`."""

    text: str
    """All lines the user sees, the magic included, with IPython's `%line` and `!shell` syntax as typed."""
    body: str
    """What follows the magic line."""
    filename: str
    """Under this name linecache and tracebacks find the lines."""
    number: int
    """The n of `In[n]`."""
    nodes: list[ast.stmt]
    silenced: bool
    """True: the body ends in a semicolon, so its last value is not shown."""
    awaits: bool
    """True: there is an `await` at the top level."""


def read_cell(shell: Any, line: str, body: str) -> Cell:
    """Parses the body of a cell magic.

    `line` is what follows `%%tpu`. The cell around it is taken from the running cell's raw text where the body is the end of
    it (so `%%time` above `%%tpu` keeps its line); otherwise a magic line is assumed above the body. Raises SyntaxError.
    """
    running = shell.displayhook.exec_result
    raw = running.info.raw_cell if running is not None and running.info is not None else ""
    number = running.execution_count if running is not None and running.execution_count else shell.execution_count
    above = _lines_above(raw or "", body)
    if above is None:
        above, raw = f"%%tpu {line}".rstrip() + "\n", f"%%tpu {line}".rstrip() + "\n" + body
    blank = _leading_blank_lines(body)
    code = str(shell.transform_cell(body))
    # the lines above keep their place as comments: the parser counts as the user does, and formatters of tracebacks can parse it
    source = re.sub(r"^(?=[^\n#])", "# ", above, flags=re.MULTILINE) + "\n" * blank + code
    filename = str(shell.compile.cache(source, number, raw_code=raw))
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=filename))
    return Cell(raw, body, filename, number, tree.body, _silenced(shell, body), _awaits(shell, tree, filename))


def _awaits(shell: Any, tree: ast.Module, filename: str) -> bool:
    if not shell.autoawait:
        return False
    try:
        return awaits(compile(tree, filename, "exec", _AWAIT, dont_inherit=True))
    except SyntaxError:  # statement by statement the valid ones run first, as in a plain cell
        return False


def _lines_above(raw: str, body: str) -> str | None:
    """The lines of the raw cell before the body; None if the body is not its end."""
    end, tail = raw.rstrip(), body.rstrip()
    if not tail or not end.endswith(tail):
        return None
    above = end[: len(end) - len(tail)]
    return above if above.endswith("\n") and above.strip() else None


def _leading_blank_lines(body: str) -> int:
    """How many lines IPython's input transformation drops from the top."""
    count = 0
    for text in body.splitlines():
        if text.strip():
            return count
        count += 1
    return count


def _silenced(shell: Any, body: str) -> bool:
    from tokenize import TokenError

    try:
        return bool(shell.displayhook.semicolon_at_end_of_expression(body))
    except (TokenError, SyntaxError):  # `%line` and `!shell` syntax is not Python: IPython cannot tell either
        return False


def split_interactive(nodes: list[ast.stmt], interactivity: str, silenced: bool) -> list[tuple[ast.stmt, bool]]:
    """Which statements show their value, as IPython's `ast_node_interactivity` says: pairs (statement, shown)."""
    if not nodes:
        return []
    nodes = list(nodes)
    if interactivity == "last_expr_or_assign":
        name = _assigned_name(nodes[-1])
        if name:
            nodes.append(ast.fix_missing_locations(ast.copy_location(ast.Expr(ast.Name(name, ast.Load())), nodes[-1])))
        interactivity = "last_expr"
    if silenced:
        interactivity = "none"
    if interactivity == "last_expr":
        interactivity = "last" if isinstance(nodes[-1], ast.Expr) else "none"
    last = len(nodes) - 1
    return [(node, interactivity == "all" or (interactivity == "last" and i == last)) for i, node in enumerate(nodes)]


def _assigned_name(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def compile_statement(shell: Any, node: ast.stmt, shown: bool, filename: str) -> Any:
    """One statement as a code object, with IPython's compiler: `__future__` imports of earlier cells hold, top-level await is allowed."""
    module: ast.Module | ast.Interactive = ast.Interactive([node]) if shown else ast.Module([node], [])
    with shell.compile.extra_flags(_AWAIT if shell.autoawait else 0):
        return shell.compile(module, filename, "single" if shown else "exec")


def compile_expression(shell: Any, node: ast.Expr, filename: str) -> Any:
    """An expression statement as a code object whose `eval` gives its value."""
    with shell.compile.extra_flags(_AWAIT if shell.autoawait else 0):
        return shell.compile(ast.Expression(node.value), filename, "eval")


def awaits(code: Any) -> bool:
    """Whether a code object has to be awaited."""
    return bool(code.co_flags & inspect.CO_COROUTINE)
