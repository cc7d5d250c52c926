"""Programs on disk, by what they were compiled from: `TPU_LAB_CACHE_DIR`, else `$XDG_CACHE_HOME/tpu_lab` or `~/.cache/tpu_lab`."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from ..record import program_codec
from ..record.program import PROGRAM_SCHEMA_VERSION, Program
from .target_compile import Job

LIMIT_BYTES = 512 << 20
"""Beyond this the files that were used longest ago go."""
_READER = "2"
"""Changed with what is read from a dump, so that programs read by an older version are made again."""


def folder() -> Path:
    """Where programs are kept."""
    given = os.environ.get("TPU_LAB_CACHE_DIR")
    if given:
        return Path(given) / "programs"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tpu_lab" / "programs"


def key(job: Job, compiler: str) -> str:
    """The name under which a job's program is kept: a hash of everything it depends on."""
    parts = [_READER, PROGRAM_SCHEMA_VERSION, compiler, repr(job.target), job.mode, job.effort, repr(job.options)]
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(job.bytecode)
    return digest.hexdigest()


def load(key: str) -> Program | None:
    """The program kept under a key; None if there is none. Raises RecordError for a damaged file."""
    path = folder() / f"{key}.json.gz"
    try:
        packed = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    return program_codec.unpack(packed, path.name)


def save(key: str, program: Program) -> bool:
    """Keeps a program. False if the folder cannot be written: the program is made again next time."""
    place = folder()
    partial = place / f".{secrets.token_hex(6)}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(program_codec.pack(program))
        os.replace(partial, place / f"{key}.json.gz")
    except OSError:
        with suppress(OSError):
            partial.unlink()
        return False
    _shrink(place)
    return True


def _shrink(place: Path) -> None:
    found = []
    for file in place.glob("*.json.gz"):
        try:
            status = file.stat()
        except OSError:
            continue  # another process removed it
        found.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= LIMIT_BYTES:
            return
        file.unlink(missing_ok=True)
        total -= size
