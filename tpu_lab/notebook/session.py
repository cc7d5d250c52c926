"""One `%%tpu` cell from start to end: mode, default device, recording, timing, display, saving."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ..record.run import Run
from ..record.timing import Timing
from ..recording.compile_watch import CompileWatch
from .cell import Cell
from .default_device import DefaultDevice
from .lab import Lab, Recording
from .modes import Mode, PreparedCell
from .options import CellOptions
from .targets import TargetedCell, targets_named
from .warned import at_users_lines


async def run_cell(shell: Any, lab: Lab, options: CellOptions, cell: Cell, mode: Mode) -> None:
    """Runs a cell in one mode and shows its run. The cell's own exception comes out, after what was recorded until then is shown.

    With `--repeat N` the first run is recorded, the later ones are only timed, and the last one shows the cell's last value.
    """
    __tracebackhide__ = True
    prepared = PreparedCell(shell, lab, cell, mode, options.device)
    clock, observed = Clock(lab, options.device), Observed(lab, options, mode, cell)
    targeted = TargetedCell(targets_named(options.targets), options.effort, shell)
    try:
        with surroundings(lab, options):
            with targeted.watching(), observed, clock:
                value = await prepared.run(shown=options.repeat == 1, blocking=observed.recording, told=observed.told)
            for left in reversed(range(options.repeat - 1)):
                with clock:
                    value = await prepared.run(shown=left == 0, blocking=False)
            sys.displayhook(value)
    finally:
        if observed.recording:
            conclude(lab, options, lambda: observed.run(clock.timing))
        elif options.repeat > 1 and clock.timing is not None and not options.quiet:
            print(timing_line(clock.timing))
    targeted.show()


@contextmanager
def surroundings(lab: Lab, options: CellOptions) -> Iterator[None]:
    """What the options ask for around a cell, whatever its mode."""
    with ExitStack() as stack:
        stack.enter_context(lab.precision(options.precision))
        if options.default_device:
            stack.enter_context(at_users_lines())
            stack.enter_context(DefaultDevice(options.device))
        yield


class Clock:
    """Wall times of the runs of a cell: each `with` block is one run and ends when the device is done."""

    def __init__(self, lab: Lab, device: str) -> None:
        self._lab = lab
        self._device = device
        self._times: list[int] = []
        self._start = 0

    def __enter__(self) -> Clock:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._lab.synchronize(self._device)
            self._times.append(time.perf_counter_ns() - self._start)

    @property
    def timing(self) -> Timing | None:
        """The times so far; None before the first run has ended."""
        return Timing(self._times[0], tuple(self._times[1:])) if self._times else None


class Observed:
    """Records a `with` block unless `--trace off`."""

    def __init__(self, lab: Lab, options: CellOptions, mode: Mode, cell: Cell) -> None:
        self.recording = options.trace != "off"
        self.told: Any = None
        """Who hears of graph breaks; None without recording."""
        self._recorder: Recording | None = None
        self._exit = ExitStack()
        if self.recording:
            device = "cpu" if mode.name == "cpu" else options.device
            self._recorder, self.told = lab.recording(mode.name, device, options.name, cell)

    def __enter__(self) -> Observed:
        with ExitStack() as stack:
            if self._recorder is not None:
                stack.enter_context(self._recorder)
                stack.enter_context(CompileWatch(self.told))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._exit.__exit__(*exception)

    def run(self, timing: Timing | None) -> Run:
        """The record of the block, with the times of all runs of the cell."""
        assert self._recorder is not None
        run = self._recorder.run
        return replace(run, timing=timing) if timing is not None else run


def conclude(lab: Lab, options: CellOptions, make: Any) -> None:
    """Keeps, saves and shows a run. A failure here is one line: the cell has run, and its own exception must not be covered."""
    try:
        run = lab.keep(make())
        if options.save is not None:
            run.save(options.save)
        if not options.quiet:
            lab.show(run)
    except Exception as error:
        print(f"tpu_lab: the cell has run, but its record could not be kept or shown ({type(error).__name__}: {error})", file=sys.stderr)


def timing_line(timing: Timing) -> str:
    """The spread of repeated runs as one line of text."""
    seconds = [ns / 1e9 for ns in (timing.first_ns, timing.low_ns, timing.steady_ns, timing.high_ns)]
    first, low, median, high = map(_seconds, seconds)
    return f"first run {first}; {timing.repeats} more: min {low}, median {median}, max {high}"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
