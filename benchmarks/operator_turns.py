"""Times of single operators, the device and the CPU by turns in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .timing import keep_pages

_TURNS = 5
_BLOCK_SECONDS = 0.01
_BLOCKS = 8
"""Blocks in a turn."""


def measured(names: list[str], quick: bool) -> dict[str, list[float]]:
    """Milliseconds per call of each operator: on the device, on the CPU. The devices take turns, the fastest block counts.

    Each call is waited for, on both: the device would else run several at once, which a program that uses their results does not see.
    """
    import torch

    from tpu_lab.device.modes import EagerMode, set_process_mode

    from .operator_calls import calls

    keep_pages()
    set_process_mode(EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING)
    tables = [calls(device) for device in ("tpu", "cpu")]
    best = {name: [float("inf")] * 2 for name in names}
    for _ in range(1 if quick else _TURNS):
        for place, table in enumerate(tables):
            torch.tpu.synchronize()  # type: ignore[attr-defined]
            for name in names:
                best[name][place] = min(best[name][place], _fastest(table[name], 1 if quick else _BLOCKS) * 1e3)
    return best


def _fastest(call: Callable[[], Any], blocks: int) -> float:
    for _ in range(3):  # the first compiles
        call()
    start = time.perf_counter()
    call()
    count = max(1, min(500, int(_BLOCK_SECONDS / (time.perf_counter() - start))))
    times = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return min(times)
