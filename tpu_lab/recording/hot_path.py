"""What runs at every op while recording: as few steps as possible, and nothing that the garbage collector has to follow.

Closures over local names instead of methods, numbers instead of objects; everything else waits until the recording is decoded.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Protocol

from ..device._torch_internals import autograd_node, sequence_number
from ..device.events import BufferView, OpProgram
from .frames import CELL, CellText, classify
from .module_paths import ThreadStack
from .raw import NOWHERE, Places


class Locate(Protocol):
    """Finds the user's places at or above a frame."""

    def __call__(self, frame: FrameType | None, stack: ThreadStack) -> Places: ...


class OpListener(Protocol):
    """`Observer.op`."""

    def __call__(self, program: OpProgram, start_ns: int, end_ns: int, inputs: Sequence[BufferView], outputs: Sequence[BufferView]) -> None: ...


class BufferListener(Protocol):
    """`Observer.allocated` and `Observer.freed`."""

    def __call__(self, buffer: BufferView) -> None: ...


def locator(kinds: dict[str, int], cells: Mapping[str, CellText], base: FrameType | None, with_base: bool) -> Locate:
    """A `Locate`. `kinds` caches what a file is; no walk goes above `base`, nor above the frame that runs the innermost module.

    `with_base` tells whether `base` is the user's own place, or only whoever runs the cell.
    """

    def locate(frame: FrameType | None, stack: ThreadStack) -> Places:
        anchor = stack.anchor
        user, user_at = None, 0
        while frame is not None:
            if frame is anchor:
                return stack.places if user is None else (user, user_at, stack.places[2], stack.places[3])
            if frame is base and not with_base:
                break
            code = frame.f_code
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = kinds[code.co_filename] = classify(code.co_filename, cells)
            if kind:
                if kind == CELL:
                    at = frame.f_lasti
                    return (code, at, code, at) if user is None else (user, user_at, code, at)
                if user is None:
                    user, user_at = code, frame.f_lasti
            if frame is base:
                break
            frame = frame.f_back
        return NOWHERE if user is None else (user, user_at, None, 0)

    return locate


def op_listener(
    events: list[Any],
    programs: dict[OpProgram, int],
    stacks: Mapping[int, ThreadStack],
    new_stack: Callable[[], ThreadStack],
    locate: Locate,
    caller: Callable[[], Places],
    room: int,
    full: Callable[[], None],
) -> OpListener:
    """Appends op events to `events`.

    `stacks` are those of known threads, `new_stack` makes the calling thread's. `caller` says who called backward, for threads
    without user frames; `full` hears of ops beyond `room`.
    """
    append, known, stack_of = events.extend, programs.get, stacks.get
    left = room

    def op(program: OpProgram, start_ns: int, end_ns: int, inputs: Sequence[BufferView], outputs: Sequence[BufferView]) -> None:
        nonlocal left
        if left <= 0:
            full()
            return
        left -= 1
        stack = stack_of(get_ident()) or new_stack()
        node = autograd_node()
        if node is None:
            user, user_at, cell, cell_at = locate(sys._getframe(2), stack)  # 1 is the device's own
            sequence, backward = sequence_number() - 1, -1
        else:
            user, user_at, cell, cell_at = locate(sys._getframe(1), stack)
            sequence, backward = -1, node._sequence_nr()
            if user is None:
                user, user_at, cell, cell_at = caller()
        index = known(program)
        if index is None:
            index = programs[program] = len(programs)
        if len(inputs) == 2 and len(outputs) == 1:  # most calls, without a loop
            (a, b), (c,) = inputs, outputs
            pairs: tuple[int, ...] = (a.id, a.nbytes, b.id, b.nbytes, c.id, c.nbytes)
        else:
            pairs = tuple([number for buffer in (*inputs, *outputs) for number in (buffer.id, buffer.nbytes)])
        row = (index, start_ns, end_ns, user, user_at, cell, cell_at, stack.module, sequence, backward, stack.index, len(inputs), len(outputs))
        append(row + pairs)

    return op


def buffer_listener(events: list[Any], kind: int, room: int) -> BufferListener:
    """Appends allocations or frees to `events` (`kind`: `raw.ALLOCATED` or `raw.FREED`); none once it is as long as `room` ops make it."""
    append = events.extend
    limit = room * 40

    def listen(buffer: BufferView) -> None:
        if len(events) < limit:
            append((kind, buffer.id, buffer.nbytes))

    return listen


def thread_stacks(known: dict[int, ThreadStack]) -> Callable[[], ThreadStack]:
    """The calling thread's stack; made at the first call of a thread."""
    find = known.get

    def stack() -> ThreadStack:
        return find(get_ident()) or known.setdefault(get_ident(), ThreadStack(len(known)))

    return stack
