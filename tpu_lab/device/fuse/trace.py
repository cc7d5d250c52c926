"""Traces: the calls between two cuts, how their arrays are wired, and which of them are still to run.

Every buffer that a trace met carries a *label* `(trace, slot)`: slots from 0 are results of its calls in their order, `~0`,
`~1`, … are the arrays that were there before. A write gives the buffer a new slot, so that a chain of in-place operators is
a chain of values. What a cluster is known by is each call's program and the slots it reads; nothing of a label survives its
trace. While a trace is *deferring*, a label with a result slot on a buffer without an array is a promise.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import torch

from .. import _torch_internals as internals
from .. import memory, state, tensors
from ..memory import Buffer, DeferredBuffer

if TYPE_CHECKING:
    from ..program import FreshResult
    from ..strict import Entry

lock = threading.RLock()
"""Held while a call is deferred and while a trace is finished: threads share one trace."""

Label = tuple["Trace", int]
Step = tuple[Any, ...]
"""A call as part of a cluster's key: its program, then the slots it reads."""


_MOST_PLACES = 16


class Node:
    """The calls from the start of a trace up to one call: a node of the tree of all clusters that have programs.

    `first` is the slot of the call's first result, `count` the number of slots up to here, `programs` what was compiled for a
    cluster that ends here, by its live results and donated arrays. `single` is a call's only result if it is row-major and the call
    checks no values, else None. `lines` says where the call stands in the user's code, by where the first call of its trace does
    (`file:line` both): looking for a line at each call would cost a third of recording it.
    """

    __slots__ = ("count", "depth", "entry", "first", "lines", "next", "programs", "single", "step")

    def __init__(self, step: Step, before: Node | None) -> None:
        self.step = step
        self.entry: Any = step[0] if step else None
        self.depth: int = before.depth + 1 if before is not None else 0
        self.first: int = before.count if before is not None else 0
        self.count: int = self.first + (results_of(step[0]) if step else 0)
        self.next: dict[Step, Node] = {}
        self.programs: dict[Any, Any] = {}
        self.lines: dict[str, str] = {}
        self.single: FreshResult | None = _single(step[0]) if step else None

    def note_line(self, place: str) -> None:
        """Notes the user's line, for a trace whose first call stands at `place`."""
        if len(self.lines) >= _MOST_PLACES:
            self.lines.clear()
        self.lines[place] = memory.user_line()


def _single(entry: Entry) -> FreshResult | None:
    fresh = entry.fresh[0] if len(entry.fresh) == 1 and not entry.checked and not entry.written else None
    return None if fresh is None or fresh.stride is not None else fresh


def results_of(entry: Entry) -> int:
    """How many arrays a program gives back."""
    return len(entry.handlers)


