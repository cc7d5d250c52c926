"""Compiled programs of this machine on disk, so that a new process loads what an earlier one compiled.

An entry is what XLA serialises of an executable: native code. Its name is a hash of all that the code depends on; its contents
begin with a hash of the rest, so that a file cut short or changed is never loaded, but removed and counted in `counters`.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import CacheRefusedError
from . import cache_folder

NAME = "executables"
LIMIT_BYTES = 2 << 30
"""Beyond this the files that were used longest ago go."""
WORTH_S = 0.003
"""A program that compiles quicker is not kept. Loading takes 0.3 to 1 ms for one operator, a tenth of the compile for a large graph."""

_MAGIC = b"TLX1"
_HEAD = struct.Struct("<4s32s")
_SECONDS = struct.Struct("<d")
_SCAN_EVERY = 64 << 20
"""The folder is looked through at a process's first file and after so many bytes more."""


@dataclass
class Counters:
    """What happened in this process. `saved_s`: what compiling the loaded programs had taken, in seconds."""

    loaded: int = 0
    kept: int = 0
    damaged: int = 0
    saved_s: float = 0.0


counters = Counters()
_lock = threading.Lock()
_refused = ""
_unscanned = _SCAN_EVERY


def refusal() -> str:
    """Why the cache is not used; empty if it is. A refused folder is said once as a warning."""
    global _refused
    try:
        cache_folder.opened(NAME)
    except CacheRefusedError as error:
        if str(error) != _refused:
            _refused = str(error)
            warnings.warn(_refused, RuntimeWarning, stacklevel=2)
        return str(error)
    except OSError as error:
        return f"the cache of compiled programs cannot be written: {error}"
    return ""


def key(*parts: bytes) -> str:
    """The name of a program: a hash of everything its code depends on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def path_of(key: str) -> Path:
    """Where the program of a key is kept."""
    return cache_folder.base() / NAME / key[:2] / key[2:]


def load(key: str) -> tuple[bytes, float] | None:
    """The serialised program kept under a key, and the seconds its compile had taken; None if there is none.

    A damaged file is removed. Call `loaded` once the program proved good.
    """
    content = cache_folder.read(path_of(key))
    if content is None:
        return None
    try:
        magic, digest = _HEAD.unpack_from(content)
        body = content[_HEAD.size :]
        if magic != _MAGIC or digest != _digest(key, body):
            raise ValueError
        (seconds,) = _SECONDS.unpack_from(body)
        return zlib.decompress(body[_SECONDS.size :]), seconds
    except (ValueError, struct.error, zlib.error):
        remove(key)
        return None


def loaded(seconds: float) -> None:
    """Counts a program that was loaded; `seconds` is what its compile had taken."""
    with _lock:
        counters.loaded += 1
        counters.saved_s += seconds


def remove(key: str) -> None:
    """Drops an entry that cannot be loaded, and counts it."""
    with suppress(OSError):
        path_of(key).unlink()
    with _lock:
        counters.damaged += 1


def save(key: str, serialized: bytes, seconds: float) -> bool:
    """Keeps a program whose compile took `seconds`. False if the folder cannot be written: it is compiled again next time."""
    body = _SECONDS.pack(seconds) + zlib.compress(serialized, 1)
    content = _MAGIC + _digest(key, body) + body
    try:
        cache_folder.write(path_of(key), content)
    except OSError:
        return False
    with _lock:
        counters.kept += 1
    _shrink_after(len(content))
    return True


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _shrink_after(written: int) -> None:
    """Looks through the folder from time to time, on a thread of its own: a full one has hundreds of thousands of files."""
    global _unscanned
    with _lock:
        _unscanned += written
        due = _unscanned >= _SCAN_EVERY
        if due:
            _unscanned = 0
    if due:
        place = cache_folder.base() / NAME
        threading.Thread(target=cache_folder.shrink, args=(place, LIMIT_BYTES), name="tpu-lab-cache", daemon=True).start()
