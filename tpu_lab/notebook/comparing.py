"""`%%tpu compare`: the same cell in several modes from the same state, side by side.

The first listed mode runs last, so its results stay in the namespace; only its last run's output is shown. Every other run starts
from the state before the cell and leaves nothing behind. If the cell raises in the first mode, that exception comes out as
from a plain cell; if it raises in another mode only, the comparison says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from IPython.utils.capture import capture_output

from ..record.comparison import Difference
from ..record.run import Run
from .cell import Cell
from .cpu_twins import OnCpu, replace_by_twins
from .lab import Lab
from .modes import CPU, Mode, PreparedCell
from .options import CellOptions
from .outcome import Outcome, difference, lines_of, names_of, outcome
from .regions import assigned_before_read
from .session import Clock, Observed, conclude, surroundings
from .state import Snapshot, cannot_be_rewound

MOST_REPEATS = 15
"""Later runs of a mode when `--repeat` does not say."""
REPEAT_SECONDS = 8.0
"""No further later run is started when a mode's later runs took this long."""


@dataclass
class _Leg:
    mode: Mode
    prepared: PreparedCell
    clock: Clock
    observed: Observed
    outcome: Outcome = field(default_factory=dict)
    failure: str = ""

    @property
    def run(self) -> Run:
        return self.observed.run(self.clock.timing)


async def run_comparison(shell: Any, lab: Lab, options: CellOptions, cell: Cell, modes: Sequence[Mode]) -> None:
    """Runs a cell as `%%tpu compare` asks and shows the comparison. Raises what the cell raises in the first mode."""
    __tracebackhide__ = True
    comparison = _Comparison(shell, lab, options, cell)
    first, *others = modes
    try:
        legs = [await comparison.leg(mode) for mode in others]
        legs.insert(0, await comparison.leg(first, stays=True))
    finally:
        comparison.close()
    conclude(lab, options, lambda: _as_run(lab, legs, comparison.not_rewound, lines_of(cell)))


class _Comparison:
    """A cell, the state before it, and how a leg is run from there."""

    def __init__(self, shell: Any, lab: Lab, options: CellOptions, cell: Cell) -> None:
        self._shell, self._lab, self._options, self._cell = shell, lab, options, cell
        self._names = names_of(cell)
        self._before = Snapshot(shell.user_ns, lab)
        own = assigned_before_read(cell.nodes)
        self.not_rewound = tuple(n for n in self._names if n not in own and n in shell.user_ns and cannot_be_rewound(shell.user_ns[n]))
        """Names the cell uses whose values `restore` cannot put back."""

    def close(self) -> None:
        """Lets the state go."""
        self._before.close()

    async def leg(self, mode: Mode, stays: bool = False) -> _Leg:
        """Runs one mode. `stays`: its results stay in the namespace, its last run's output is shown, its exception comes out."""
        __tracebackhide__ = True
        lab, options = self._lab, self._options
        device = "cpu" if mode is CPU else options.device
        leg = _Leg(mode, PreparedCell(self._shell, lab, self._cell, mode, device), Clock(lab, device), Observed(lab, options, mode, self._cell))
        try:
            await self._first_run(leg, stays)
            await self._later_runs(leg, stays)
        except (Exception, SystemExit) as error:
            if stays:
                raise
            leg.failure = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        finally:
            if not stays:
                self._before.restore()
        return leg

    async def _first_run(self, leg: _Leg, stays: bool) -> None:
        """The recorded run. Its output is shown only where its exception comes out."""
        __tracebackhide__ = True
        with self._around(leg.mode):
            captured = capture_output()
            try:
                with captured as shown, leg.observed, leg.clock:
                    await leg.prepared.run(shown=False, blocking=leg.mode is not CPU, told=leg.observed.told)
            except BaseException:
                if stays:
                    shown.show()  # type: ignore[no-untyped-call]
                raise
            leg.outcome = outcome(self._names, self._shell.user_ns)

    async def _later_runs(self, leg: _Leg, stays: bool) -> None:
        """The runs that are only timed, each from the state before the cell."""
        __tracebackhide__ = True
        most, started = self._options.repeat or MOST_REPEATS, time.perf_counter()
        for done in range(most):
            self._before.restore()
            spent = time.perf_counter() - started
            last = done + 1 == most or (not self._options.repeat and spent + spent / max(done, 1) > REPEAT_SECONDS)
            with self._around(leg.mode, same_numbers=stays and last), ExitStack() as stack:
                if not (stays and last):
                    stack.enter_context(capture_output())
                with leg.clock:
                    value = await leg.prepared.run(shown=stays and last, blocking=False)
                sys.displayhook(value)
            if last:
                return

    @contextmanager
    def _around(self, mode: Mode, same_numbers: bool = True) -> Iterator[None]:
        """The surroundings of one run of a mode.

        `same_numbers` lets a CPU run draw the device's random numbers, which puts Python into every one of its operators:
        a run that is only timed goes without.
        """
        if mode is not CPU:
            with surroundings(self._lab, self._options):
                yield
            return
        replace_by_twins(self._before.reachable, self._shell.user_ns, self._options.device)
        with OnCpu(self._options.device), self._lab.replay_on_cpu() if same_numbers else nullcontext():
            yield


def _as_run(lab: Lab, legs: Sequence[_Leg], not_rewound: tuple[str, ...], lines: Mapping[str, int]) -> Run:
    """The first mode's run with the comparison in it; every leg's own run is kept too."""
    runs = {leg.mode.name: lab.keep(leg.run) for leg in legs}
    reference = next((leg for leg in legs if leg.mode is CPU and not leg.failure), legs[0])
    differences: dict[str, Difference] = {
        leg.mode.name: difference(leg.outcome, reference.outcome, lines) for leg in legs if leg is not reference and not leg.failure
    }
    failures = {leg.mode.name: leg.failure for leg in legs if leg.failure}
    for name, failure in failures.items():
        print(f"%%tpu compare: the cell raised in mode {name} only: {failure}", file=sys.stderr)
    first = runs[legs[0].mode.name]
    compared = replace(lab.compare(runs, reference.mode.name, differences, failures), not_rewound=not_rewound)
    return replace(first, id=f"{first.id}c", mode="compare", comparison=compared)
