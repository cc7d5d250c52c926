"""Runs the statements of a cell in the user's namespace, as IPython itself would: one by one, the last value displayed."""

from __future__ import annotations

import ast
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from .cell import awaits, compile_statement

Result = TypeVar("Result")


class Statements:
    """The statements of a cell with the code objects made from them; running them again compiles nothing."""

    def __init__(self, shell: Any, parts: Sequence[tuple[ast.stmt, bool]], filename: str) -> None:
        self._shell = shell
        self._parts = list(parts)
        self._filename = filename
        self._codes: list[Any] = []

    async def run(self) -> None:
        """Runs every statement; whatever one raises comes out, the rest is not run."""
        __tracebackhide__ = "__ipython_bottom__"
        globals_, locals_ = self._shell.user_global_ns, self._shell.user_ns
        for i, (node, shown) in enumerate(self._parts):
            if i == len(self._codes):
                # compiled only now: a statement before it may have been a `from __future__ import`
                self._codes.append(compile_statement(self._shell, node, shown, self._filename))
            code = self._codes[i]
            try:
                if awaits(code):
                    await eval(code, globals_, locals_)
                else:
                    exec(code, globals_, locals_)
            except StopIteration as error:
                raise _Stopped(error) from None


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
