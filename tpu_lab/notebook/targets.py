"""What TPU generations make of a cell or function: compiled for each target, shown side by side. Everything shown is predicted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, TpuLabError, one_of
from ..record.program import Program
from ..record.targets import TARGETS, Target, target_named
from ..views.graph import FusionGraph
from ..views.targets import TargetTable
from .progress import EVERY_S, told
from .state import is_hidden

if TYPE_CHECKING:
    from ..compiler.target import Lowered

ALL = "all"


def targets_named(words: Sequence[str]) -> tuple[Target, ...]:
    """The targets of `v6e`, `v5e,v6e` or `all`, each once. Raises OptionError."""
    names = [name for word in words for name in word.split(",") if name]
    if ALL in names:
        names = list(TARGETS)
    found = {(target.name, target.topology): target for target in map(target_named, names)}
    if not all(target.is_tpu for target in found.values()):
        raise OptionError("--target cpu is where cells run anyway", accepted=f"{one_of(TARGETS)} or {ALL}")
    return tuple(found.values())


def compare_targets(
    function: Any,
    *example: Any,
    targets: Sequence[str] = (ALL,),
    modes: Sequence[str] = ("compile", "eager"),
    effort: str = "quick",
    kwargs: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> TargetTable:
    """A module or function compiled for several TPU generations, side by side; `compile_for` says what the arguments mean.

    It is traced once. `progress` is called every two seconds of a compile with a line that says how far it is. Raises as `compile_for`.
    """
    from ..compiler.target import lower
    from ..xla.compile_service import require

    found = targets_named(targets)
    for target in found:
        require(target)
    lowered = lower(function, example, kwargs or {}, found[0], {})
    made = []
    for target in found:
        for mode in modes:
            with _told(lowered, target, mode, effort, progress) if progress else nullcontext():
                made.append(lowered.compile(target, mode, effort))
    return TargetTable(tuple(made))


class TargetedCell:
    """Notes the compiled graphs that a cell runs, and shows what targets make of them. Nothing happens without targets."""

    def __init__(self, targets: Sequence[Target], effort: str, shell: Any) -> None:
        self._targets, self._effort, self._shell = targets, effort, shell
        self._capture: Any = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Notes the graphs that run inside the block. Raises MissingPackageError, before the cell runs, if a target's compiler is missing."""
        if not self._targets:
            yield
            return
        from ..compiler.joined_calls import Capture
        from ..compiler.twins import memory_key, tensors_in
        from ..xla.compile_service import require

        for target in self._targets:
            require(target)
        self._capture = Capture(runs=True)
        with self._capture.on():
            yield
        held = {name: value for name, value in self._shell.user_ns.items() if not is_hidden(name)}
        self._capture.names.update({memory_key(tensor): label for tensor, label in tensors_in(held)})

    def show(self) -> None:
        """Compiles what was noted and displays it: quick answers as they come, and with the effort `full` the full ones when they are ready.

        A failure is one line: the cell itself has run.
        """
        if self._capture is None:
            return
        from ..compiler.target import lowered_capture

        shown = _Shown([(target, mode) for target in self._targets for mode in ("compile", "eager")])
        try:
            lowered = lowered_capture(self._capture, None, "cell", self._targets[0])
            for target, mode in sorted(shown.wanted, key=lambda one: one[1]):  # fused ones first
                with _told(lowered, target, mode, "quick", shown.say):
                    program = lowered.compile(target, mode, "quick")
                shown.add(program)
        except TpuLabError as error:
            print(f"tpu_lab: the cell has run; what targets make of it cannot be told: {error}")
            return
        if self._capture.repeats:
            print("a graph ran more than once: targets are given its first round")
        shown.end()
        if self._effort == "full":
            threading.Thread(target=shown.refine, args=(lowered,), name="tpu_lab targets", daemon=True).start()


def _told(lowered: Lowered, target: Target, mode: str, effort: str, say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Tells how far a compile is while the block runs."""
    from ..xla.compile_times import estimate

    name = f"{target.label}{'' if mode == 'compile' else ', op by op'}{', in full' if effort == 'full' else ''}"
    return told(name, estimate(lowered.job(target, mode, effort)), say)


class _Shown:
    """The table and the fusion graph below a cell: shown when the first programs are there, and again with each that takes its time."""

    def __init__(self, wanted: Sequence[tuple[Target, str]]) -> None:
        self.wanted = wanted
        self._programs: dict[tuple[str, str], Program] = {}
        self._table: Any = None
        self._graph: Any = None
        self._line: Any = None
        self._since = time.monotonic()

    def add(self, program: Program) -> None:
        """Takes in a program, in place of what was there for its target and mode."""
        self._programs[program.target.label, program.mode] = program
        if time.monotonic() - self._since > EVERY_S:
            self._show_table()

    def end(self) -> None:
        """Shows the table and the graph with all programs."""
        self._show_table()
        self._graph = _shown(self._graph, FusionGraph(self._all()))

    def say(self, line: str) -> None:
        """Shows a line in place of the one before."""
        self._line = _shown(self._line, _Line(line))

    def refine(self, lowered: Lowered) -> None:
        """Compiles in full what has a quick answer, one after the other."""
        for program in self._all():
            if program.mode != "compile" or program.outcome != "ok":
                continue
            try:
                with _told(lowered, program.target, program.mode, "full", self.say):
                    made = lowered.compile(program.target, program.mode, "full")
            except TpuLabError as error:
                print(f"tpu_lab: {program.target.label}: {error}")
                return
            self._programs[program.target.label, program.mode] = made
            self._show_table()
        self.end()

    def _all(self) -> tuple[Program, ...]:
        keys = [(target.label, mode) for target, mode in self.wanted]
        return tuple(self._programs[key] for key in keys if key in self._programs)

    def _show_table(self) -> None:
        self._since = time.monotonic()
        self._table = _shown(self._table, TargetTable(self._all()))


def _shown(handle: Any, what: Any) -> Any:
    """Displays something, or shows it in place of what the handle stands for; the handle (None outside a notebook)."""
    if handle is None:
        from IPython.display import display

        return display(what, display_id=True)  # type: ignore[no-untyped-call]
    handle.update(what)
    return handle


class _Line:
    """A line of text to display."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
