"""Ctrl-C around the device: imports are not cut in half, and an interrupt that arrives where Python would drop it is sent again."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Iterator[None]:
    """Holds Ctrl-C back until the block is done: an import cut in half would leave modules broken for the rest of the process."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def deliver_lost_ones() -> None:
    """Sends a Ctrl-C again that came inside a callback whose exceptions Python only prints (jax's at each garbage collection, a `__del__`)."""
    printing = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            # a little later: now it would be raised in this hook, and be dropped again
            threading.Timer(0.02, _thread.interrupt_main).start()
        else:
            printing(unraisable)

    sys.unraisablehook = hook
