"""Where torch.compile would end graphs: Dynamo on CPU copies with a backend that compiles nothing, or what host syncs let expect."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import torch

from ..record.reasons import BreakReason
from ..record.run import Run
from ..recording.compile_watch import CompileWatch
from ..recording.recorder import Recorder
from . import copies
from .scan import ScanBreak, ScanSync

_BY_SYNC = {"item": "item", "data_dependent_size": "dynamic_size", "print": "print"}
"""Ids of `BreakReason` by those of `SyncReason`: what Dynamo does not follow as it is set up by default."""


def graph_breaks(function: Any, args: Any, kwargs: Any, raises: bool) -> tuple[ScanBreak, ...] | None:
    """The breaks that Dynamo meets in a call, which runs on CPU copies; None if it did not get through a call that `raises` nothing."""
    call, positional, named = copies.prepared(copies.OnCpu(), function, args, kwargs)
    recorder = Recorder(mode="compile", name="scan")
    try:
        with recorder, CompileWatch(recorder):
            compile_: Any = torch.compile
            compile_(_own_frame(call), backend="eager", isolate_recompiles=True)(*positional, **named)
    except Exception:
        if not raises:
            return None
    run = recorder.run
    return tuple(ScanBreak(b.reason, _line(run, b.location), b.message, b.remedy or BreakReason.of(b.reason).remedy) for b in run.graph_breaks)


def inferred_breaks(syncs: Sequence[ScanSync]) -> tuple[ScanBreak, ...]:
    """The breaks that host syncs make."""
    found = []
    for sync in syncs:
        if sync.reason in _BY_SYNC:
            reason = BreakReason.of(_BY_SYNC[sync.reason])
            found.append(ScanBreak(reason.id, sync.line, reason.sentence, reason.remedy, inferred=True))
    return tuple(found)


def _own_frame(callee: Any) -> Any:
    """A function is compiled as it is; a module in a function around it, in no file that Dynamo skips."""
    if not isinstance(callee, torch.nn.Module):
        return callee

    def call(*args: Any, **kwargs: Any) -> Any:
        return callee(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(co_filename="<scan>"), call.__globals__, "call", None, call.__closure__)


def _line(run: Run, location: int) -> str:
    if location < 0:
        return "unknown line"
    place = run.locations[location]
    source = run.sources[place.source]
    return f"{'cell' if source.kind != 'file' else source.name}:{place.line}"
