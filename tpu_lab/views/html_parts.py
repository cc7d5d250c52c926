"""The pieces all HTML views are made of: frame, figure, chip, table, bar. Inline styles only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import theme
from .markup import Markup, element

FRAME = f"border:1px solid {theme.LINE};border-radius:6px;padding:12px 16px;margin:4px 0;max-width:1100px"
CELL = "padding:2px 10px 2px 0;border:0;vertical-align:top;white-space:nowrap"
"""Every cell of a table carries it, so it is short: no more than what front ends set on cells themselves."""
CODE_SPAN = f"{theme.CODE};font-size:12px;background:#8a90991f;border-radius:3px;padding:0 3px;color:inherit"


def frame(*children: str, label: str) -> Markup:
    """The outer box of a fragment. `label` names it for screen readers."""
    return element("div", *children, style=f"{theme.UI};font-size:13px;line-height:1.45;color:{theme.TEXT};{FRAME}", role="group", aria_label=label)


def title(text: str, note: str = "") -> Markup:
    """The sentence that opens a part."""
    small = [element("span", f" {note}", style=f"font-weight:400;font-size:12px;color:{theme.MUTED}")] if note else []
    return element("div", text, *small, style="font-size:13px;font-weight:600;margin:16px 0 6px")


def paragraph(*children: str, muted: bool = False) -> Markup:
    """A line of text."""
    return element("div", *children, style=f"margin:0 0 4px;font-size:12px;color:{theme.MUTED}" if muted else "margin:0 0 4px")


def figure(label: str, value: str, note: str = "", tag: str = "", exact: str = "") -> Markup:
    """A figure of the summary: label (with a tag that tells where the number comes from), value, small print."""
    box = element("span", tag, style=f"border:1px solid {theme.LINE};border-radius:3px;padding:0 4px;margin-left:6px") if tag else Markup("")
    small = [element("span", f" {note}", style=f"font-weight:400;font-size:12px;color:{theme.MUTED}")] if note else []
    head = element("div", label, box, style=f"font-size:11px;color:{theme.MUTED}")
    return element(
        "div", head, element("div", value, *small, style=f"font-size:15px;font-weight:600;{theme.FIGURES}"), style="margin:0 28px 4px 0", title=exact
    )


def chip(mark: str, text: str) -> Markup:
    """A pill with a mark's sign and a count."""
    sign, _, colour, soft = theme.MARKS[mark]
    style = f"display:inline-block;border-radius:11px;padding:1px 10px;margin:0 6px 0 0;font-size:12px;color:{colour};background-color:{soft}"
    return element("span", element("span", sign, style="font-weight:700", aria_hidden="true"), f" {text}", style=style)


def sign(mark: str, tip: str) -> Markup:
    """A mark in a gutter: its sign and, in small letters, its name."""
    glyph, name, colour, _ = theme.MARKS[mark]
    return element("span", element("b", glyph, aria_hidden="true"), f" {name}", style=f"color:{colour};white-space:nowrap;font-size:11px", title=tip)


@dataclass(frozen=True)
class Column:
    """A table column: header, `left` or `right`, and extra style of its cells."""

    header: str
    align: str = "right"
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], row_styles: Sequence[str] = ()) -> Markup:
    """A table without boxes. Columns that are empty in every row are left out. Numbers have equal digits widths."""
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    heading = f"{CELL};font-size:11px;font-weight:600;color:{theme.MUTED};border-bottom:1px solid {theme.LINE}"
    head = [element("th", columns[i].header, style=f"{heading};text-align:{columns[i].align}", scope="col") for i in used]
    body = []
    for n, row in enumerate(rows):
        cells = [element("td", row[i], style=";".join(filter(None, [CELL, f"text-align:{columns[i].align}", columns[i].style]))) for i in used]
        body.append(element("tr", *cells, style=f"background:transparent;{row_styles[n] if row_styles else ''}"))
    style = f"border-collapse:collapse;border:0;margin:0;table-layout:auto;font-size:12px;color:{theme.TEXT};{theme.FIGURES}"
    parts = element("thead", element("tr", *head, style="background:transparent")), element("tbody", *body)
    return element("div", element("table", *parts, style=style), style="overflow-x:auto")  # wide tables scroll, not the page


def bar(share: float, width: int = 56) -> Markup:
    """A bar from a common zero for a number that stands beside it; `share` of the full width, at least 1.5 px. Nothing for nothing."""
    if share <= 0:
        return Markup("")
    length = max(1.5, share * width)
    filled = element("span", style=f"display:inline-block;width:{length:.1f}px;height:10px;background-color:{theme.BAR}")
    return element("span", filled, style=f"display:inline-block;width:{width}px", aria_hidden="true")


def spread_bar(low: float, middle: float, high: float, full: float, chosen: bool) -> Markup:
    """A bar from zero to the median with a whisker from the shortest to the longest repeat, all on one scale."""
    percent = [100 * value / full if full else 0 for value in (low, middle, high)]
    bar = element("div", style=f"width:{percent[1]:.1f}%;height:14px;background-color:{theme.BAR_CHOSEN if chosen else theme.BAR}")
    whisker = ""
    if high > low:
        line = element("div", style=f"height:4px;border-bottom:1px solid {theme.WHISKER}")
        ends = f"border-left:1px solid {theme.WHISKER};border-right:1px solid {theme.WHISKER};box-sizing:border-box"
        span = max(percent[2] - percent[0], 0.4)
        style = f"position:absolute;top:2px;left:{percent[0]:.1f}%;width:{span:.1f}%;height:10px;{ends}"
        whisker = element("div", line, style=style)
    return element("div", bar, whisker, style="position:relative;height:14px;width:260px;margin:3px 0", aria_hidden="true")


def details(summary: str, *children: str) -> Markup:
    """A part that opens on demand."""
    head = element("summary", summary, style="cursor:pointer;font-weight:600;font-size:13px;margin:16px 0 6px")
    return element("details", head, *children)
