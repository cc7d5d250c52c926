"""What the rest of the device asks of the deferred executor. Nothing of it is loaded before somebody turns that mode on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import modes

if TYPE_CHECKING:
    from .memory import Buffer


def materialize(buffer: Buffer) -> None:
    """Has a buffer without an array get the one it was promised, if it was."""
    if buffer.label is not None:
        from .fuse import finish

        finish.materialize(buffer)


def cut(reason: str) -> None:
    """Runs whatever is deferred. `reason`: see `record.reasons.FlushReason`."""
    if modes.fused:
        from .fuse import finish

        finish.cut(reason)


def before_read(reason: str, buffers: Iterable[Buffer]) -> None:
    """The same, if one of `buffers`, which the host is about to read, has to do with it."""
    if modes.resting:
        modes.a_read()
    if modes.fused:
        from .fuse import finish

        finish.read(reason, buffers)


def before_host_kernel(buffers: Iterable[Buffer], shapes: int) -> None:
    """The same for buffers that a kernel of the host reads. `shapes`: how many the operator was met with so far."""
    if modes.fused:
        from .fuse import finish

        finish.before_host_kernel(buffers, shapes)


def _not_loaded(*_: Any) -> Any:
    raise RuntimeError("the deferred executor is not loaded")


run: Callable[..., Any] = _not_loaded
"""`fuse.record.run`, once a thread defers."""
run_single: Callable[..., Any] = _not_loaded
"""`fuse.record.run_single`, once a thread defers."""
execute: Callable[..., Any] = _not_loaded
"""`fuse.record.execute`, once a thread defers."""


loaded = False
"""Whether they are there."""


def load() -> None:
    """Loads the deferred executor, at a thread's first call that defers."""
    global run, run_single, execute, loaded
    if not loaded:
        from .fuse import record

        execute, run, run_single = record.execute, record.run, record.run_single
        loaded = True