class Trace:
    """The calls since the last cut. `log` holds (node, run-time inputs) of each deferred call, `steps` the others.

    `place` is where the first deferred call stands (`file:line`); `lines` where each call does, if somebody wants to know.
    """

    __slots__ = (
        "arrays",
        "bytes",
        "captured",
        "checks",
        "count",
        "deferring",
        "externals",
        "lines",
        "log",
        "node",
        "offsets",
        "origins",
        "owners",
        "place",
        "start",
        "steps",
        "values",
        "work",
    )

    def __init__(self, root: Node) -> None:
        self.node = root
        self.deferring = bool(root.next)
        self.log: list[tuple[Node, list[Any]]] = []
        self.steps: list[Step] = []
        self.offsets: list[Any] = []
        self.count = 0
        self.externals = 0
        self.arrays: list[Any] = []
        self.captured: list[tuple[Any, Label]] = []
        self.owners: list[tuple[Any, Label]] = []
        self.origins: dict[int, int] = {}
        self.checks: list[tuple[int, str, str]] = []
        self.values: list[Any] = []
        self.bytes = 0
        self.start = 0
        self.place = ""
        self.lines: list[str] | None = None
        self.work: float = 0.0

    def __len__(self) -> int:
        return len(self.log) + len(self.steps)

    def may_defer(self, root: Node) -> bool:
        """Begins to defer at the first call of the trace, if there are clusters by now."""
        if self.steps or self.externals or not root.next:
            return False
        self.deferring = True
        return True

    def outside(self, buffer: Buffer) -> int:
        """The slot of a buffer that was there before the trace."""
        slot = ~self.externals
        self.externals += 1
        self.origins[buffer.id] = slot
        buffer.label = (self, slot)
        return slot

    def capture(self, buffer: Buffer) -> int:
        """The same, and the trace holds its array: nobody may give that to a program to overwrite."""
        array = tensors.array_of(buffer)
        slot = self.outside(buffer)
        self.arrays.append(array)
        if not buffer.shared:
            buffer.shared = memory.CAPTURED
            self.captured.append((buffer.death, buffer.label))
        return slot

    def live(self) -> list[tuple[Buffer, int]]:
        """The buffers that show a result of the trace, with its slot; last those whose result replaces an array, in these arrays' order.

        So each of these arrays is taken over by its own result (see `_jax_internals._aliases`).
        """
        found: list[tuple[Buffer, int]] = []
        replacing: list[tuple[Buffer, int]] = []
        for death, label in self.owners:
            buffer = death()
            if buffer is not None and buffer.label is label:
                (replacing if self._replaces(buffer) else found).append((buffer, label[1]))
        return found + sorted(replacing, key=lambda pair: ~self.origins[pair[0].id])

    def _replaces(self, buffer: Buffer) -> bool:
        return buffer.id in self.origins and buffer.shared is not True

    def all_offsets(self) -> list[Any]:
        """The storage offsets of the calls, as the arrays they were passed as, in order."""
        deferred = [inputs[i] for node, inputs in self.log for i in node.entry.offsets]
        return deferred + self.offsets

    def variant(self, live: Sequence[tuple[Buffer, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What of a cluster's key is known at the cut: the slots of live results, and the places of arrays that these replace."""
        return tuple(slot for _, slot in live), tuple(~self.origins[b.id] for b, _ in live if self._replaces(b))

    def release(self) -> None:
        """Lets go of captured arrays, which may be overwritten from now on; what was promised has arrived or is not wanted any more."""
        self.unpromise()
        for death, label in self.captured:
            buffer = death()
            if buffer is not None and buffer.shared == memory.CAPTURED and (buffer.label is label or buffer.label is None or buffer.label[0] is self):
                buffer.shared = False
        self.captured.clear()
        self.arrays.clear()

    def unpromise(self) -> None:
        """Takes what is promised off the books: it has arrived, or may never come."""
        memory.ledger.promised -= self.bytes
        self.bytes = 0

    def close(self) -> None:
        """Forgets everything; labels on buffers mean nothing any more."""
        self.release()
        self.deferring = False
        for part in (self.log, self.steps, self.offsets, self.owners, self.checks, self.values):
            part.clear()
        self.origins.clear()


def step_key(trace: Trace, entry: Entry, buffers: Sequence[Buffer]) -> Step:
    """A call as part of the key of a trace that defers."""
    step: list[Any] = [entry]
    for buffer in buffers:
        label = buffer.label
        step.append(label[1] if label is not None and label[0] is trace else trace.capture(buffer))
    return tuple(step)


_set_array = vars(Buffer)["array"].__set__
_exhaust = deque[None](maxlen=0).extend


def promise(trace: Trace, node: Node, inputs: list[Any], targets: Sequence[Buffer], line: tuple[str, str] | None) -> list[torch.Tensor | None]:
    """Defers a call: makes its result tensors, and the targets' new contents, promises of the trace.

    What counts for an interrupt is the order: the call is in the log before a promise is made, and targets lose their arrays in one step.
    """
    entry = node.entry
    if targets and state.journals:
        for buffer in targets:
            state.about_to_write(buffer)
    _log(trace, node, inputs)
    slot = node.first
    results: list[torch.Tensor | None] = []
    for fresh in entry.fresh:
        if fresh is None:
            results.append(None)
            continue
        results.append(promised(trace, slot, fresh))
        slot += 1
    if targets:
        for buffer in targets:
            label = (trace, slot)
            trace.owners.append((buffer.death, label))
            if label[1] >= 0:
                buffer.label = label
            slot += 1
        _exhaust(map(_set_array, targets, repeat(None)))
    if line is not None:
        trace.checks.append((slot, *line))
    return results


def _log(trace: Trace, node: Node, inputs: list[Any]) -> None:
    trace.node = node
    if not trace.log:
        trace.place = memory.user_line()
    if trace.place not in node.lines:
        node.note_line(trace.place)
    if trace.lines is not None:
        trace.lines.append(memory.user_line())
    trace.log.append((node, inputs))
    nbytes = node.entry.bytes
    trace.bytes += nbytes
    memory.ledger.promised += nbytes


def promise_single(trace: Trace, node: Node, fresh: FreshResult, inputs: list[Any]) -> torch.Tensor:
    """The same for a call whose only result is row-major and that neither writes nor checks."""
    _log(trace, node, inputs)
    tensor = internals.create_empty_tensor(fresh.size, fresh.dtype)
    label = (trace, node.first)
    buffer = tensor.untyped_storage().buffer = DeferredBuffer(fresh.layout, label)  # type: ignore[attr-defined]
    trace.owners.append((buffer.death, label))
    return tensor


def promised(trace: Trace, slot: int, fresh: FreshResult) -> torch.Tensor:
    """A tensor whose contents the trace will make."""
    tensor = internals.create_empty_tensor(fresh.size, fresh.dtype)
    storage: Any = tensor.untyped_storage()
    label = (trace, slot)
    buffer = storage.buffer = DeferredBuffer(fresh.layout, label)
    trace.owners.append((buffer.death, label))
    if fresh.stride is not None:
        internals.point_at(tensor, storage, 0, fresh.size, fresh.stride)
        buffer.sized = True
    return tensor
