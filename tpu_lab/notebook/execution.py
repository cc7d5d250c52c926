"""Runs the statements of a cell in the user's namespace, as IPython itself would: one by one, the last value displayed."""

from __future__ import annotations

import ast
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from .cell import awaits, compile_expression, compile_statement

Result = TypeVar("Result")


class Statements:
    """The statements of a cell with the code objects made from them; running them again compiles nothing."""

    def __init__(self, shell: Any, parts: Sequence[tuple[ast.stmt, bool]], filename: str) -> None:
        self._shell = shell
        self._parts = list(parts)
        self._filename = filename
        self._codes: list[Any] = []

    async def run(self) -> Any:
        """Runs every statement; whatever one raises comes out, the rest is not run.

        Returns the value of a last statement that is to be shown, for the caller to display: what its text costs on the device
        is no cost of the cell. None if there is nothing to show. Values shown before the last statement are displayed at once.
        """
        __tracebackhide__ = "__ipython_bottom__"
        globals_, locals_ = self._shell.user_global_ns, self._shell.user_ns
        value = None
        for i in range(len(self._parts)):
            if i == len(self._codes):
                # compiled only now: a statement before it may have been a `from __future__ import`
                self._codes.append(self._compile(i))
            try:
                value = eval(self._codes[i], globals_, locals_)
                if awaits(self._codes[i]):
                    value = await value
            except StopIteration as error:
                raise _Stopped(error) from None
        return value

    def _compile(self, i: int) -> Any:
        node, shown = self._parts[i]
        last = i + 1 == len(self._parts)
        if shown and last and isinstance(node, ast.Expr):
            return compile_expression(self._shell, node, self._filename)
        return compile_statement(self._shell, node, shown, self._filename)


class _Stopped(BaseException):
    """Carries a StopIteration of the cell out of coroutines, which may not raise one."""


def drive(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine that waits for nothing. Raises RuntimeError if it does wait."""
    __tracebackhide__ = True
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    except _Stopped as carrier:
        error = carrier.args[0]
        raise error from None
    coroutine.close()
    raise RuntimeError("the cell waits for something, but the magic was called without `await`; write `await get_ipython().run_cell_magic(...)`")
