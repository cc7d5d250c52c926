"""One HTML page that opens from disk: the views of the extension with their data, and nothing from outside."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ..analysis.findings import with_findings
from ..errors import MissingPackageError
from ..record.codec import to_data
from ..record.run import Run
from . import html
from .markup import Markup, element, escape
from .mime import shrink

STATIC = Path(__file__).parents[1] / "static"
MAX_BYTES = 20_000_000
"""Most bytes of JSON of a run in a page; more than in a notebook, where every run adds up."""

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; connect-src data: blob:"
)
"""Nothing is fetched: a page from a stranger cannot call home."""
_STYLE = """
body { margin: 16px auto; max-width: 1180px; padding: 0 16px; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1); }
body { font: 13px/1.45 system-ui, sans-serif; --jp-layout-color1: #fff; --jp-border-color2: #e0e0e0; --jp-ui-font-color1: rgb(0 0 0 / 87%); }
body[data-jp-theme-light='false'] { --jp-layout-color1: #212121; --jp-border-color2: #424242; --jp-ui-font-color1: rgb(255 255 255 / 87%); }
body[data-jp-theme-light='false'] { color-scheme: dark; --jp-mirror-editor-keyword-color: #7fc98a; --jp-mirror-editor-string-color: #ff9d94; }
body[data-jp-theme-light='false'] { --jp-mirror-editor-number-color: #7fd1b9; --jp-mirror-editor-comment-color: #86a5a5; }
"""
_START = """
const part = id => JSON.parse(document.getElementById(id).textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.body.setAttribute('data-jp-theme-light', String(!dark.matches));
dark.addEventListener('change', paint);
paint();
document.getElementById('static').remove();
tpuLabShow(document.getElementById('view'), part('kind'), part('data'), async () => part('engine'));
"""


def run_page(run: Run, graph: dict[str, Any] | None = None) -> str:
    """A run, with its fusion graph if there is one, as a page. Raises MissingPackageError where the front end was not built."""
    whole = with_findings(run)
    data = {"run": to_data(shrink(whole, MAX_BYTES)), "graph": graph} if graph else {"run": to_data(shrink(whole, MAX_BYTES))}
    return page("run", data, f"Run {run.id} {run.name}".strip(), html.run_html(run), engine=graph is not None)


def page(kind: str, data: Any, title: str, static: str, engine: bool = True) -> str:
    """A page that shows `data` as `kind`; `static` is the same as HTML, for readers without scripts. `engine`: it draws graphs."""
    parts = {"kind": kind, "data": data, "engine": _text("engine.js") if engine else ""}
    stored = [element("script", Markup(_json(value)), type="application/json", id=name) for name, value in parts.items()]
    head = [
        element("title", title),
        Markup(f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("style", Markup(_STYLE + _text("page.css"))),
    ]
    body = [
        element("div", id="view"),
        element("div", Markup(static), id="static"),
        *stored,
        element("script", Markup(_text("page.js") + _START), type="module"),
    ]
    return f'<!doctype html>\n<html lang="en">{element("head", *head)}{element("body", *body)}</html>\n'


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


@cache
def _text(name: str) -> str:
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        remedy = "run `make front` in the clone; a wheel has it built"
        raise MissingPackageError(f"tpu_lab/static/{name} is not built", remedy=remedy) from error
