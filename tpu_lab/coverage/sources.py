"""The text of a lowering, read from its file: jax is not imported."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

LOWERINGS = Path(__file__).parents[1] / "lowering"


@cache
def _file(name: str) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """A file's lines, and for each function in it the first and last line of the statement at its top level that holds it."""
    try:
        text = (LOWERINGS / f"{name}.py").read_text(encoding="utf-8")
    except OSError:
        return [], {}
    places: dict[str, tuple[int, int]] = {}
    for statement in ast.parse(text).body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef):
                places.setdefault(node.name, (first, statement.end_lineno or first))
    return text.splitlines(), places


def lowering_source(lowering: str) -> tuple[str, str]:
    """Where the lowering `file.function` stands (`tpu_lab/lowering/loss.py:45`), and its text; empty where it is not found.

    A function that a table or a loop registers is shown with what registers it.
    """
    name, _, function = lowering.partition(".")
    lines, places = _file(name)
    if function not in places:
        return "", ""
    first, last = places[function]
    return f"tpu_lab/lowering/{name}.py:{first}", "\n".join(lines[first - 1 : last])
