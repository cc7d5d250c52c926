"""Checks of values that have not been read yet: a bad index, divisor or probability becomes an error at the next read at the latest.

A program whose operators refuse some values also returns one number, 0 or what is wrong (`lowering.bounds.Complaint`).
Reading it at once would stall the device after each operator, so it waits here until the host reads something anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from ..lowering.bounds import Complaint
from . import forks

_KEEP = 64
BAD_INDEX = "index out of range"
"""How the words for a bad index begin."""
_CELL = re.compile(r".*(?:<ipython-input-|<tpu-cell|[/\\]ipykernel_\d+[/\\]).*:(\d+)$")
_pending: list[tuple[Any, str, str, Callable[[str, str], Exception] | None]] = []
_ERRORS: dict[Complaint, tuple[type[Exception], str]] = {
    Complaint.INDEX: (IndexError, BAD_INDEX + "{where}. Every index must lie within the size of the dimension it selects from."),
    Complaint.PLACE: (RuntimeError, BAD_INDEX + "{where}. Every index must lie within the size of the dimension it selects from."),
    Complaint.PROBABILITY: (
        RuntimeError,
        "a probability, rate, weight or standard deviation outside its range{where}. Probabilities and targets lie between 0 and 1, "
        "weights are finite, not negative, and not all zero.",
    ),
    Complaint.DIVISOR: (RuntimeError, "ZeroDivisionError: whole numbers divided by zero{where}. Mask the zeros, or divide floating numbers."),
    Complaint.SINGULAR: (
        torch.linalg.LinAlgError,  # type: ignore[attr-defined]  # torch documents it under this name
        "the matrix is singular or not positive definite{where}. Add a small multiple of the identity, or use the `_ex` form, which tells by `info`.",
    ),
    Complaint.ASSERTION: (RuntimeError, "an assertion on a tensor failed{where}. `torch._assert_async` wants a value that is not zero."),
}


def error_of(code: int, op: str, line: str) -> Exception:
    """The exception for what a check found in operator `op` called at `line`."""
    kind, text = _ERRORS[Complaint(code)]
    return kind(f"{op}: {text.format(where=f' (called at {shown_line(line)})' if line else '')}")


def shown_line(line: str) -> str:
    """A `file:line` as a person reads it: a notebook's cell has no name worth showing."""
    return _CELL.sub(r"cell line \1", line)


def false_assertion(message: str, line: str) -> Exception:
    """The error for an assertion about values that does not hold, as `torch._assert_async` raises it."""
    return RuntimeError(message)


def defer(flag: Any, op: str, line: str, error: Callable[[str, str], Exception] | None = None) -> None:
    """Remembers a check (a 0-d array, 0 if all is well) of operator `op` called at `line`; looks at the oldest ones once many wait.

    `error` makes the exception from `op` and `line` instead of `error_of`; for `false_assertion`, `op` is the assertion's message.
    """
    _pending.append((flag, op, line, error))
    if len(_pending) > _KEEP:
        settle()


def settle() -> None:
    """Raises the error of the first pending check that failed (`error_of`, or that of an assertion); forgets all of them."""
    if not _pending:
        return
    forks.raise_in_child()
    waiting = _pending[:]
    del _pending[: len(waiting)]
    for flag, op, line, error in waiting:
        code = int(flag)
        if code:
            raise error_of(code, op, line) if error is None else error(op, line)


def pending() -> Any:
    """How many checks wait."""
    return len(_pending)
