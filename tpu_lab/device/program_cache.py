"""All compiled programs of the device, the least recently used dropped once they hold too many bytes."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

from ..xla.executable import give_memory_back

next_id = count(1).__next__
"""A number unique to each program of this process."""
_clock = count(1)
tick = _clock.__next__
"""The clock that `Entry.last` is set from: one tick for each run of a program."""
compilations = 0


class _Held:
    __slots__ = ("entry", "keys", "nbytes")

    def __init__(self, entry: Any, nbytes: int) -> None:
        self.entry = entry
        self.nbytes = nbytes
        self.keys: list[tuple[dict[Any, Any], Any]] = []


limit_bytes = int(float(os.environ.get("TPU_LAB_PROGRAM_CACHE_MB", "1024")) * 2**20)
"""Programs together may hold this many bytes (`TPU_LAB_PROGRAM_CACHE_MB`, in MB of 2**20 bytes; 1024)."""
_held: dict[int, _Held] = {}
held_bytes = 0
evicted = 0


def remember(table: dict[Any, Any], key: Any, entry: Any, nbytes: int) -> None:
    """Puts a program into a table and under the cache's budget."""
    global compilations, held_bytes
    table[key] = entry
    compilations += 1
    held = _Held(entry, nbytes)
    held.keys.append((table, key))
    entry.last = tick()
    _held[id(entry)] = held
    held_bytes += nbytes
    if held_bytes > limit_bytes:
        _evict()


def also(table: dict[Any, Any], key: Any, entry: Any) -> None:
    """The same program under another key (a quicker one); leaves with it."""
    held = _held.get(id(entry))
    if held is not None:
        table[key] = entry
        held.keys.append((table, key))


def _evict() -> None:
    """Drops the quarter that was not used for the longest time."""
    oldest = sorted(_held.values(), key=lambda h: h.entry.last)
    goal = int(limit_bytes * 0.75)
    for held in oldest[:-1]:
        if held_bytes <= goal:
            break
        forget(held.entry)
    give_memory_back()


def forget(entry: Any) -> None:
    """Drops one program, and every key that leads to it."""
    global held_bytes, evicted
    held = _held.pop(id(entry), None)
    if held is None:
        return
    for table, key in held.keys:
        table.pop(key, None)
    held_bytes -= held.nbytes
    evicted += 1


def clear() -> None:
    """Drops every program."""
    global held_bytes
    for held in list(_held.values()):
        for table, key in held.keys:
            table.pop(key, None)
    _held.clear()
    held_bytes = 0
    give_memory_back()


def counts() -> tuple[int, int, int]:
    """Programs held, bytes they hold, programs dropped so far."""
    return len(_held), held_bytes, evicted


def runs() -> int:
    """How many times a program was asked for (and run, or compiled and run)."""
    return int(_clock.__reduce__()[1][0]) - 1
