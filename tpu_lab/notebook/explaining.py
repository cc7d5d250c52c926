"""`tpu_lab.explain`: what torch.compile makes of one call, as a Run, with everything put back afterwards."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ..analysis.findings import with_findings
from ..record.run import Run
from ..recording.compile_watch import CompileWatch
from ..recording.recorder import Recorder
from .lab import Lab
from .state import Snapshot
from .tolerance import tolerant


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Run:
    """Compiles and runs `function(*args, **kwargs)` once with the backend `tpu`, and returns the record of it.

    The record holds graphs with their guards, graph breaks, programs with their cost, memory and findings; it displays itself in a
    notebook, `summary()` is its text, `to_html()` and `to_json()` the other forms. What is already compiled of the function stays as it is.
    Whatever the call changes is put back as `%%tpu compare` does: tensors and their gradients, modules, containers and objects reachable
    from the function and its arguments, random numbers; what it prints is not shown. Files and iterators cannot be put back.
    Raises what the function raises, after putting everything back.
    """
    plain: Any = getattr(function, "_torchdynamo_orig_callable", function)
    name = getattr(plain, "__name__", type(plain).__name__)
    before = Snapshot(_reachable_from(plain, args, kwargs), Lab())
    recorder = Recorder(mode="compile", name=f"explain {name}")
    try:
        with recorder, CompileWatch(recorder, guards=True), tolerant(), contextlib.redirect_stdout(io.StringIO()):
            compile_: Any = torch.compile
            compile_(plain, backend="tpu", isolate_recompiles=True)(*args, **kwargs)
    finally:
        before.restore()
        before.close()
    return with_findings(replace(recorder.run, id=""))


def _reachable_from(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """A namespace from which everything the call can change is reached: its arguments, the function, the globals it names."""
    code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    used = {name: scope[name] for name in code.co_names if name in scope} if code is not None else {}
    owner = getattr(function, "__self__", None)
    return {**used, "explained function": function, "explained owner": owner, "explained arguments": list(args), "explained options": dict(kwargs)}
