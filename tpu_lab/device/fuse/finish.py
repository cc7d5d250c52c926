"""Cuts: the end of a trace, and what becomes of its promises."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, compress, islice
from typing import Any

from ...xla._jax_internals import XlaRuntimeError
from .. import checks, events, faults, forks, memory, modes, program_cache, tensors
from ..memory import Buffer
from . import artifacts, clusters, governor
from .differences import difference
from .loops import GRAPH_LIMIT
from .pace import Pace
from .program import FusedProgram
from .trace import Step, Trace, lock

_set_array = vars(Buffer)["array"].__set__
_exhaust = deque[None](maxlen=0).extend


class _Current:
    """The trace that calls are added to."""

    __slots__ = ("adrift", "limit", "pace", "patience", "trace")

    def __init__(self) -> None:
        self.limit = GRAPH_LIMIT
        self.adrift = False  # since a cut that will not come back: what begins here will not either
        self.patience = governor.Patience()
        self.pace = Pace()
        self.trace = fresh()


def fresh() -> Trace:
    """An empty trace."""
    made = Trace(clusters.root)
    if clusters.forced():
        made.deferring = True
    if artifacts.wanted():
        made.lines = []
    return made


current = _Current()


def cut(reason: str, passing: bool = False) -> None:
    """Ends the current trace: runs what is deferred. Does nothing where nothing was called since the last cut.

    `passing`: the next turn of the loop will not be cut here, so that the cluster is not counted.
    """
    if not len(current.trace):
        return
    forks.raise_in_child()
    with lock:
        ended = current.trace
        current.trace = fresh()
        adrift, current.adrift = current.adrift, passing or (current.adrift and reason == "graph_limit")
        finish(ended, reason, passing or adrift)


def read(reason: str, buffers: Iterable[Buffer]) -> None:
    """The host is about to read buffers: ends the trace that has to do with them, and counts the turn."""
    if any(involved(b) for b in buffers):
        cut(reason)
    if clusters.policy == "tiered" and events.observer is None:
        current.pace.read()


def before_host_kernel(buffers: Iterable[Buffer], shapes: int) -> None:
    """A kernel of the host is about to read buffers. Unless its shapes keep changing it gets a program soon, and then nothing is cut here."""
    if any(involved(b) for b in buffers):
        cut("cpu", passing=shapes < governor.rules.shapes)


def materialize(buffer: Buffer) -> None:
    """Has a buffer without an array get the one that a trace promised; one without a promise stays as it is."""
    label = buffer.label
    if label is None or label[1] < 0:
        return
    forks.raise_in_child()
    with lock:
        promised = label[0]
        if promised is current.trace:
            cut("unknown")
        else:  # its end was interrupted or failed
            finish(promised, "unknown")


def involved(buffer: Buffer) -> bool:
    """True if the current trace has to end before the host reads a buffer."""
    label = buffer.label
    ended = current.trace
    return bool(ended.checks) or (label is not None and label[1] >= 0 and (label[0] is ended or buffer.array is None))


def finish(ended: Trace, reason: str, passing: bool = False) -> None:
    """Fulfils a trace's promises and closes it. What an interrupt or an error leaves can be finished later."""
    live = ended.live()
    variant = ended.variant(live)
    steps = [*(node.step for node, _ in ended.log), *ended.steps]
    observer = artifacts.beside(events.observer, ended, steps, variant[0])
    start = time.perf_counter_ns() if observer is not None else 0
    state = clusters.state(steps, variant) if observer is not None else ""
    if not ended.deferring:
        hopeless = passing or clusters.sighted(steps, variant, ended.all_offsets())
        if current.patience.look(hopeless, reason) and observer is None:
            modes.rest(governor.REST_READS)
        start = 0
    elif live or ended.checks:
        current.patience.look(False, reason)
        state = _run(ended, steps, live, variant, passing) or state
    if observer is not None:
        _tell(observer, reason, state, steps, len(live), start)
    ended.close()


