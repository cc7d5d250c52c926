"""`tpu_lab.scan`: what a model asks for, before it runs: which operators, where the host would wait, where graphs break, how much memory."""

from __future__ import annotations

import contextlib
import io
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device import registration
from . import copies, table
from .breaks import graph_breaks, inferred_breaks
from .scan import Scan, ScanDynamic, ScanMemory, ScanOp, ScanSync
from .watch import Asked, NeedsValues, Watch

SHARE = 0.25
"""Part of the machine's memory that a model and its inputs may take for their values to be computed."""
_BRANCHES = 16
"""Lines of branches that are followed on both sides."""
_TURNS = 8
"""How often a line may say yes in one run; a loop whose condition nobody knows ends then."""
_LINES = 8


@dataclass
class _Decisions:
    """Answers for branches nobody knows: yes, but for the lines in `no`; and no from the `_TURNS`th time on."""

    no: frozenset[str] = frozenset()
    met: Counter[str] = field(default_factory=Counter)

    def __call__(self, line: str) -> bool:
        self.met[line] += 1
        return line not in self.no and self.met[line] < _TURNS


def scan(function: Any, *args: Any, **kwargs: Any) -> Scan:
    """Tells what a call `function(*args, **kwargs)` would ask of the device, without running it there.

    Args:
        function: a `torch.nn.Module` or a function (one that calls `backward()` and `step()` is a whole training step).
        args, kwargs: its arguments; tensors on any device.

    The call runs on copies without values (fake tensors on the device `tpu`). Where it needs a value, to choose a branch or a size, it
    runs again with everything computed on CPU copies, if model and inputs fit in SHARE of the machine's memory; else both sides of each
    branch are followed one level and what only one side has is marked `either`. Graph breaks are those of Dynamo on the CPU copies; where
    it cannot run or fails they are inferred from host syncs, and marked so.
    Model, arguments and random numbers stay as they are, what the call prints is not shown; files and iterators it reads are read.
    An exception of the call ends the scan and stands in `Scan.failure`. Raises OptionError for what cannot be copied.
    """
    registration.load()
    function = copies.plain(function)
    held, given = copies.bytes_of(function), copies.bytes_of((args, kwargs))
    small = held + given <= SHARE * _machine_bytes()
    with _untouched():
        runs, values = _runs(function, args, kwargs, small)
        first = runs[0]
        found = graph_breaks(function, args, kwargs, raises=bool(first.failure)) if small else None
    syncs = _merged(runs, lambda run: run.watch.syncs)
    sync_rows = tuple(ScanSync(reason, line, count, either) for (reason, line), (count, either) in syncs.items())
    return Scan(
        name=getattr(function, "__name__", type(function).__name__),
        ops=_ops(runs),
        syncs=sync_rows,
        dynamic=_dynamic(runs),
        breaks=inferred_breaks(sync_rows) if found is None else found,
        memory=ScanMemory(held, given, max(run.watch.peak for run in runs)),
        values=values,
        failure=first.failure,
    )


@dataclass
class _Run:
    """One run on fake tensors."""

    watch: Watch
    failure: str
    decisions: _Decisions


def _runs(function: Any, args: Any, kwargs: Any, small: bool) -> tuple[list[_Run], str]:
    """The runs that were needed, and how values were come by."""
    try:
        return [_run(function, args, kwargs)], "not needed"
    except NeedsValues:
        pass
    if small:
        with contextlib.suppress(NeedsValues):  # an operator on the way has no CPU kernel
            return [_run(function, args, kwargs, values=True)], "computed"
    base = _run(function, args, kwargs, decisions=_Decisions())
    others = [_run(function, args, kwargs, decisions=_Decisions(frozenset({line}))) for line in list(base.decisions.met)[:_BRANCHES]]
    return [base, *others], "either"


def _run(function: Any, args: Any, kwargs: Any, values: bool = False, decisions: _Decisions | None = None) -> _Run:
    mode = internals.fake_mode()
    made = copies.Fakes(mode, values)
    watch = Watch(mode, values, guess=decisions is not None)
    call, positional, named = copies.prepared(made, function, args, kwargs)
    watch.hold(made.tensors())
    failure = ""
    try:
        with internals.DeviceContext(torch.device("tpu")), Asked(watch, decisions), watch:
            call(*positional, **named)
    except NeedsValues:
        raise
    except Exception as error:  # the call's own
        failure = f"{type(error).__name__}: {error}"
    finally:
        made.release()
    return _Run(watch, failure, decisions or _Decisions())


@contextlib.contextmanager
def _untouched() -> Iterator[None]:
    """Puts random states back and keeps what is printed to itself."""
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        random.setstate(state)


def _machine_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _merged(runs: list[_Run], counts: Callable[[_Run], Counter[Any]]) -> dict[Any, tuple[int, bool]]:
    """Counts over all runs: the largest, and whether a run lacks the key."""
    keys = dict.fromkeys(key for run in runs for key in counts(run))
    return {key: (max(counts(run)[key] for run in runs), any(not counts(run)[key] for run in runs)) for key in keys}


def _ops(runs: list[_Run]) -> tuple[ScanOp, ...]:
    """A row for each operator, the most calls first."""
    rows = {row.aten: row for row in table.load()}
    by_name: dict[str, dict[str, tuple[int, bool]]] = {}
    for (name, line), found in _merged(runs, lambda run: run.watch.ops).items():
        by_name.setdefault(name, {})[line] = found
    ops = []
    for name, lines in by_name.items():
        row = rows.get(name)
        order = sorted(lines, key=lambda line: -lines[line][0])
        ops.append(
            ScanOp(
                name=name,
                count=sum(count for count, _ in lines.values()),
                here=row.here if row else "unknown",
                torch_tpu=row.torch_tpu if row else "unknown",
                lines=tuple(order[:_LINES]),
                dtypes=tuple(sorted({dtype for run in runs for dtype in run.watch.dtypes.get(name, ())})),
                either=all(either for _, either in lines.values()),
                note=(row.note or (f"TorchTPU lacks aten.{row.torch_tpu_needs}" if row.torch_tpu_needs else "")) if row else "",
            )
        )
    return tuple(sorted(ops, key=lambda op: (-op.count, op.name)))


def _dynamic(runs: list[_Run]) -> tuple[ScanDynamic, ...]:
    counts = _merged(runs, lambda run: Counter({key: len(sizes) for key, sizes in run.watch.dynamic.items()}))
    rows = []
    for (op, line), (count, either) in counts.items():
        sizes = dict.fromkeys(size for run in runs for size in run.watch.dynamic.get((op, line), ()) if size)
        rows.append(ScanDynamic(op, line, count, tuple(sizes)[:_LINES], either))
    return tuple(rows)
