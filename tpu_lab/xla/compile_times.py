"""How long compiles took, by target, mode, effort and size, so that the next one can say how long it will take. Kept beside the programs."""

from __future__ import annotations

import json
import math

from . import cache_folder, program_store
from .target_compile import Job

NAME = "times.json"
_KEPT = 300
_LIKE = 4.0
"""Sizes differ by at most this factor where one compile tells of another."""

Entry = tuple[str, str, str, int, float]
"""Target, mode, effort, bytes of StableHLO, seconds."""


def note(job: Job, seconds: float) -> None:
    """Keeps how long a job took, the worker's start included. Nothing is kept where the cache is off or cannot be written."""
    if cache_folder.is_off():
        return
    target, mode, effort, size = _like(job)
    kept = [*_entries(), (target, mode, effort, size, round(seconds, 2))][-_KEPT:]
    try:
        cache_folder.write(cache_folder.opened(program_store.NAME) / NAME, json.dumps(kept).encode())
    except OSError:
        return  # the next compile has no estimate


def estimate(job: Job) -> float | None:
    """Seconds a job will take: those of the compile nearest in size with its target, mode and effort, in proportion. None without a like one."""
    *kind, size = _like(job)
    like = [(abs(math.log(size / entry[3])), -place, entry) for place, entry in enumerate(_entries()) if list(entry[:3]) == kind and entry[3]]
    if not like or not size:
        return None
    distance, _, nearest = min(like)
    return nearest[4] * size / nearest[3] if distance <= math.log(_LIKE) else None


def _like(job: Job) -> tuple[str, str, str, int]:
    return job.target.label, job.mode, job.effort, len(job.bytecode)


def _entries() -> list[Entry]:
    if cache_folder.is_off():
        return []
    content = cache_folder.read(program_store.folder() / NAME)
    try:
        return [(str(t), str(m), str(e), int(size), float(seconds)) for t, m, e, size, seconds in json.loads(content or b"[]")]
    except (ValueError, TypeError):
        return []  # damaged: it is written anew by the next compile
