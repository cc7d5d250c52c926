"""How far a long compile is, in one line: how long it has run, and how long it will take if an earlier one of like size tells."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 2.0
"""How often the line is told anew. A compile that ends sooner is never told of."""


def line(label: str, elapsed: float, expected: float | None) -> str:
    """The line for a compile that has run `elapsed` seconds and is expected to take `expected` (None: nothing tells)."""
    start = f"{label}: compiling for {_seconds(elapsed)}"
    if expected is None:
        return f"{start}; no earlier compile of like size tells how long it takes"
    if elapsed > expected:
        return f"{start}; an earlier one of like size took {_seconds(expected)}"
    return f"{start}, about {_seconds(expected - elapsed)} left (an earlier one of like size tells)"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


@contextmanager
def told(label: str, expected: float | None, say: Callable[[str], None]) -> Iterator[None]:
    """Calls `say` with the line every `EVERY_S` while the block runs, from a thread of its own; at the end with an empty line if it was called."""
    done = threading.Event()
    start = time.monotonic()

    def tick() -> None:
        said = False
        while not done.wait(EVERY_S):
            say(line(label, time.monotonic() - start, expected))
            said = True
        if said:
            say("")

    thread = threading.Thread(target=tick, name="tpu_lab progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
