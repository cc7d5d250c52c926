"""Cuts a cell into what torch.compile can take and what must run as plain Python.

A cell is module-level code, which Dynamo cannot compile. Maximal runs of assignments and expressions become *regions*, each
replaced in the cell by one call; loops, `with`, `try` and `if` stay and have their bodies cut in turn, so a loop's body is a
region that is compiled once. Imports, definitions, prints, `await`, `del` and IPython syntax stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

ENTRY = "__tpu_lab_region__"
"""Name of the builtin that runs region k during the cell."""

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)
_SUSPENDS = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_READS_FRAME = frozenset(("locals", "globals", "vars", "dir", "exec", "eval", "super", "__import__", "get_ipython", "breakpoint"))
_TALKS = frozenset(("print", "display", "input", "help", "open", "exit", "quit"))


@dataclass
class Region:
    """Consecutive statements of a cell that may be compiled together."""

    statements: list[ast.stmt] = field(default_factory=list)
    before: int = -1
    """Number of the region before it in the same block, if only prints lie between; -1: there is none."""
    printed: int = 0
    """Line of the first of those prints; 0: there is none."""


@dataclass(frozen=True)
class Cut:
    """A cell after cutting: the statements that IPython's way of running a cell runs, and the regions they call."""

    statements: list[ast.stmt]
    regions: list[Region]
    plain: list[tuple[int, int]]
    """First and last lines of what stays outside the regions: whole statements, and the heads of loops and the like."""


def cut(statements: Sequence[ast.stmt], each_apart: bool = False) -> Cut:
    """Cuts the statements of a cell. The given nodes are not changed.

    `each_apart`: each top-level expression is a region of its own, because IPython shows all their values.
    """
    regions: list[Region] = []
    plain: list[tuple[int, int]] = []
    if not each_apart:
        return Cut(_cut_block(statements, regions, plain), regions, plain)
    blocks: list[list[ast.stmt]] = []
    for node in statements:
        if not blocks or isinstance(node, ast.Expr) or isinstance(blocks[-1][-1], ast.Expr):
            blocks.append([])
        blocks[-1].append(node)
    return Cut([part for block in blocks for part in _cut_block(block, regions, plain)], regions, plain)


def _cut_block(statements: Sequence[ast.stmt], regions: list[Region], plain: list[tuple[int, int]]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    current = before = -1
    printed = 0
    for node in statements:
        if compilable(node):
            if current < 0:
                current = len(regions)
                regions.append(Region(before=before, printed=printed))
                out.append(_call(current, node))
            regions[current].statements.append(node)
            continue
        if prints(node):
            before, printed = (current, node.lineno) if current >= 0 else (before, printed)
        else:
            before, printed = -1, 0
        current = -1
        _note_plain(node, plain)
        out.append(_cut_inside(node, regions, plain))
    return out


def _note_plain(node: ast.stmt, plain: list[tuple[int, int]]) -> None:
    """Adds the lines of a statement that is no part of a region, or those before its first block; joins them to the lines just above."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    last = node.end_lineno or first
    body = None if isinstance(node, _DEFINITIONS) else getattr(node, "body", None)
    if body:
        last = max(first, body[0].lineno - 1)
    if plain and plain[-1][1] + 1 == first:
        first = plain.pop()[0]
    plain.append((first, last))


def _call(number: int, at: ast.stmt) -> ast.stmt:
    call = ast.Expr(ast.Call(ast.Name(ENTRY, ast.Load()), [ast.Constant(number)], []))
    return ast.fix_missing_locations(ast.copy_location(call, at))


def _cut_inside(node: ast.stmt, regions: list[Region], plain: list[tuple[int, int]]) -> ast.stmt:
    """A compound statement with its blocks cut; a definition or simple statement as it is."""
    if isinstance(node, _DEFINITIONS) or not any(hasattr(node, block) for block in ("body", "cases")):
        return node
    parts: dict[str, Any] = dict(ast.iter_fields(node))
    for block in ("body", "orelse", "finalbody"):
        if isinstance(parts.get(block), list) and parts[block]:
            parts[block] = _cut_block(getattr(node, block), regions, plain)
    for clauses in ("handlers", "cases"):
        if clauses in parts:
            parts[clauses] = [_cut_clause(clause, regions, plain) for clause in getattr(node, clauses)]
    make: type[Any] = type(node)
    made: ast.stmt = ast.copy_location(make(**parts), node)
    return made


def _cut_clause(clause: ast.AST, regions: list[Region], plain: list[tuple[int, int]]) -> ast.AST:
    parts = dict(ast.iter_fields(clause))
    parts["body"] = _cut_block(parts["body"], regions, plain)
    return ast.copy_location(type(clause)(**parts), clause) if isinstance(clause, ast.ExceptHandler) else type(clause)(**parts)


def compilable(node: ast.stmt) -> bool:
    """Whether a statement may be part of a region."""
    if isinstance(node, _SIMPLE):
        return not any(map(_forbids, ast.walk(node)))
    if isinstance(node, ast.If):
        return not any(map(_forbids, ast.walk(node.test))) and all(map(compilable, [*node.body, *node.orelse]))
    return isinstance(node, ast.Pass)


def _forbids(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _READS_FRAME or node.func.id in _TALKS
    return isinstance(node, _SUSPENDS) or (isinstance(node, ast.comprehension) and bool(node.is_async))


def prints(node: ast.stmt) -> bool:
    """Whether a statement is plain because it prints or shows something."""
    return isinstance(node, ast.Expr) and any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _TALKS for n in ast.walk(node)
    )


def names_read(statements: Sequence[ast.stmt]) -> set[str]:
    """Every name that is read anywhere in the statements, inner scopes included."""
    return {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_bound(statements: Sequence[ast.stmt]) -> set[str]:
    """Every name that is assigned anywhere in the statements."""
    return {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def names_in_inner_scopes(statements: Sequence[ast.stmt]) -> set[str]:
    """Every name met in functions, lambdas, classes and generators of the statements: code that may run at another time."""
    scopes = (n for s in statements for n in ast.walk(s) if isinstance(n, _SCOPES))
    return {n.id for scope in scopes for n in ast.walk(scope) if isinstance(n, ast.Name)} | {
        name for s in statements for n in ast.walk(s) if isinstance(n, ast.Global) for name in n.names
    }


def assigned_before_read(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that are certainly bound by plain assignments at the top of the statements before anything reads them."""
    bound: set[str] = set()
    read: set[str] = set()
    for statement in statements:
        read |= names_read([statement]) | names_in_inner_scopes([statement])
        if isinstance(statement, ast.Assign):
            bound |= {name for target in statement.targets for name in _bound_by(target)} - read
        elif not isinstance(statement, ast.Expr):
            read |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return bound


def _bound_by(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Starred):
        yield from _bound_by(target.value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _bound_by(part)
