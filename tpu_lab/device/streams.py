"""Waiting for the device. XLA:CPU runs programs in the order their operands allow; there is one stream."""

from __future__ import annotations

import time

import jax

from . import checks, deferral, events, forks


def wait_for_device() -> None:
    """Waits until every array exists; raises IndexError for a pending bad index."""
    forks.raise_in_child()
    deferral.cut("synchronize")
    start = time.perf_counter_ns()
    for array in jax.live_arrays():
        if not array.is_deleted():
            array.block_until_ready()
    if events.observer is not None:
        events.observer.sync("synchronize", 0, start, time.perf_counter_ns())
    checks.settle()
