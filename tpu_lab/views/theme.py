"""Colours and text styles of the HTML fragments, as inline styles.

A fragment has no style element (JupyterLab removes it) and cannot know the theme. So text colours are mixed from one hue and the
colour of the surrounding text (`--jp-ui-font-color0` in JupyterLab, the inherited colour elsewhere), which darkens them on a light
page and lightens them on a dark one; lines and bars are half transparent. In a notebook that is not trusted JupyterLab also drops
`var()` and `color-mix()`: then text inherits its colour and everything stays readable.
"""

from __future__ import annotations

_INK = "var(--jp-ui-font-color0,currentcolor)"

TEXT = "var(--jp-ui-font-color1,inherit)"
MUTED = f"color-mix(in srgb,{_INK} 64%,transparent)"
COST = f"color-mix(in srgb,#d98200 60%,{_INK})"
WRONG = f"color-mix(in srgb,#e8382d 68%,{_INK})"

COST_SOFT = "#e0941f24"
WRONG_SOFT = "#e8382d24"
LINE = "#8a909959"
BAR = "#7f9abf99"
BAR_CHOSEN = "#2b7fd6"
WHISKER = "#858c96"

UI = "font-family:var(--jp-ui-font-family,system-ui,sans-serif)"
CODE = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-variant-ligatures:none"
FIGURES = "font-variant-numeric:tabular-nums"
QUOTE = f"{CODE};white-space:pre-wrap;border-left:2px solid {LINE};padding:1px 0 1px 8px"

MARKS = {
    "failure": ("✕", "exception", WRONG, WRONG_SOFT),
    "break": ("‖", "graph break", COST, COST_SOFT),
    "recompile": ("↻", "recompile", COST, COST_SOFT),
    "fallback": ("↘", "CPU fallback", COST, COST_SOFT),
    "sync": ("⇅", "host sync", COST, COST_SOFT),
    "note": ("•", "note", COST, COST_SOFT),
}
"""Sign, name, text colour and soft background of each mark. The sign tells kinds apart without colour; the name is always near."""
