"""Aligned columns for a terminal or a log."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str, indent: str = "") -> list[str]:
    """Lines of a table. `align` has `r` or `l` for each column. A column that is empty in every row is left out; no trailing spaces."""
    used = [i for i in range(len(header)) if any(row[i] for row in rows)]
    shown = [[header[i] for i in used], *([row[i] for i in used] for row in rows)]
    widths = [max(width(row[k]) for row in shown) for k in range(len(used))]
    return [(indent + "  ".join(_pad(cell, widths[k], align[used[k]]) for k, cell in enumerate(row))).rstrip() for row in shown]


def width(text: str) -> int:
    """Columns a text takes in a terminal: wide East Asian characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, columns: int, align: str) -> str:
    space = " " * (columns - width(text))
    return space + text if align == "r" else text + space
