"""Snapshots of the device: what every storage held, and the random state, to be put back later.

Arrays are immutable, so a snapshot copies nothing: from `snapshot()` on, the first write to a storage notes the array it
held before. `restore` puts the noted arrays back; a snapshot can be restored any number of times until it is released.
"""

from __future__ import annotations

from typing import Any

from . import deferral, seeds
from .memory import Buffer, ledger

journals: list[Journal] = []
"""The snapshots that are to be told of writes. Device code tests it for truth on the hot path."""


class Journal:
    """One snapshot: the storages written since, with what they held; and the generators' states."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Buffer, Any, Any, int]] = {}
        self._seeds = seeds.save()
        self._start = ledger.allocations

    def note(self, buffer: Buffer) -> None:
        """Remembers a storage before its first write; one made since the snapshot has nothing to go back to."""
        if buffer.id <= self._start and id(buffer) not in self._held:
            buffer.shared = buffer.array is not None
            self._held[id(buffer)] = (buffer, buffer.array, buffer.layout, buffer.nbytes)

    def put_back(self) -> None:
        """Gives every noted storage its old contents, which is a write to any other snapshot."""
        others = [journal for journal in journals if journal is not self]
        for buffer, array, layout, nbytes in self._held.values():
            for journal in others:
                journal.note(buffer)
            if buffer.nbytes != nbytes:
                buffer.resize(array, layout, nbytes)
            buffer.array, buffer.layout, buffer.label = array, layout, None
            buffer.shared = array is not None
        seeds.put_back(self._seeds)

    @property
    def changed(self) -> int:
        """How many storages were written since the snapshot."""
        return len(self._held)


def snapshot() -> Journal:
    """Starts a snapshot of all storages and generators of the device."""
    deferral.cut("unknown")
    journal = Journal()
    journals.append(journal)
    return journal


def restore(journal: Journal) -> None:
    """Puts the device back to where it was at the snapshot, which stays valid."""
    deferral.cut("unknown")
    journal.put_back()


def release(journal: Journal) -> None:
    """Ends a snapshot; what it kept may die."""
    deferral.cut("unknown")
    if journal in journals:
        journals.remove(journal)
    journal._held.clear()


def about_to_write(buffer: Buffer) -> None:
    """Tells every snapshot of a coming write."""
    for journal in journals:
        journal.note(buffer)
