"""Listens, in process, to what Dynamo writes to PyTorch's structured trace (the log behind `TORCH_TRACE`): breaks, recompiles, figures.

Nothing runs twice, nothing is written to disk. While a handler is attached PyTorch also renders the other artifacts of the trace (graphs
as text), so one is attached only while a block is recorded. The form of the records is torch 2.13's; `tests/compiler` fails when it changes.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

_LOG = logging.getLogger("torch.__trace")
_REASONS_MADE_IN = "get_and_maybe_log_recompilation_reasons"
_EXPECTED = re.compile(r"\. expected (?P<old>[^,]+), actual (?P<new>.+)$")
_LONGEST = 80


class Guard:
    """The guard that failed: its expression, the value it was made for, the one that came. Empty where it is not a plain value."""

    def __init__(self, text: str, scope: Mapping[str, Any]) -> None:
        self.text = text
        body = re.sub(r"^\S+/\d+: ", "", text.partition("\n")[0])
        self.expression, self.old, self.new = " ".join(body.partition("  #")[0].split()), "", ""
        told = _EXPECTED.search(self.expression)
        if told:
            self.old, self.new = told["old"].strip(), told["new"].strip()
            self.expression = self.expression[: told.start()]
        else:
            self._compare(scope)

    def _compare(self, scope: Mapping[str, Any]) -> None:
        """Reads `left == right`; the left side is looked up in the frame as it is now."""
        try:
            tree = ast.parse(self.expression, mode="eval").body
        except SyntaxError:
            return
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
            return
        left, right = tree.left, tree.comparators[0]
        if isinstance(left, ast.Constant):  # `2 <= x.size()[0]`
            left, right = right, left
        if isinstance(tree.ops[0], (ast.Eq, ast.Is)):
            self.old = ast.unparse(right)[:_LONGEST]
        try:
            self.new = _shown(_value(left, scope))
        except _NotPlain:
            self.new = ""


class _NotPlain(Exception):
    """An expression that is not looked up, or a value that is not shown."""


def _value(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The value of names, attributes, items, `len(...)` and argument-less size methods; runs nothing else."""
    try:
        if isinstance(node, ast.Name):
            return scope[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            return getattr(_value(node.value, scope), node.attr)
        if isinstance(node, ast.Subscript):
            return _value(node.value, scope)[_value(node.slice, scope)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "type") and len(node.args) == 1:
            return (len if node.func.id == "len" else type)(_value(node.args[0], scope))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and node.func.attr in _SIZES:
            return getattr(_value(node.func.value, scope), node.func.attr)()
    except (KeyError, IndexError, AttributeError, TypeError):
        pass
    raise _NotPlain


_SIZES = ("size", "stride", "dim", "storage_offset")


def _shown(value: Any) -> str:
    """A number, text, size, dtype or type as text. Raises _NotPlain for anything else: values of tensors do not leave the process."""
    if isinstance(value, type):
        return value.__name__
    plain = value is None or isinstance(value, (bool, int, float, str)) or type(value).__name__ in ("dtype", "device", "Size")
    if not plain:
        raise _NotPlain
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class TraceListener(Protocol):
    """Who hears of the trace."""

    def broken(self, text: str) -> None:
        """A graph break, in PyTorch's words, with the user's frames."""

    def recompiling(self, compile_id: str, guard: Guard) -> None:
        """A function is about to be compiled again."""

    def compiled(self, metrics: Mapping[str, Any]) -> None:
        """A function was compiled, or given up: PyTorch's own figures."""

    def guards(self, compile_id: str, text: str) -> None:
        """What must hold for the function just compiled to be used again."""


class StructuredTrace(logging.Handler):
    """Attached inside a `with` block."""

    def __init__(self, listener: TraceListener) -> None:
        super().__init__(logging.DEBUG)
        self._listener = listener

    def __enter__(self) -> StructuredTrace:
        self._propagated, _LOG.propagate = _LOG.propagate, False  # its records are empty lines to any other handler
        _LOG.addHandler(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _LOG.removeHandler(self)
        _LOG.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on the records of interest. A record of another form is dropped: it must not fail a compile."""
        try:
            self._pass_on(getattr(record, "metadata", {}), getattr(record, "payload", None) or "")
        except Exception:
            self.handleError(record)

    def _pass_on(self, metadata: Mapping[str, Any], payload: str) -> None:
        id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        if "compilation_metrics" in metadata:
            self._listener.compiled(metadata["compilation_metrics"])
        elif "dynamo_cpp_guards_str" in metadata:
            self._listener.guards(id, payload)
        elif "artifact" in metadata:
            name = metadata["artifact"].get("name")
            if name == "dynamo_graph_break_reason":
                self._listener.broken(payload)
            elif name == "recompile_reasons":
                reasons = json.loads(payload) if payload.startswith("[") else payload
                first = reasons[0] if isinstance(reasons, list) and reasons else str(reasons)
                self._listener.recompiling(id, Guard(first, _frame_being_compiled()))


def _frame_being_compiled() -> Mapping[str, Any]:
    """The variables of the frame whose guards failed, found on the stack of the log call."""
    at = sys._getframe()
    while at is not None and at.f_code.co_name != _REASONS_MADE_IN:
        at = at.f_back  # type: ignore[assignment]
    frame = at.f_locals.get("frame") if at is not None else None
    if frame is None:
        return {}
    return {"L": frame.f_locals, "G": frame.f_globals, **frame.f_locals}
