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

        if any(finish.involved(b) for b in buffers):
            finish.cut(reason)


def _not_loaded(*_: Any) -> Any:
    raise RuntimeError("the deferred executor is not loaded")


run: Callable[..., Any] = _not_loaded
"""`fuse.record.run`, once a thread defers."""
execute: Callable[..., Any] = _not_loaded
"""`fuse.record.execute`, once a thread defers."""


def load() -> None:
    """Loads the deferred executor, at a thread's first call that defers."""
    global run, execute
    if run is _not_loaded:
        from .fuse import record

        execute, run = record.execute, record.run
