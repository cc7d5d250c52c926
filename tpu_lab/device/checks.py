"""Index checks that have not been read yet: a bad index becomes an IndexError at the next read at the latest.

A program that indexes by a tensor also returns one bool, "some index is outside". Reading it at once would stall the
device after each operator, so it waits here until the host reads something anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import forks

_KEEP = 64
_pending: list[tuple[Any, str, str, Callable[[str, str], Exception]]] = []


def bad_index(op: str, line: str) -> Exception:
    """The error for an index outside its dimension."""
    where = f" (called at {line})" if line else ""
    return IndexError(f"{op}: index out of range{where}. Every index must lie within the size of the dimension it selects from.")


def false_assertion(message: str, line: str) -> Exception:
    """The error for an assertion about values that does not hold, as `torch._assert_async` raises it."""
    return RuntimeError(message)


def defer(flag: Any, op: str, line: str, error: Callable[[str, str], Exception] = bad_index) -> None:
    """Remembers a check (a bool array, True: failed) of operator `op` called at `line`; looks at the oldest ones once many wait.

    `error` makes the exception from `op` and `line`; for `false_assertion`, `op` is the assertion's message.
    """
    _pending.append((flag, op, line, error))
    if len(_pending) > _KEEP:
        settle()


def settle() -> None:
    """Raises the error of the first pending check that failed (IndexError, RuntimeError of an assertion); forgets all of them."""
    if not _pending:
        return
    forks.raise_in_child()
    waiting = _pending[:]
    del _pending[: len(waiting)]
    for flag, op, line, error in waiting:
        if np.asarray(flag):
            raise error(op, line)


def pending() -> Any:
    """How many checks wait."""
    return len(_pending)
