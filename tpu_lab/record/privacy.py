"""What must not leave the machine with a record: home folders, absolute paths of sources, and values of tensors."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from functools import lru_cache

MESSAGE_LIMIT = 2000
"""Longest message kept, in characters."""

_PEOPLE = re.compile(r"(?:(?:/home|/Users|/var/home)/|[A-Za-z]:[\\/]Users[\\/])[^/\\\s'\":;,)]+(?=[/\\]|\b)")
_SITE = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_TENSOR = re.compile(r"\b(tensor|Parameter containing:\s*tensor|array)\((?:[^()]|\([^()]*\))*\)?", re.DOTALL)


@lru_cache(maxsize=1)
def _homes() -> tuple[str, ...]:
    home = os.path.expanduser("~")
    found = {home, os.path.realpath(home)}
    return tuple(sorted((h.rstrip("/\\") for h in found if len(h.rstrip("/\\")) > 1), key=len, reverse=True))


def scrub(text: str) -> str:
    """Text with every home folder replaced by `…`."""
    for home in _homes():
        if home in text:
            text = re.sub(re.escape(home) + r"(?![\w.-])", "…", text)
    return _PEOPLE.sub("…", text)


def message(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """An exception's or compiler's message without home folders and tensor values, cut after `limit` characters."""
    text = _TENSOR.sub(r"\1(…)", scrub(text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_name(filename: str, roots: Sequence[str] | None = None) -> str:
    """A file's name for display: below site-packages, the standard library, an import root or the working folder relative to it,
    else the last two parts. Never absolute.

    `roots` are folders to be relative to (default: `sys.path` and the working folder).
    """
    site = _SITE.match(filename)
    if site:
        return "site-packages/" + filename[site.end() :].replace("\\", "/")
    if filename.startswith("<"):
        return scrub(filename)
    library = sysconfig.get_paths()["stdlib"]
    if filename.startswith(library + os.sep):
        return "python/" + filename[len(library) + 1 :].replace("\\", "/")
    for root in sorted(_roots() if roots is None else roots, key=len, reverse=True):
        base = root.rstrip("/\\")
        if len(base) > 1 and filename.startswith(base + os.sep):
            return filename[len(base) + 1 :].replace("\\", "/")
    parts = filename.replace("\\", "/").split("/")
    return scrub("/".join(part for part in parts[-2:] if part))


def _roots() -> list[str]:
    roots = [os.path.abspath(p) for p in sys.path if p and os.path.isdir(p)]
    try:
        return [*roots, os.getcwd()]
    except FileNotFoundError:  # the working folder was deleted
        return roots
