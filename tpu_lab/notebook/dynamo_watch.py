"""What torch.compile did while a cell ran: graph breaks, functions left uncompiled, recompiles, each with reason and line.

Read from what Dynamo keeps anyway (its list of break reasons and its per-compilation metrics); nothing runs twice and no
tracing is switched on. Works for compiled cells and for `torch.compile` called by the user's own code.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

from ..device import _torch_internals as internals

_ON_PURPOSE = os.path.join("torch", "optim", "optimizer.py")
"""PyTorch's own wrapper of optimizer steps breaks around the step on purpose; nothing the user could change."""
_INSIDE_TORCH = os.sep + "torch" + os.sep
_FRAMES = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in ')
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LOGGERS = ("torch._dynamo", "torch._subclasses", "torch._logging", "torch._functorch", "torch.fx")


class BreakListener(Protocol):
    """Who is told. A `tpu_lab.recording` recorder is one."""

    def graph_break(self, message: str, filename: str = "", line: int = 0, reason: str = "") -> None: ...

    def recompile(self, message: str, function: str = "", filename: str = "", line: int = 0, seconds: float = 0.0, reason: str = "") -> None: ...


class DynamoWatch:
    """Tells a listener, at the end of a `with` block, what Dynamo did inside it."""

    def __init__(self, listener: BreakListener) -> None:
        self._listener = listener
        self._breaks_before = 0
        self._last_metrics: Any = None
        self._metrics: list[Any] = []
        self._registered = False
        self._told: set[tuple[str, str, int]] = set()

    def __enter__(self) -> DynamoWatch:
        if internals.dynamo_is_loaded():
            self._breaks_before = len(internals.graph_break_reasons())
            self._last_metrics = next(reversed(internals.compilation_metrics()), None)
            # Dynamo keeps only the last 64 metrics: they are fetched while they come
            internals.compile_callbacks().register_end_callback(self._collect)
            self._registered = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not internals.dynamo_is_loaded():
            return
        if self._registered:
            internals.compile_callbacks().remove_end_callback(self._collect)
        self._collect(None)
        for metrics in self._metrics:  # before the breaks: where a function was left uncompiled, that is what counts
            self._tell_compilation(metrics)
        for broken in internals.graph_break_reasons()[self._breaks_before :]:
            self._tell_break(broken)
        self._told.clear()
        self._metrics.clear()
        self._last_metrics = None

    def _collect(self, _: Any) -> None:
        fresh: list[Any] = []
        for metrics in reversed(internals.compilation_metrics()):
            if metrics is self._last_metrics:
                break
            fresh.append(metrics)
        if fresh:
            self._last_metrics = fresh[0]
            self._metrics.extend(reversed(fresh))

    def _tell_break(self, broken: Any) -> None:
        if not broken.user_stack:
            self._graph_break(broken.reason, "", 0, "")
        elif not broken.user_stack[-1].filename.endswith(_ON_PURPOSE):
            at = _user_frame(broken.user_stack)
            self._graph_break(broken.reason, at.filename, at.lineno or 0, "")

    def _graph_break(self, message: str, filename: str, line: int, reason: str) -> None:
        """Tells of a place and kind of break once: Dynamo meets it again in each version of the function, and in the called function."""
        key = (message.partition("\n")[0], filename, line)
        if key not in self._told:
            self._told.add(key)
            self._listener.graph_break(message, filename, line, reason)

    def _tell_compilation(self, metrics: Any) -> None:
        filename, function = metrics.co_filename or "", metrics.co_name or ""
        failure = metrics.fail_type or ""
        if metrics.recompile_reason or "recompile limit" in (metrics.fail_reason or ""):
            message = re.sub(r"^\d+/\d+: ", "", metrics.recompile_reason or metrics.fail_reason)
            guard = " ".join(message.split("#")[0].split())
            frames = [(f["file"], int(f["line"])) for f in _FRAMES.finditer(message) if _is_users(f["file"])]
            where = frames[-1] if frames else (filename, metrics.co_firstlineno or 0)
            seconds = float(metrics.entire_frame_compile_time_s or 0.0)
            self._listener.recompile(guard, function, *where, seconds, "limit" if failure else "")
        elif failure and failure != "TorchRuntimeError" and function:
            line = metrics.fail_user_frame_lineno or metrics.co_firstlineno or 0
            place = metrics.fail_user_frame_filename or filename
            self._graph_break(metrics.fail_reason or failure, place, line, _REASONS.get(failure, "skipped"))


_REASONS = {"BackendCompilerFailed": "backend"}


def _is_users(filename: str) -> bool:
    return _INSIDE_TORCH not in filename and not filename.startswith(_OWN)


def _user_frame(stack: Sequence[Any]) -> Any:
    """The innermost frame outside PyTorch and this package; the innermost of all if there is none."""
    return next((frame for frame in reversed(stack) if _is_users(frame.filename)), stack[-1])


@contextmanager
def tolerant() -> Iterator[None]:
    """Inside, what Dynamo or a backend cannot compile runs uncompiled, so that the user's own error comes out, and nothing is logged
    that the watch reports. A log level set by the user (`TORCH_LOGS`, or a logger's own level) stays as it is."""
    changed = [
        logger for name in _LOGGERS if (logger := logging.getLogger(name)).getEffectiveLevel() == logging.WARNING and "TORCH_LOGS" not in os.environ
    ]
    before = [logger.level for logger in changed]
    for logger in changed:
        logger.setLevel(logging.CRITICAL)
    try:
        with internals.tolerate_compile_errors():
            yield
    finally:
        for logger, level in zip(changed, before, strict=True):
            logger.setLevel(level)
