"""Where programs are kept on disk, and whether that place is safe: `TPU_LAB_CACHE_DIR`, else the user's cache folder.

What is kept there is native code that is loaded and run, so nobody else may have been able to write to it.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import platformdirs

from ..errors import CacheRefusedError

_OTHERS_WRITE = 0o022
_ABANDONED_S = 3600
"""A file that is not finished after so many seconds never will be: its process is gone."""
_PARTIAL = ".partial-"


def is_off() -> bool:
    """True if the user turned the caches on disk off (`TPU_LAB_CACHE=0`)."""
    return os.environ.get("TPU_LAB_CACHE", "1") == "0"


def base() -> Path:
    """The folder of all caches, which need not exist."""
    return Path(os.environ.get("TPU_LAB_CACHE_DIR") or platformdirs.user_cache_dir("tpu-lab", appauthor=False))


def opened(name: str) -> Path:
    """The folder of one cache, made if it is missing (mode 0700). Raises CacheRefusedError, or OSError if it cannot be made."""
    place = base()
    if not place.exists():
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(place)
    inner = place / name
    with suppress(FileExistsError):
        inner.mkdir(mode=0o700)
    mode = _check(inner)
    if mode & 0o077:
        inner.chmod(0o700)
    return inner


def _check(place: Path) -> int:
    """The mode of a folder that is this user's alone to write to. Raises CacheRefusedError for any other."""
    status = place.lstat()
    wrong = ""
    if stat.S_ISLNK(status.st_mode):
        wrong = "is a symbolic link"
    elif not stat.S_ISDIR(status.st_mode):
        wrong = "is not a folder"
    elif hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        wrong = f"belongs to another user (uid {status.st_uid})"
    elif hasattr(os, "geteuid") and status.st_mode & _OTHERS_WRITE:
        wrong = f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    if wrong:
        raise CacheRefusedError(
            f"the cache of compiled programs is not used: {place} {wrong}",
            remedy=f"chmod 700 {place}" if wrong.startswith("can be") else "set TPU_LAB_CACHE_DIR to a folder of your own, or TPU_LAB_CACHE=0",
        )
    return stat.S_IMODE(status.st_mode)


def write(path: Path, content: bytes) -> None:
    """Makes a file (mode 0600) appear with all its contents at once, in a folder that is made if missing. Raises OSError."""
    partial = path.with_name(f"{_PARTIAL}{secrets.token_hex(8)}")
    try:
        handle = _create(partial)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def read(path: Path) -> bytes | None:
    """The contents of a file, which counts as used now; None if it is not there, or not a plain file of this user."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
            return None
        with suppress(OSError):
            os.utime(path)
        return file.read()


def files(place: Path) -> Iterator[tuple[float, int, str]]:
    """Each file below a folder: when it was last used (seconds), its size in bytes, its path. Unfinished files are among them."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from files(Path(entry.path))
                else:
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime, status.st_size, entry.path
            except OSError:
                continue  # another process removed it


def size(name: str) -> tuple[int, int]:
    """How many files one cache has, and their bytes together."""
    sizes = [nbytes for _, nbytes, _ in files(base() / name)]
    return len(sizes), sum(sizes)


def shrink(place: Path, limit: int) -> None:
    """Removes what was used longest ago until the files take at most nine tenths of `limit` bytes, if they take more than `limit`."""
    found = sorted(files(place))
    now = time.time()
    total = sum(nbytes for _, nbytes, _ in found)
    goal = int(0.9 * limit) if total > limit else total
    for used, nbytes, path in found:
        abandoned = os.path.basename(path).startswith(_PARTIAL) and now - used > _ABANDONED_S
        if total > goal or abandoned:
            with suppress(OSError):
                os.unlink(path)
            total -= nbytes


def clear(name: str) -> tuple[int, int]:
    """Removes all files of one cache; how many, and their bytes. Raises CacheRefusedError for a folder that is not this user's."""
    if not (base() / name).exists():
        return 0, 0
    count = total = 0
    for _, nbytes, path in files(opened(name)):
        with suppress(OSError):
            os.unlink(path)
            count, total = count + 1, total + nbytes
    return count, total
