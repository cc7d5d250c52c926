"""The recorder: listens to the device while a block runs and makes a `Run` of it afterwards.

The hot path stores facts only (program, times, a code object and instruction, buffer numbers); names, lines, columns, memory
curve and totals are worked out when the run is asked for. An op call costs one to two microseconds.
"""

from __future__ import annotations

import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from types import FrameType, TracebackType
from typing import Any

import torch

from ..device import events
from ..device.events import BufferView, OpProgram
from ..record.run import Run
from .decode import decode
from .frames import CELL, CellText, Place, cell_of_file, classify
from .happenings import Happenings
from .module_paths import ModuleHooks, ModuleNames, ThreadStack
from .raw import ALLOCATED, FREED, Places

MAX_OPS = 1_000_000

_sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_autograd_node: Callable[[], Any] = torch._C._current_autograd_node
_graph_task: Callable[[], int] = torch._C._current_graph_task_id


class Recorder:
    """Records what the device does inside a `with` block; afterwards `run` is the record.

    `cells` maps file names of compiled notebook cells to their text (without it, the cell that opens the block is taken).
    `live` are buffers alive at the start, for exact memory (others are found when the block touches them). `blocking` makes the
    device wait for each op, so that times and errors belong to it. Of more than `max_ops` ops only the totals are kept.
    `attach=False` leaves the device's observer slot alone: somebody else calls the methods.
    """

    def __init__(
        self,
        *,
        mode: str = "eager",
        name: str = "",
        device: str = "tpu",
        target: str = "XLA:CPU",
        cells: Mapping[str, CellText] | None = None,
        blocking: bool = True,
        live: Iterable[BufferView] = (),
        max_ops: int = MAX_OPS,
        attach: bool = True,
    ) -> None:
        self.mode, self.name, self.device, self.target = mode, name, device, target
        self.blocking = blocking
        self.cells: Mapping[str, CellText] = cells or {}
        self.events: list[Any] = []
        """In order; their form is told in `raw`."""
        self.programs: list[OpProgram] = []
        self.names = ModuleNames()
        self.happenings = Happenings()
        self.start_ns = self.end_ns = 0
        self.started = 0.0
        self.first_sequence = 0
        self.before = {buffer.id: buffer.nbytes for buffer in live}
        self.dropped_ops = 0
        self._room = max_ops
        self._attach = attach
        self._sizes = dict(self.before)
        self._program_index: dict[OpProgram, int] = {}
        self._kinds: dict[str, int] = {}
        self._threads: dict[int, ThreadStack] = {}
        self._base: FrameType | None = None
        self._backward_callers: dict[int, Places] = {}
        self._hooks = ModuleHooks(self.names, self._thread, self._locate)
        self._exit = ExitStack()

    def __enter__(self) -> Recorder:
        self._threads[get_ident()] = ThreadStack(0)
        self._base = self._nearest_own(sys._getframe(1))
        if not self.cells and self._base is not None:
            self.cells = cell_of_file(self._base.f_code.co_filename)
            self._kinds.clear()
        self._owner = get_ident()
        self.first_sequence = _sequence_number()
        self.started = time.time()
        self._hooks.install()
        self._exit.callback(self._hooks.remove)
        if self._attach:
            self._exit.enter_context(events.observe(self))
        self.start_ns = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end_ns = time.perf_counter_ns()
        self._exit.close()
        if error is not None and not self.happenings.has(error):
            self.happenings.failed("", error, _raised_at(trace, self._kind), len(self.events))
        self._base = None
        self._threads.clear()
        self._backward_callers.clear()
        self._sizes.clear()

    @cached_property
    def run(self) -> Run:
        """The record of the block. Available after it ended."""
        run = decode(self)
        self.events = []
        return run

    def op(self, program: OpProgram, start_ns: int, end_ns: int, inputs: Sequence[BufferView], outputs: Sequence[BufferView]) -> None:
        stack = self._threads.get(get_ident()) or self._new_thread()
        user, cell = self._locate(sys._getframe(1), stack)
        node = _autograd_node()
        if node is None:
            sequence, backward = _sequence_number() - 1, -1
        else:
            sequence, backward = -1, node._sequence_nr()
            if user is None:
                user, cell = self._backward_caller()
        sizes = self._sizes
        if self._room <= 0:
            self.dropped_ops += 1
            return
        self._room -= 1
        for buffer in inputs:
            if sizes.get(buffer.id) != buffer.nbytes:
                self._resized(buffer)
        for buffer in outputs:
            if sizes.get(buffer.id) != buffer.nbytes:
                self._resized(buffer)
        reads, writes = tuple([b.id for b in inputs]), tuple([b.id for b in outputs])
        # only numbers and code objects in the tuple: the garbage collector stops tracking it, so long recordings stay fast
        self.events.append((self._program(program), start_ns, end_ns, user, cell, stack.module, sequence, backward, stack.index, reads, writes))

    def allocated(self, buffer: BufferView) -> None:
        number, nbytes = buffer.id, buffer.nbytes
        self._sizes[number] = nbytes
        if self._room > 0:
            self.events.append((ALLOCATED, number, nbytes))

    def freed(self, buffer: BufferView) -> None:
        number = buffer.id
        self._sizes.pop(number, None)
        if self._room > 0:
            self.events.append((FREED, number, buffer.nbytes))

    def compiled(self, program: OpProgram, seconds: float, cache: str) -> None:
        self.happenings.compiled(program, int(seconds * 1e9), cache)

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None:
        self.happenings.sync(reason, nbytes, start_ns, end_ns, self._here(), len(self.events))

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int) -> None:
        self.happenings.fallback(op, reason, bytes_out, bytes_in, start_ns, end_ns, self._here())

    def failed(self, op: str, error: BaseException) -> None:
        self.happenings.failed(op, error, self._here(), len(self.events))

    def graph_break(self, message: str, filename: str = "", line: int = 0, reason: str = "") -> None:
        """torch.compile ended a graph at a line of a file (a cell: its compiled file name).

        `reason` is an id of `BreakReason`; empty: read from `message`.
        """
        self.happenings.graph_break(message, filename, line, reason)

    def recompile(self, message: str, function: str = "", filename: str = "", line: int = 0, seconds: float = 0.0, reason: str = "") -> None:
        """A program was compiled again. `message` is the failed guard; `reason` an id of `RecompileReason`, empty: read from it."""
        self.happenings.recompile(message, function, filename, line, int(seconds * 1e9), reason)

    def _program(self, program: OpProgram) -> int:
        index = self._program_index.get(program, -1)
        if index < 0:
            index = self._program_index[program] = len(self.programs)
            self.programs.append(program)
        return index

    def _resized(self, buffer: BufferView) -> None:
        """A buffer that nobody announced, or whose size changed."""
        number, nbytes = buffer.id, buffer.nbytes
        if number in self._sizes:
            self.events.append((ALLOCATED, number, nbytes))
        else:
            self.before[number] = nbytes
        self._sizes[number] = nbytes

    def _thread(self) -> ThreadStack:
        return self._threads.get(get_ident()) or self._new_thread()

    def _new_thread(self) -> ThreadStack:
        return self._threads.setdefault(get_ident(), ThreadStack(len(self._threads)))

    def _kind(self, filename: str) -> int:
        kind = self._kinds.get(filename)
        if kind is None:
            kind = self._kinds[filename] = classify(filename, self.cells)
        return kind

    def _locate(self, frame: FrameType | None, stack: ThreadStack) -> Places:
        """The nearest user frame and the nearest frame of the cell, at or above `frame`."""
        kinds, anchor, base = self._kinds, stack.anchor, self._base
        user: Place | None = None
        while frame is not None:
            if frame is anchor:
                return (user or stack.user), stack.cell
            code = frame.f_code
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = self._kind(code.co_filename)
            if kind:
                place = (code, frame.f_lasti)
                if kind == CELL:
                    return (user or place), place
                if user is None:
                    user = place
            if frame is base:
                return user, None
            frame = frame.f_back
        return user, None

    def _here(self) -> Places:
        stack = self._thread()
        places = self._locate(sys._getframe(2), stack)
        return places if places[0] is not None or _autograd_node() is None else self._backward_caller()

    def _backward_caller(self) -> Places:
        """Who called backward: autograd's threads have no user frame, the thread that recorded the block waits in the call."""
        task = _graph_task()
        places = self._backward_callers.get(task)
        if places is None:
            frame = sys._current_frames().get(self._owner)
            stack = self._threads.get(self._owner)
            places = self._locate(frame, stack) if stack is not None else (None, None)
            self._backward_callers[task] = places
        return places

    def _nearest_own(self, frame: FrameType | None) -> FrameType | None:
        """The nearest frame that is the user's: no walk needs to look above it, it outlives the block."""
        while frame is not None and not self._kind(frame.f_code.co_filename):
            frame = frame.f_back
        return frame


def _raised_at(trace: TracebackType | None, kind_of: Any) -> Places:
    """The innermost user and cell frames of a traceback."""
    user: Place | None = None
    cell: Place | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        kind = kind_of(code.co_filename)
        if kind:
            user = (code, trace.tb_lasti)
            if kind == CELL:
                cell = user
        trace = trace.tb_next
    return user, cell
