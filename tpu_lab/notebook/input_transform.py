"""What IPython makes of the text of a `%%tpu` cell before it runs.

A cell magic is a function call and cannot await, and an invalid body would fail only inside it, under a pile of frames. So:
a body that awaits is called with `await`, and from the first statement that is not valid on, the text stays plain, which
makes IPython report the error itself, at the user's line. Every other cell is left to IPython's own handling of magics.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from .cell import awaits, compile_statement

_MAGIC = re.compile(r"%%tpu(?=\s|$)(.*)")


class TpuCellTransformer:
    """A line transformer for `shell.input_transformer_manager.line_transforms`; runs before IPython's `cell_magic`."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        """Returns the lines of the cell as they are, or rewritten; runs nothing."""
        found = _MAGIC.match(lines[0]) if lines else None
        body = "".join(lines[1:])
        if found is None or not body.strip():
            return lines
        line = found[1].strip()
        try:
            code = self._shell.transform_cell(body)
            nodes = self._shell.compile.ast_parse(code).body
        except SyntaxError:
            return self._plain_from(lines, line, [], 0)
        waits = False
        for i, node in enumerate(nodes):
            try:
                waits = awaits(compile_statement(self._shell, node, False, "<tpu cell>")) or waits
            except SyntaxError:
                return self._plain_from(lines, line, nodes, i) if code.count("\n") == _lines(body) else lines
        return [f"await {_call(line, body)}\n"] if waits else lines

    def _plain_from(self, lines: list[str], line: str, nodes: list[ast.stmt], bad: int) -> list[str]:
        """The statements before number `bad` in the magic, the rest as plain text on its own lines, which IPython then refuses."""
        if not bad:
            rewritten = ["# " + lines[0], *lines[1:]]
        else:
            start, end_before = _first_line(nodes[bad]), nodes[bad - 1].end_lineno or 0
            if start <= end_before:
                return lines
            rewritten = [_call(line, "".join(lines[1:start])) + "\n", *["\n"] * (start - 1), *lines[start:]]
        return rewritten if self._is_refused(rewritten) else lines

    def _is_refused(self, lines: list[str]) -> bool:
        """Whether the text is invalid as a whole: only then may it be left to IPython, or it would run without its mode."""
        try:
            code = "".join(self._shell.input_transformer_manager.do_token_transforms(list(lines)))
            compile(code, "<tpu cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if self._shell.autoawait else 0, dont_inherit=True)
        except SyntaxError:
            return True
        return False


def _call(line: str, body: str) -> str:
    return f"get_ipython().run_cell_magic('tpu', {line!r}, {body!r})"


def _lines(body: str) -> int:
    return body.count("\n") + (not body.endswith("\n"))


def _first_line(node: ast.stmt) -> int:
    """Line of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])
