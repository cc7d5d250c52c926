"""Runs the regions of a cell through torch.compile with the meaning of plain cell code.

A region becomes a function `cell()` whose assigned names are declared `global`, so functions the region calls, nested scopes
and exceptions see them as they would see a plain cell's. Python numbers are the exception: Dynamo makes a global number part
of the program and compiles again for each value, so numbers go in as arguments and come back as results, unless other code
of the notebook reads or writes the same name.
"""

from __future__ import annotations

import ast
import builtins
import dis
import gc
import symtable
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import torch

from ..compiler.events import BreakTold, CompileListener, Frame, RegionTold, progress
from ..record.reasons import BreakReason, RegionReason
from .cell import Cell, compile_expression, compile_statement
from .partition import Way, way_of, whole_step, worth_compiling
from .regions import ENTRY, Cut, Region, assigned_before_read, names_bound, names_in_inner_scopes, names_read
from .tracebacks import REGION_NAME, TORCH_NAME

_UNBOUND = object()
"""Stands in the namespace for a name that the region is about to bind: Dynamo refuses to store to a global that is not there."""
_own_codes: weakref.WeakSet[CodeType] = weakref.WeakSet()
_SEES_ALL = frozenset(("globals", "eval", "exec", "get_ipython"))

Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]
_SEPARATED = {
    "print": "print() runs between two compiled parts of the cell",
    "item": "a value is read into Python between two compiled parts of the cell",
    "call": "a call outside PyTorch runs between two compiled parts of the cell",
}


class CompiledCell:
    """The regions of one cell. Running the cell again, or its loops, uses the programs made before."""

    def __init__(self, shell: Any, cell: Cell, parts: Cut, compiler: Compiler, joins_steps: bool = False) -> None:
        self._shell = shell
        self.joins_steps = joins_steps
        """Whether a training step is to be one program: `compiler.whole_step.whole_steps` is entered while the cell runs."""
        self._inner = names_in_inner_scopes(cell.nodes)
        self._made_here = names_bound(cell.nodes)
        self._filename = cell.filename
        self._compiler = compiler
        self._plain = parts.plain
        self._regions: list[_RunningRegion] = []
        for region in parts.regions:
            self._regions.append(_RunningRegion(self, region, self._regions[region.before] if region.before >= 0 else None))

    @contextmanager
    def entered(self, told: CompileListener | None) -> Iterator[None]:
        """Makes the cell's region calls work inside the block; at its end `told` hears which lines ran together, and what separated them."""
        outer = builtins.__dict__.get(ENTRY)
        builtins.__dict__[ENTRY] = self._enter
        for region in self._regions:
            region.forget_runs()
        try:
            yield
        finally:
            if outer is None:
                builtins.__dict__.pop(ENTRY, None)
            else:
                builtins.__dict__[ENTRY] = outer
            if told is not None:
                self._tell(told)

    def _tell(self, told: CompileListener) -> None:
        for first, last in self._plain:
            told.region(RegionTold(self._filename, first, last, RegionReason.STATEMENT.id))
        for region in self._regions:
            for part in region.parts:
                told.region(RegionTold(self._filename, *part.lines, part.reason))
                if part.separator is not None and part.runs:
                    reason, line = part.separator
                    frame = Frame(self._filename, line, REGION_NAME)
                    told.graph_break(BreakTold(_SEPARATED[reason], frame, reason, stack=(frame,), count=part.runs))
                if part.failure:
                    frame = Frame(self._filename, part.lines[0], REGION_NAME)
                    told.graph_break(BreakTold(part.failure, frame, BreakReason.BACKEND.id, stack=(frame,), uncompiled=True))

    def _enter(self, number: int) -> Any:
        __tracebackhide__ = True
        return self._regions[number].run()

    def plain(self, statement: ast.stmt) -> CodeType:
        """A statement as module-level code."""
        code: CodeType = compile_statement(self._shell, statement, False, self._filename)
        return code

    def expression(self, statement: ast.Expr) -> CodeType:
        """An expression as module-level code that gives its value."""
        code: CodeType = compile_expression(self._shell, statement, self._filename)
        return code

    def way_of(self, statement: ast.stmt) -> Way:
        """How a statement is run, judged by the namespace as it is now."""
        return way_of(statement, self.namespace, self._made_here)

    def step_in(self, statements: Sequence[ast.stmt]) -> int:
        """How many of the statements are a training step that may be one program; 0: none."""
        return whole_step(statements, self.namespace, self._made_here) if self.joins_steps else 0

    @property
    def namespace(self) -> dict[str, Any]:
        """The user's namespace."""
        namespace: dict[str, Any] = self._shell.user_ns
        return namespace

    def compiled(self, statements: Sequence[ast.stmt]) -> _CompiledPart:
        """Statements as one compiled function."""
        shared = self._inner | _names_of_other_code(self.namespace)
        return _CompiledPart(self, statements, shared, self._filename, self._compiler, self._shell.compile.flags)