def _run(ended: Trace, steps: list[Step], live: Sequence[tuple[Buffer, int]], variant: Any, passing: bool) -> str:
    """Runs deferred calls; gives `fused` if they ran as one program."""
    node = ended.log[-1][0]
    whole = node.depth == len(steps)
    offsets = ended.all_offsets()
    program = clusters.program_for(node, steps, variant, offsets) if whole and not ended.values else None
    if program is not None:
        run_fused(ended, program, [b for b, _ in live])
        return "fused"
    if whole and not passing:
        clusters.sighted(steps, variant, offsets)
    replay(ended)
    return ""


def _tell(observer: events.Observer, reason: str, state: str, steps: list[Step], live: int, start: int) -> None:
    end = time.perf_counter_ns()
    differs = difference(clusters.root, steps) if state != "fused" else ("", "")
    observer.flushed(events.FlushTold(reason, state, len(steps), live, start or end, end, *differs))


def give_up(ended: Trace) -> None:
    """What was deferred turned out to be no known cluster: runs it call by call. Further calls run at once."""
    if ended.log:
        replay(ended)
    ended.count = ended.log[-1][0].count if ended.log else 0
    ended.deferring = False
    ended.release()


def run_fused(ended: Trace, program: FusedProgram, buffers: list[Buffer]) -> None:
    """Runs a cluster's program and gives the live buffers their arrays; see `strict.run_and_write` for the order of things."""
    inputs = chain.from_iterable(inputs for _, inputs in ended.log)
    arrays = [*ended.arrays, *(inputs if program.passed is None else compress(inputs, program.passed))]
    done: list[list[Any]] = []
    stored = map(_set_array, buffers, chain.from_iterable(done))
    try:
        program.executable.run_into(done, arrays)
    except XlaRuntimeError:
        if any(array.is_deleted() for array in ended.arrays):
            raise
        replay(ended)  # finds the call that fails
        return
    finally:
        _exhaust(stored)
    for buffer in buffers:
        memory.arrived(buffer)
        buffer.shared = False
    program.last = program_cache.tick()
    for (_, op, line), flag in zip(ended.checks, islice(done[0], len(buffers), None), strict=True):
        checks.defer(flag, op, line)


def replay(ended: Trace) -> None:
    """Runs the deferred calls one by one with their strict programs. Starts again where it was interrupted."""
    last = _last_uses(ended)
    values = ended.values
    arrays = ended.arrays
    for at, (node, inputs) in enumerate(ended.log):
        entry, slots = node.entry, node.step[1:]
        if len(values) < node.count:
            operands = [values[s] if s >= 0 else arrays[~s] for s in slots]
            for i in entry.donated:
                place = entry.needed.index(i)
                if last[slots[place]] > at:
                    operands[place] = tensors.copied(operands[place])
            try:
                values.extend(chain.from_iterable(map(entry.consume, map(entry.execute, ([*operands, *inputs],)))))
            except XlaRuntimeError as error:
                ended.unpromise()
                raise faults.of_deferred(error, entry.info, node.lines.get(ended.place, "")) from None
            entry.last = program_cache.tick()
        for slot in slots:
            if slot >= 0 and last[slot] == at:
                values[slot] = None
    found = ended.live()
    _exhaust(map(_set_array, [b for b, _ in found], [values[s] for _, s in found]))
    for buffer, _ in found:
        memory.arrived(buffer)
        buffer.shared = False
    for slot, op, line in ended.checks:
        checks.defer(values[slot], op, line)
    ended.checks.clear()


def _last_uses(ended: Trace) -> dict[int, float]:
    """The last call that reads each slot; for ever where it is to stay: live results, checks, and arrays that a buffer outside still shows."""
    last: dict[int, float] = {}
    for at, (node, _) in enumerate(ended.log):
        for slot in node.step[1:]:
            last[slot] = at
    live = ended.live()
    _, donated = ended.variant(live)
    for slot in range(ended.externals):
        if slot not in donated:
            last[~slot] = float("inf")
    for _, slot in live:
        last[slot] = float("inf")
    for slot, _, _ in ended.checks:
        last[slot] = float("inf")
    return last
