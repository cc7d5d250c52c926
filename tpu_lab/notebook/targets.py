"""What TPU generations make of a cell or function: compiled for each target, shown side by side. Everything shown is predicted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import OptionError, TpuLabError, one_of
from ..record.program import Program
from ..record.targets import TARGETS, Target, target_named
from ..views.graph import FusionGraph
from ..views.targets import TargetTable
from .state import is_hidden

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
) -> TargetTable:
    """A module or function compiled for several TPU generations, side by side; `compile_for` says what the arguments mean.

    It is traced once. Raises as `compile_for`.
    """
    from ..compiler.target import lower
    from ..xla.compile_service import require

    found = targets_named(targets)
    for target in found:
        require(target)
    lowered = lower(function, example, kwargs or {}, found[0], {})
    return TargetTable(tuple(lowered.compile(target, mode, effort) for target in found for mode in modes))


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
        """Compiles what was noted and displays it: the quick answer, and with the effort `full` the full one when it is ready.

        A failure is one line: the cell itself has run.
        """
        if self._capture is None:
            return
        from ..compiler.target import lowered_capture

        try:
            lowered = lowered_capture(self._capture, None, "cell", self._targets[0])
            first = [lowered.compile(target, mode, "quick") for target in self._targets for mode in ("compile", "eager")]
        except TpuLabError as error:
            print(f"tpu_lab: the cell has run; what targets make of it cannot be told: {error}")
            return
        if self._capture.repeats:
            print("a graph ran more than once: targets are given its first round")
        _display(first, self._effort, lambda program: lowered.compile(program.target, program.mode, "full"))


def _display(programs: list[Program], effort: str, full: Callable[[Program], Program]) -> None:
    from IPython.display import display

    handle: Any = display(TargetTable(tuple(programs)), display_id=True)  # type: ignore[no-untyped-call]
    graph: Any = display(FusionGraph(tuple(programs)), display_id=True)  # type: ignore[no-untyped-call]
    if effort != "full":
        return

    def refine() -> None:
        for place, program in enumerate(programs):
            if program.mode != "compile" or program.outcome != "ok":
                continue
            try:
                programs[place] = full(program)
            except TpuLabError as error:
                print(f"tpu_lab: {program.target.label}: {error}")
                return
            if handle is not None:
                handle.update(TargetTable(tuple(programs)))
        if graph is not None:
            graph.update(FusionGraph(tuple(programs)))

    threading.Thread(target=refine, name="tpu_lab targets", daemon=True).start()
