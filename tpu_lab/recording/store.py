"""The last runs of this process, by id and by name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from ..errors import RunNotFoundError, one_of
from ..record.run import Run

KEEP = 50


class Runs(list[Run]):
    """Runs, oldest first: `runs[-1]` is the last one, `runs["r3"]` the one with that id or name."""

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            return find(self, which)
        return super().__getitem__(which)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) if self else "no run has been recorded"


def find(kept: list[Run], name: str = "") -> Run:
    """The run with this id, else the latest with this name; without a name the latest of all.

    Raises RunNotFoundError that lists what there is.
    """
    for run in reversed(kept):
        if not name or run.id == name:
            return run
    for run in reversed(kept):
        if run.name == name:
            return run
    if not kept:
        raise RunNotFoundError("no run has been recorded in this process", remedy="run a cell that starts with %%tpu eager")
    known = dict.fromkeys(label for run in reversed(kept) for label in (run.id, run.name) if label)
    raise RunNotFoundError(f"there is no run {name!r}", accepted=one_of(known))


class RunStore:
    """Keeps the last `keep` runs. Threads may share it."""

    def __init__(self, keep: int = KEEP) -> None:
        if keep < 1:
            raise ValueError(f"keep: got {keep}, accepted is a number from 1")
        self._keep = keep
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, run: Run) -> Run:
        """Takes a run in; the oldest goes when there are too many. A run with an id that is there replaces it."""
        with self._lock:
            self._runs.pop(run.id, None)
            self._runs[run.id] = run
            while len(self._runs) > self._keep:
                self._runs.popitem(last=False)
        return run

    def runs(self) -> Runs:
        """All kept runs, oldest first."""
        with self._lock:
            return Runs(self._runs.values())

    def get(self, name: str = "") -> Run:
        """`find` among the kept runs."""
        return find(self.runs(), name)

    def clear(self) -> None:
        """Forgets all runs."""
        with self._lock:
            self._runs.clear()


store = RunStore()
"""The process's runs."""


def runs() -> Runs:
    """The last 50 runs of this process, oldest first: `runs()[-1]` is the last, `runs()["r3"]` one by id or name."""
    return store.runs()


def get(name: str = "") -> Run:
    """A run by id or name, the latest of all without one. Raises RunNotFoundError."""
    return store.get(name)
