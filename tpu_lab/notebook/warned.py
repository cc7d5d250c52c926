"""Warnings of a magic cell point at the user's line, not at the default device that passes the call on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from . import default_device


@contextmanager
def at_users_lines() -> Iterator[None]:
    """Inside, a warning that would be shown at our `__torch_function__` is shown where it would stand without it."""
    shown = warnings.showwarning

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if filename == default_device.__file__:
            caller = _caller(sys._getframe(1))
            if caller is not None:
                filename, lineno, line = caller.f_code.co_filename, caller.f_lineno, None
        shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = shown


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame whose call came to the default device nearest above this one."""
    while frame is not None and frame.f_code.co_filename != default_device.__file__:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == default_device.__file__:
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__") != "torch.overrides":
        return frame
    while frame is not None and frame.f_globals.get("__name__") == "torch.overrides":
        frame = frame.f_back
    return frame.f_back if frame is not None else None  # the one in between is PyTorch's function before it was passed on
