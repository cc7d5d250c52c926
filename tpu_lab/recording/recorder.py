"""The recorder: listens to the device while a block runs and makes a `Run` of it afterwards.

The hot path stores facts only (program, times, a code object and instruction, buffer numbers); names, lines, columns, memory
curve and totals are worked out when the run is asked for. An op call costs about a microsecond.
"""

from __future__ import annotations

import sys
import time
from _thread import get_ident
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from types import FrameType, TracebackType
from typing import Any

from ..compiler.events import BreakTold, GraphTold, RecompileTold, RegionTold
from ..device import events, memory
from ..device._torch_internals import autograd_node, graph_task, sequence_number
from ..device.events import BufferView, OpProgram
from ..record.run import Run
from .decode import decode
from .frames import CELL, CellText, cell_of_file, classify
from .happenings import Happenings
from .hot_path import buffer_listener, locator, op_listener, thread_stacks
from .module_paths import ModuleHooks, ModuleNames, ThreadStack
from .raw import ALLOCATED, FREED, NOWHERE, Places

MAX_OPS = 1_000_000


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
        self._told = bool(cells)
        self.events: list[Any] = []
        """In order; their form is told in `raw`."""
        self.programs: dict[OpProgram, int] = {}
        self.names = ModuleNames()
        self.happenings = Happenings()
        self.start_ns = self.end_ns = 0
        self.started = 0.0
        self.first_sequence = 0
        self.before = {buffer.id: buffer.nbytes for buffer in live}
        self.dropped_ops = 0
        self._room = max_ops
        self._attach = attach
        self._threads: dict[int, ThreadStack] = {}
        self._thread = thread_stacks(self._threads)
        self._backward_callers: dict[int, Places] = {}
        self._exit = ExitStack()
        self.allocated = buffer_listener(self.events, ALLOCATED, max_ops)
        self.freed = buffer_listener(self.events, FREED, max_ops)
        self._listen(None)

    def _listen(self, base: FrameType | None) -> None:
        """Makes the parts that look at frames; `base` is the frame no walk goes above."""
        self._locate = locator({}, self.cells, base, with_base=not self._told)
        self.op = op_listener(self.events, self.programs, self._threads, self._thread, self._locate, self._backward_caller, self._room, self._drop)

    def __enter__(self) -> Recorder:
        self._owner = get_ident()
        self._threads[self._owner] = ThreadStack(0)
        base = _nearest_own(sys._getframe(1), self.cells)
        if not self.cells and base is not None:
            self.cells = cell_of_file(base.f_code.co_filename)
        self._listen(base)
        self.first_sequence = sequence_number()
        self.started = time.time()
        hooks = ModuleHooks(self.names, self._thread, self._locate)
        hooks.install()
        self._exit.callback(hooks.remove)
        memory.settle()  # what died before the block is no part of it
        if self._attach:
            self._exit.enter_context(events.observe(self))
        self.start_ns = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        memory.settle()  # what died within the block is told within it
        self.end_ns = time.perf_counter_ns()
        self._exit.close()
        if error is not None and not self.happenings.has(error):
            self.happenings.failed("", error, _raised_at(trace, self.cells), len(self.events))
        self._threads.clear()
        self._backward_callers.clear()
        self._listen(None)  # lets the frames go

    @cached_property
    def run(self) -> Run:
        """The record of the block. Available after it ended."""
        run = decode(self)
        self.events.clear()
        self.programs.clear()
        return run

    def compiled(self, program: OpProgram, seconds: float, cache: str) -> None:
        self.happenings.compiled(program, int(seconds * 1e9), cache)

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None:
        places = self._here()
        if self._told and places is NOWHERE and get_ident() == self._owner:
            return  # whoever runs the cell waits for its end; the cell itself did not
        self.happenings.sync(reason, nbytes, start_ns, end_ns, places, len(self.events))

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int) -> None:
        self.happenings.fallback(op, reason, bytes_out, bytes_in, start_ns, end_ns, self._here())

    def failed(self, op: str, error: BaseException) -> None:
        self.happenings.failed(op, error, self._here(), len(self.events))

    def flushed(self, told: events.FlushTold) -> None:
        self.happenings.flush(told, self._here(), len(self.events))

    def graph_break(self, told: BreakTold) -> None:
        """torch.compile ended a graph at a line of a file (a cell: its compiled file name)."""
        self.happenings.graph_break(told)

    def recompile(self, told: RecompileTold) -> None:
        """A function was compiled again."""
        self.happenings.recompile(told)

    def graph(self, told: GraphTold) -> None:
        """A graph ran, or was made ready. Told after the breaks."""
        self.happenings.graph(told)

    def region(self, told: RegionTold) -> None:
        """Lines of the cell run together."""
        self.happenings.region(told)

    def _drop(self) -> None:
        self.dropped_ops += 1

    def _here(self) -> Places:
        places = self._locate(sys._getframe(2), self._thread())
        return places if places[0] is not None or autograd_node() is None else self._backward_caller()

    def _backward_caller(self) -> Places:
        """Who called backward: autograd's threads have no user frame, the thread that recorded the block waits in the call."""
        task = graph_task()
        places = self._backward_callers.get(task)
        if places is None:
            stack = self._threads.get(self._owner)
            places = self._locate(sys._current_frames().get(self._owner), stack) if stack is not None else NOWHERE
            self._backward_callers[task] = places
        return places


def _nearest_own(frame: FrameType | None, cells: Mapping[str, CellText]) -> FrameType | None:
    """The nearest frame that is the user's: it outlives the block, and no walk needs to look above it."""
    while frame is not None and not classify(frame.f_code.co_filename, cells):
        frame = frame.f_back
    return frame


def _raised_at(trace: TracebackType | None, cells: Mapping[str, CellText]) -> Places:
    """The innermost user and cell frames of a traceback."""
    places = NOWHERE
    while trace is not None:
        code = trace.tb_frame.f_code
        kind = classify(code.co_filename, cells)
        if kind == CELL:
            places = (code, trace.tb_lasti, code, trace.tb_lasti)
        elif kind:
            places = (code, trace.tb_lasti, *places[2:])
        trace = trace.tb_next
    return places
