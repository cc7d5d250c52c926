"""The raw form of a recording: one flat list of numbers and code objects, which the garbage collector need not look at.

Each event is appended by one `list.extend`, so events of several threads do not mix. They are told apart by the first item:

=============  ==============================================================================================
first item     what follows
=============  ==============================================================================================
program >= 0   start_ns, end_ns, user code, its instruction, cell code, its instruction, module, sequence, backward,
               thread, number of operands, number of results; then id and bytes of each operand and result
`ALLOCATED`    buffer id, bytes
`FREED`        buffer id, bytes
=============  ==============================================================================================

`sequence` is the autograd sequence number a forward op saw, `backward` that of the node a backward op belongs to; -1: the other kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

ALLOCATED = -1
FREED = -2
OP_ITEMS = 13
"""Items of an op before its buffers."""

Places = tuple[CodeType | None, int, CodeType | None, int]
"""The nearest user frame and the nearest frame of the recorded cell: code objects and the offsets of the running instructions."""

NOWHERE: Places = (None, 0, None, 0)


class RawOp(NamedTuple):
    """An op event, read back. Buffers are pairs of id and bytes."""

    program: int
    start_ns: int
    end_ns: int
    user: CodeType | None
    user_at: int
    cell: CodeType | None
    cell_at: int
    module: int
    sequence: int
    backward: int
    thread: int
    operands: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]


class RawBuffer(NamedTuple):
    """An allocation or a free, read back."""

    freed: bool
    id: int
    nbytes: int


def read(events: Sequence[Any]) -> Iterator[tuple[int, RawOp | RawBuffer]]:
    """The events with their positions in the list."""
    at, end = 0, len(events)
    while at < end:
        start, first = at, events[at]
        if first < 0:
            yield start, RawBuffer(first == FREED, events[at + 1], events[at + 2])
            at += 3
            continue
        inputs, outputs = events[at + 11], events[at + 12]
        at += OP_ITEMS
        numbers = events[at : at + 2 * (inputs + outputs)]
        at += len(numbers)
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        yield start, RawOp._make((*events[start : start + 11], pairs[:inputs], pairs[inputs:]))
