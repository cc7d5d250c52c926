"""Tracebacks of a magic cell: the frames the plain cell would show, without IPython's, ours and the compiler's in between.

IPython asks an exception for `_render_traceback_` before it formats it. The function set here drops frames and hands the rest
to IPython's own formatter, so every `%xmode`, colours and chained exceptions stay as they are.
"""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

_MACHINERY = ("IPython", "tpu_lab", "torch._dynamo", "torch._functorch", "torch._inductor", "torch._compile", "torch._ops", "torch.fx")
"""Packages whose frames say nothing about the user's program."""


def mark(error: BaseException, shell: Any) -> None:
    """Makes IPython show this exception without machinery. Keeps no reference to it. Exceptions that refuse attributes are left alone."""
    if hasattr(error, "_render_traceback_"):
        return
    with suppress(AttributeError, TypeError):
        error._render_traceback_ = partial(_render, shell)  # type: ignore[attr-defined]


def _render(shell: Any) -> list[str]:
    """What IPython shows of the exception it has just stored in `sys.last_value`."""
    error = sys.last_value
    assert error is not None
    lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, without_machinery(error.__traceback__), tb_offset=0)
    return lines


def without_machinery(traceback: TracebackType | None) -> TracebackType | None:
    """A copy of a traceback without frames of the machinery; the whole of it if nothing would be left."""
    kept: list[TracebackType] = []
    at = traceback
    while at is not None:
        following = at.tb_next
        if not (_is_machinery(at.tb_frame) or _only_calls_magic(following) or _only_enters_mode(at)):
            kept.append(at)
        at = following
    shorter: TracebackType | None = None
    for part in reversed(_without_repeated(kept)):
        shown = _as_module(part) if _is_region(part.tb_frame.f_code) else part
        shorter = TracebackType(shorter, shown.tb_frame, shown.tb_lasti, part.tb_lineno)
    return shorter or traceback


def _is_machinery(frame: FrameType) -> bool:
    name = _module(frame)
    return any(name == package or name.startswith(package + ".") for package in _MACHINERY)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _only_calls_magic(following: TracebackType | None) -> bool:
    """Whether the frame before this one is the line `get_ipython().run_cell_magic(...)` that IPython made of the cell."""
    if following is None:
        return False
    code = following.tb_frame.f_code
    name = following.tb_frame.f_globals.get("__name__")
    by_ipython = name == "IPython.core.interactiveshell" and code.co_name == "run_cell_magic"
    return by_ipython or (name == f"{__package__}.magics" and code.co_name == "run_awaited")


def _only_enters_mode(part: TracebackType) -> bool:
    """Whether a frame of PyTorch only hands its call to our default device, which makes it again: of `handle_torch_function`, or the one before."""
    at: TracebackType | None = part
    if _module(part.tb_frame) != "torch.overrides":
        at = part.tb_next if _module(part.tb_frame).partition(".")[0] == "torch" else None
    if at is None or _module(at.tb_frame) != "torch.overrides" or at.tb_next is None:
        return False
    return _module(at.tb_next.tb_frame) == f"{__package__}.default_device"


REGION_NAME = "cell"
"""Function name of a compiled part of a cell (`regions`)."""
TORCH_NAME = "__tpu_lab_torch__"
"""A name for torch in the namespace that every compiled part mentions: Dynamo passes over functions, and what it makes of them after a
break, that neither mention torch nor take tensors."""


def _is_region(code: CodeType) -> bool:
    """Whether code is a compiled part of a cell, or made of one by Dynamo; a user's function of the same name is not."""
    return (code.co_name == REGION_NAME and TORCH_NAME in code.co_names) or code.co_name.startswith(f"torch_dynamo_resume_in_{REGION_NAME}_")


def _as_module(part: TracebackType) -> TracebackType:
    """The entry of a traceback as module-level code of the same file and line would have it, which is what the user wrote.

    IPython looks up the text of a function's lines from its `def`, which a compiled part has not.
    """
    raising = ast.parse("raise error")
    ast.increment_lineno(raising, part.tb_lineno - 1)
    code = compile(raising, part.tb_frame.f_code.co_filename, "exec")
    error = Exception()
    try:
        exec(code, part.tb_frame.f_globals, {"error": error})
    except Exception:
        own = error.__traceback__
        assert own is not None and own.tb_next is not None
        return own.tb_next
    raise AssertionError("unreachable")


def _without_repeated(parts: list[TracebackType]) -> list[TracebackType]:
    """Drops a frame that only entered a part of the same cell (compiled, or run as plain code): that part's own frame has the line."""

    def enters_region(i: int) -> bool:
        code, following = parts[i].tb_frame.f_code, parts[i + 1].tb_frame.f_code
        ours = following.co_name == "<module>" or _is_region(following)
        entering = code.co_name == "<module>" or _is_region(code)
        return ours and entering and following.co_filename == code.co_filename

    return [part for i, part in enumerate(parts) if i + 1 == len(parts) or not enters_region(i)]
