"""HTML by small functions: everything that comes from a record is escaped here, and only here is markup put together."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Text as HTML. Control characters and those that turn the reading direction are shown as `�`: code must look as it is."""
    return Markup(html.escape(_INVISIBLE.sub("\ufffd", text), quote=True))


def element(tag: str, *children: str, style: str = "", **attributes: str) -> Markup:
    """An element. Children that are not Markup are escaped; `colspan_`-like attribute names lose the underscore."""
    parts = [f'style="{html.escape(style, quote=True)}"'] if style else []
    parts += [f'{name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items() if value]
    return Markup(f"<{' '.join([tag, *parts])}>{join(children)}</{tag}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Parts one after the other, escaped unless they are Markup."""
    return Markup(escape(between).join(p if isinstance(p, Markup) else escape(p) for p in parts))


def code_text(text: str, style: str) -> Markup:
    """Words in which parts between backquotes are set as code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return join(element("code", piece, style=style) if i % 2 else escape(piece) for i, piece in enumerate(pieces))
