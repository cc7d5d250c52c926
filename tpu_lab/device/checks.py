"""Index checks that have not been read yet: a bad index becomes an IndexError at the next read at the latest.

A program that indexes by a tensor also returns one bool, "some index is outside". Reading it at once would stall the
device after each operator, so it waits here until the host reads something anyway.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import forks

_KEEP = 64
_pending: list[tuple[Any, str, str]] = []


def defer(flag: Any, op: str, line: str) -> None:
    """Remembers a check (a bool array) of operator `op` called at `line`; looks at the oldest ones once many wait."""
    _pending.append((flag, op, line))
    if len(_pending) > _KEEP:
        settle()


def settle() -> None:
    """Raises IndexError for the first pending check that failed; forgets all of them."""
    if not _pending:
        return
    forks.raise_in_child()
    waiting = _pending[:]
    del _pending[: len(waiting)]
    for flag, op, line in waiting:
        if np.asarray(flag):
            raise bad_index(op, line)


def bad_index(op: str, line: str) -> IndexError:
    """The error for an index outside its dimension."""
    where = f" (called at {line})" if line else ""
    return IndexError(f"{op}: index out of range{where}. Every index must lie within the size of the dimension it selects from.")


def pending() -> Any:
    """How many checks wait."""
    return len(_pending)