class _RunningRegion:
    """A region with the parts its statements were grouped in when they first ran."""

    def __init__(self, cell: CompiledCell, region: Region, before: _RunningRegion | None) -> None:
        self._cell = cell
        self._statements = region.statements
        self.parts: list[_CompiledPart | _PlainPart] = []
        self._covered = 0
        self._joins = True
        self._before = before
        self._separator: tuple[str, int] | None = ("print", region.printed) if before is not None else None

    def run(self) -> Any:
        """Runs all statements; returns the value of the last one if it is an expression."""
        __tracebackhide__ = True
        self._take_apart()
        value, done = None, 0
        while done < len(self.parts) or self._covered < len(self._statements):
            if done == len(self.parts):
                self.parts.append(self._next_part())
            self.parts[done].runs += 1
            value = self.parts[done].run(self._cell.namespace)
            done += 1
        return value

    def _take_apart(self) -> None:
        """Groups a training step anew that has shown not to be one program, with backward() outside as PyTorch has it."""
        for number, part in enumerate(self.parts):
            if part.fell_apart:
                self._joins = False
                del self.parts[number:]
                self._covered = sum(part.count for part in self.parts)
                return

    def _next_part(self) -> _CompiledPart | _PlainPart:
        """Groups the next statements: one that should run plainly, or as many as can be compiled together."""
        rest = self._statements[self._covered :]
        first = self._cell.way_of(rest[0])
        if first.plain:
            self._covered += 1
            if first.separates and self._separator is None:
                self._separator = first.value, rest[0].lineno
            return _PlainPart(self._cell, rest[:1], first.name.lower())
        step = self._cell.step_in(rest) if self._joins else 0
        group = rest[:step] if step else self._compiled_together(rest, first)
        self._covered += len(group)
        if not worth_compiling(group, self._cell.namespace):
            return _PlainPart(self._cell, group, RegionReason.NO_TENSORS.id)
        part = self._cell.compiled(group)
        part.is_step = bool(step)
        if self._separator is not None and (self.compiles or (self._before is not None and self._before.compiles)):
            part.separator = self._separator
        self._separator = None
        return part

    def _compiled_together(self, statements: Sequence[ast.stmt], first: Way) -> Sequence[ast.stmt]:
        """The statements from the first on that go into one function."""
        way = first
        for count, statement in enumerate(statements):
            if count:
                way = self._cell.way_of(statement)
                if way.plain or way is Way.ALONE:
                    return statements[:count]
            if way is not Way.COMPILED:
                return statements[: count + 1]
        return statements

    def forget_runs(self) -> None:
        """A new run of the cell begins."""
        for part in self.parts:
            part.runs, part.failure = 0, ""

    @property
    def compiles(self) -> bool:
        """Whether a part of it is compiled."""
        return any(isinstance(part, _CompiledPart) for part in self.parts)


class _Part:
    """Statements that run together."""

    def __init__(self, statements: Sequence[ast.stmt], reason: str) -> None:
        self.lines = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
        self.count = len(statements)
        self.is_step = self.fell_apart = False
        """Whether backward() and optimizer.step() are in it, and whether that has not become one program."""
        self.reason = reason
        """Id of `RegionReason`; empty: compiled."""
        self.runs = 0
        """In this run of the cell."""
        self.failure = ""
        """Why a compiled part ran as plain Python in this run."""
        self.separator: tuple[str, int] | None = None
        """What lies between it and the compiled part before: id of `BreakReason`, line."""


