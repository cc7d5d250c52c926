"""Threads that write to the same tensor: an in-place program takes its target's array over, and whoever looked that up before comes too late.

The late one's program does not start, so its kernel is simply called again and finds the new array. A host kernel, which
takes nothing over, looks before it writes whether the array it read is still there. No lock is on the way of a program. No
update of programs among themselves, or of host kernels among themselves, gets lost; where one of each writes to a tensor in
the same microseconds, one of the two can, as with PyTorch's own kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_TRIES = 1000
_PAUSE = 0.0005


class Overtaken(RuntimeError):
    """A host kernel computed from an array that another thread replaced meanwhile; its result was not written."""


def lost(error: BaseException) -> bool:
    """True if another thread's in-place operator took over an array that this one wanted to use; nothing has happened then."""
    return isinstance(error, Overtaken) or (isinstance(error, RuntimeError) and "has been deleted" in str(error))


def once_more(kernel: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a kernel that lost a race, again and again until it wins. Raises RuntimeError if that takes longer than half a second."""
    for tried in range(_TRIES):
        time.sleep(_PAUSE)
        try:
            return kernel(*args, **kwargs)
        except RuntimeError as error:
            if not lost(error) or tried == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def patient(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is called again where it lost a race."""

    def calling(*args: Any, **kwargs: Any) -> Any:
        try:
            return kernel(*args, **kwargs)
        except RuntimeError as error:
            if not lost(error):
                raise
        return once_more(kernel, args, kwargs)

    return calling
