"""Eager modes: what happens between the call of an operator and its execution. Names and meaning are TorchTPU's."""

from __future__ import annotations

import enum
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ._torch_internals import graph_task


class EagerMode(enum.Enum):
    """How operators are executed: each at once, each waited for, or clusters of them as one program."""

    DEFER_NEVER = "DEFER_NEVER"
    DEFER_NEVER_AND_LAUNCH_BLOCKING = "DEFER_NEVER_AND_LAUNCH_BLOCKING"
    DEFER_AND_FUSE = "DEFER_AND_FUSE"


def _switched_on(*names: str) -> bool:
    return any(os.environ.get(n, "") not in ("", "0", "false", "False") for n in names)


def from_environment() -> EagerMode:
    """The mode the environment asks for (`TORCH_TPU_LAUNCH_BLOCKING`, `TORCH_TPU_DEFER_AND_FUSE` and their older names without `TORCH_`)."""
    if _switched_on("TORCH_TPU_LAUNCH_BLOCKING", "TPU_LAUNCH_BLOCKING"):
        return EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    if _switched_on("TORCH_TPU_DEFER_AND_FUSE", "TPU_DEFER_AND_FUSE"):
        return EagerMode.DEFER_AND_FUSE
    return EagerMode.DEFER_NEVER


def _checked(mode: object) -> EagerMode:
    if not isinstance(mode, EagerMode):
        names = ", ".join(f"EagerMode.{m.name}" for m in EagerMode)
        raise TypeError(f"eager mode: got {mode!r}, accepted are {names}")
    return mode


blocking = False
"""True while operators wait for their results (the hot path reads this)."""
fusing = False
"""True while some thread may defer; `defers_here` says whether this one does (the hot path reads the two)."""
everywhere = False
"""True while the process's mode is `DEFER_AND_FUSE` and no thread has a block of its own: then every thread defers (if `fusing`)."""
fused = False
"""True once the mode `DEFER_AND_FUSE` was on: something may be deferred."""
resting = 0
"""So many reads of the host until operators are deferred again (see `rest`)."""
_process = EagerMode.DEFER_NEVER
_local = threading.local()
_deferring_blocks = 0
_blocks = 0
_latest = EagerMode.DEFER_NEVER
"""The mode of the thread that changed its last: that of autograd's threads, which have no blocks of their own."""


def _apply() -> None:
    global blocking, fusing, fused, resting, everywhere, _latest
    _latest = current()
    blocking = _latest is EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    if fused:
        from . import deferral

        deferral.cut("debug_mode" if blocking else "unknown")
    fusing, resting = _somebody_defers(), 0
    everywhere = _process is EagerMode.DEFER_AND_FUSE and not _blocks
    fused = fused or fusing


def _somebody_defers() -> bool:
    return _process is EagerMode.DEFER_AND_FUSE or _deferring_blocks > 0


def rest(reads: int) -> None:
    """Runs operators as in strict mode for the next `reads` reads of the host: what comes is not worth deferring."""
    global fusing, resting
    fusing, resting = False, reads


def a_read() -> None:
    """Counts a read of the host while resting."""
    global fusing, resting
    resting = max(resting - 1, 0)
    if not resting:
        fusing = _somebody_defers()


def current() -> EagerMode:
    """The mode in force on this thread: the innermost `set_eager_mode` block, else the process's."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else _process


def defers_here() -> bool:
    """True if this thread defers; autograd's threads do as the thread that called them."""
    stack = getattr(_local, "stack", None)
    if stack:
        return stack[-1] is EagerMode.DEFER_AND_FUSE
    if _process is EagerMode.DEFER_AND_FUSE and not _deferring_blocks:
        return True
    return (_process if graph_task() == -1 else _latest) is EagerMode.DEFER_AND_FUSE


def set_process_mode(mode: EagerMode) -> None:
    """Sets the mode of the process. Raises TypeError for anything but an EagerMode."""
    global _process
    _process = _checked(mode)
    _apply()


@contextmanager
def set_eager_mode(mode: EagerMode) -> Iterator[None]:
    """The mode inside a `with` block, on this thread; the innermost block wins."""
    global _deferring_blocks, _blocks
    stack = _local.__dict__.setdefault("stack", [])
    deferring = _checked(mode) is EagerMode.DEFER_AND_FUSE
    stack.append(mode)
    _deferring_blocks += deferring
    _blocks += 1
    _apply()
    try:
        yield
    finally:
        stack.pop()
        _deferring_blocks -= deferring
        _blocks -= 1
        _apply()