class _PlainPart(_Part):
    """Statements that run as module-level code."""

    def __init__(self, cell: CompiledCell, statements: Sequence[ast.stmt], reason: str) -> None:
        super().__init__(statements, reason)
        *before, last = statements
        self._codes = [cell.plain(s) for s in before]
        self._value: CodeType | None = None
        if isinstance(last, ast.Expr):
            self._value = cell.expression(last)
        else:
            self._codes.append(cell.plain(last))

    def run(self, namespace: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        for code in self._codes:
            exec(code, namespace)
        return eval(self._value, namespace) if self._value is not None else None


class _CompiledPart(_Part):
    """Statements as a compiled function of the Python numbers they read."""

    def __init__(self, cell: CompiledCell, statements: Sequence[ast.stmt], shared: set[str], filename: str, compiler: Compiler, flags: int) -> None:
        super().__init__(statements, "")
        self._cell, self._statements, namespace = cell, statements, cell.namespace
        assigned = _assigned(statements, filename)
        numbers = {name for name, value in namespace.items() if type(value) in (int, float)} & (names_read(statements) | assigned)
        numbers -= shared
        self._arguments = sorted(numbers)
        self._results = sorted(numbers & assigned)
        self._fresh = sorted((assigned - numbers) & assigned_before_read(statements))
        function = _function(statements, self._arguments, self._results, sorted(assigned - numbers))
        namespace[TORCH_NAME] = torch
        made: dict[str, Any] = {}
        exec(compile(function, filename, "exec", flags=flags, dont_inherit=True), namespace, made)
        self._plain: FunctionType = made[REGION_NAME]
        self._plain.__code__ = _with_outer_names(self._plain.__code__)
        _own_codes.add(self._plain.__code__)
        self._call = compiler(self._plain)
        self._names = assigned

    def run(self, namespace: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        begun, changed = progress.begun, progress.changed
        try:
            value = self._run_compiled(namespace)
            self.fell_apart = self.is_step and progress.begun != begun + 1
            return value
        except Exception as error:
            if (progress.begun, progress.changed) != (begun + 1, changed):
                raise
            failure = f"{type(error).__name__}: {error}".partition("\n")[0]
        # Its first program failed before it changed anything. As plain Python the statements before the faulty one bind their names.
        value = _PlainPart(self._cell, self._statements, "").run(namespace)
        self.failure, self.fell_apart = failure, self.is_step
        return value

    def _run_compiled(self, namespace: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        fresh = [name for name in self._fresh if name not in namespace]
        namespace.update(dict.fromkeys(fresh, _UNBOUND))
        try:
            value, numbers = self._call(*(namespace[name] for name in self._arguments))
        except BaseException as error:
            namespace.update(self._numbers_at_failure(error))
            raise
        finally:
            for name in fresh:
                if namespace.get(name) is _UNBOUND:
                    del namespace[name]
        namespace.update(zip(self._results, numbers, strict=True))
        return value

    def _numbers_at_failure(self, error: BaseException) -> dict[str, Any]:
        """The numbers bound before the exception, from the frames it went through."""
        found: dict[str, Any] = {}
        at = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename == self._plain.__code__.co_filename and REGION_NAME in at.tb_frame.f_code.co_name:
                values = at.tb_frame.f_locals
                found.update({name: values[name] for name in self._results if type(values.get(name)) in (int, float)})
            at = at.tb_next
        return found


def _function(statements: Sequence[ast.stmt], arguments: Sequence[str], results: Sequence[str], global_names: Sequence[str]) -> ast.Module:
    """`def cell(arguments): global …; statements; return value of a last expression, (results)`, with the statements' own lines."""
    body, last = list(statements), statements[-1]
    value: ast.expr = ast.Constant(None)
    if isinstance(last, ast.Expr):
        value = last.value
        body.pop()
    numbers = ast.Tuple([ast.Name(name, ast.Load()) for name in results], ast.Load())
    leave = ast.copy_location(ast.Return(ast.Tuple([value, numbers], ast.Load())), statements[-1])
    declare: list[ast.stmt] = [ast.copy_location(ast.Global(list(global_names)), statements[0])] if global_names else []
    declare.append(ast.copy_location(ast.Expr(ast.Name(TORCH_NAME, ast.Load())), statements[0]))
    parameters = ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in arguments], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef(name=REGION_NAME, args=parameters, body=[*declare, *body, leave], decorator_list=[])
    return ast.fix_missing_locations(ast.Module([ast.copy_location(function, statements[0])], []))


def _with_outer_names(code: CodeType) -> CodeType:
    """The same code, where functions inside it are named as at module level: `<lambda>`, not `cell.<locals>.<lambda>`."""
    inner = tuple(_with_outer_names(constant) if isinstance(constant, CodeType) else constant for constant in code.co_consts)
    return code.replace(co_consts=inner, co_qualname=code.co_qualname.removeprefix(f"{REGION_NAME}.<locals>."))


def _assigned(statements: Sequence[ast.stmt], filename: str) -> set[str]:
    """The names the statements bind: what Python makes local variables of in a function without declarations."""
    table = symtable.symtable(ast.unparse(_function(statements, (), (), ())), filename, "exec").get_children()[0]
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}


def _names_of_other_code(namespace: Mapping[str, Any]) -> set[str]:
    """The global names used by any function that lives in this namespace: these must be seen as they change, also the numbers."""
    names: set[str] = set()
    for owner in gc.get_referrers(namespace):
        if isinstance(owner, FunctionType) and owner.__globals__ is namespace and not _is_own(owner.__code__):
            names |= _globals_of(owner.__code__)
    return {*namespace} if names & _SEES_ALL else names


def _is_own(code: CodeType) -> bool:
    """Whether code is a compiled part, made from one by Dynamo, or the cell itself, whose names are known."""
    return code in _own_codes or code.co_name == "<module>" or code.co_name.startswith("torch_dynamo_resume_in_")


def _globals_of(code: CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname.endswith(("_GLOBAL", "_NAME"))}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _globals_of(constant)
    return names
