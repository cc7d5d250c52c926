"""What was read of programs compiled for targets, on disk, by what they were compiled from (`cache_folder` says where)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..record import program_codec
from ..record.program import PROGRAM_SCHEMA_VERSION, Program
from . import cache_folder
from .target_compile import Job

NAME = "programs"
LIMIT_BYTES = 512 << 20
"""Beyond this the files that were used longest ago go."""
_READER = "2"
"""Changed with what is read from a dump, so that programs read by an older version are made again."""


def folder() -> Path:
    """Where programs are kept."""
    return cache_folder.base() / NAME


def key(job: Job, compiler: str) -> str:
    """The name under which a job's program is kept: a hash of everything it depends on."""
    parts = [_READER, PROGRAM_SCHEMA_VERSION, compiler, repr(job.target), job.mode, job.effort, repr(job.options)]
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(job.bytecode)
    return digest.hexdigest()


def load(key: str) -> Program | None:
    """The program kept under a key; None if there is none. Raises RecordError for a damaged file."""
    if cache_folder.is_off():
        return None
    try:
        path = cache_folder.opened(NAME) / f"{key}.json.gz"
    except OSError:
        return None
    packed = cache_folder.read(path)
    return None if packed is None else program_codec.unpack(packed, path.name)


def save(key: str, packed: bytes) -> bool:
    """Keeps a program as `program_codec.pack` made it. False if the cache is off or its folder cannot be used: it is made again next time."""
    if cache_folder.is_off():
        return False
    try:
        place = cache_folder.opened(NAME)
        cache_folder.write(place / f"{key}.json.gz", packed)
    except OSError:
        return False
    cache_folder.shrink(place, LIMIT_BYTES)
    return True
