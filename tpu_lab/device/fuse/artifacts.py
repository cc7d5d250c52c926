"""Flushes and programs of the deferred executor as artifacts of PyTorch's structured trace (`TORCH_TRACE=FOLDER`, read by tlparse).

Names and fields are those of torch_tpu 0.2.0 (its public mirror, read 2026-12-01): `torchtpu_eager_aten_graph` and
`torchtpu_eager_stablehlo` with `op_name`, `cache_hit`, `compile_failed` and `reason`, and an event of category `torchtpu_eager`
on the timeline. A flush also says what we know beyond: `ops`, `live`, `state`, `difference`, `message`. Graphs are written
where no program was there yet, as in torch_tpu.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...xla import _jax_internals as jax_internals
from .._torch_internals import trace_structured
from ..events import FlushTold, Observer, TensorType
from .trace import Step, Trace, results_of

_LOG = logging.getLogger("torch.__trace")
_REASONS = {"cpu": ".cpu()", "item": "item()", "synchronize": "synchronize()"}
"""What torch_tpu calls these reasons in its trace; the others have the same name."""


def wanted() -> bool:
    """True if PyTorch writes its structured trace into a folder. Handlers of others (pytest's, our own listener's) do not count."""
    return any(getattr(handler, "root_dir", None) is not None for handler in _LOG.handlers)


class _Beside:
    """Takes the place of the observer while a trace ends that was begun with `lines`."""

    def __init__(self, observer: Observer | None, steps: Sequence[Step], live: Sequence[int], lines: Sequence[str]) -> None:
        self._observer, self._graph = observer, (steps, live, tuple(lines))

    def flushed(self, told: FlushTold) -> None:
        """Writes the flush, and tells the observer."""
        flushed(told, *self._graph)
        if self._observer is not None:
            self._observer.flushed(told)


def beside(observer: Observer | None, ended: Trace, steps: Sequence[Step], live: Sequence[int]) -> Any:
    """Whom to tell of the end of a trace: the observer, and the structured trace where one is kept."""
    return observer if ended.lines is None else _Beside(observer, steps, live, ended.lines)


def flushed(told: FlushTold, steps: Sequence[Step], live: Sequence[int], lines: Sequence[str]) -> None:
    """Writes a flush: the graph of its calls, `live` being the slots that are kept, `lines` where each call was made (or empty)."""
    hit = told.state == "fused"
    metadata = {
        **_fields("torchtpu_eager_aten_graph", _name(steps), hit, told.state == "failed", _REASONS.get(told.reason, told.reason)),
        "ops": told.ops,
        "live": told.live,
        "state": told.state,
        "difference": told.difference,
        "message": told.message,
    }
    _write("artifact", metadata, "" if hit else graph_text(steps, live, lines))
    took = told.end_ns - told.start_ns
    event = {
        "name": _name(steps),
        "cat": "torchtpu_eager",
        "ph": "X",
        "ts": (time.time_ns() - (time.perf_counter_ns() - told.start_ns)) / 1e3,
        "dur": took / 1e3,
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
        "args": {"reason": metadata["reason"], "cache_hit": hit, "ops": told.ops},
    }
    _write("chromium_event", {}, json.dumps(event))


@contextmanager
def compiling(steps: Sequence[Step], function: Callable[..., Any], avals: Sequence[Any], donated: Sequence[int]) -> Iterator[None]:
    """Writes the program of a cluster that is compiled inside the block as StableHLO, and whether that failed."""
    failed = True
    try:
        yield
        failed = False
    finally:
        if wanted():
            _write("artifact", _fields("torchtpu_eager_stablehlo", _name(steps), False, failed, "unknown"), _stablehlo(function, avals, donated))


def _stablehlo(function: Callable[..., Any], avals: Sequence[Any], donated: Sequence[int]) -> str:
    """The text of a function's module; empty where it cannot be traced, which the compile has told."""
    try:
        return jax_internals.module_text(jax_internals.lower(function, avals, donated)[0])
    except Exception:
        return ""


def _fields(name: str, op_name: str, hit: bool, failed: bool, reason: str) -> dict[str, Any]:
    return {"name": name, "encoding": "string", "op_name": op_name, "cache_hit": hit, "compile_failed": failed, "reason": reason}


def _write(kind: str, metadata: dict[str, Any], payload: str) -> None:
    trace_structured(kind, metadata_fn=lambda: metadata, payload_fn=lambda: payload, expect_trace_id=False)


def _name(steps: Sequence[Step]) -> str:
    """`torchtpu_eager/` and the first and last operator."""
    ops = [steps[0][0].info.op, steps[-1][0].info.op] if steps else []
    return "torchtpu_eager/" + "..".join(dict.fromkeys(ops))


def graph_text(steps: Sequence[Step], live: Sequence[int], lines: Sequence[str]) -> str:
    """The calls as text, a row each: results with dtypes and sizes, operator, the slots it reads. Inputs are whole storages."""
    rows: list[str] = []
    inputs: dict[int, str] = {}
    first = 0
    for at, (entry, *slots) in enumerate(steps):
        for slot, aval in zip(slots, entry.avals, strict=False):
            if slot < 0:
                inputs.setdefault(~slot, f"%in{~slot}: {aval.dtype}{list(aval.shape)} = input")
        count = results_of(entry)
        made = ", ".join(f"%{first + i}" for i in range(count))
        read = ", ".join(f"%{s}" if s >= 0 else f"%in{~s}" for s in slots)
        line = f"  # {lines[at]}" if at < len(lines) and lines[at] else ""
        rows.append(f"{made}: {_types(entry.info.outputs)} = {entry.info.op}({read}){line}")
        first += count
    head = f"# Graph: {len(steps)} calls"
    return "\n".join([head, *(inputs[i] for i in sorted(inputs)), *rows, "return " + ", ".join(f"%{s}" for s in live)])


def _types(outputs: Sequence[TensorType]) -> str:
    return ", ".join(f"{one.dtype}{list(one.shape)}" for one in outputs) or "written"
