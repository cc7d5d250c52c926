"""A lab without a device: remembers what the notebook asked of it, compiles with AOTAutograd's eager backend on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from tpu_lab.compiler.events import BreakTold, Frame, GraphTold, RecompileTold, RegionTold
from tpu_lab.notebook.cell import Cell
from tpu_lab.notebook.lab import Lab
from tpu_lab.record.comparison import Comparison, Difference
from tpu_lab.record.run import Run


class FakeRecording:
    """Stands for a recorder: `active` while its block runs, afterwards `run` is an empty record. Hears of graph breaks."""

    def __init__(self, mode: str, device: str, name: str, cell: Cell, number: int) -> None:
        self.mode, self.device, self.name, self.cell = mode, device, name, cell
        self.number = number
        self.active = False
        self.ended_by: str | None = None
        self.breaks: list[tuple[str, str, int, str]] = []
        self.told: list[BreakTold] = []
        self.recompiles: list[RecompileTold] = []
        self.graphs: list[GraphTold] = []
        self.regions: list[RegionTold] = []

    def __enter__(self) -> FakeRecording:
        self.active = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.active = False
        self.ended_by = kind.__name__ if kind else None

    @property
    def run(self) -> Run:
        return Run(id=f"r{self.number}", name=self.name, mode=self.mode, device=self.device)

    def graph_break(self, told: BreakTold) -> None:
        frame = told.frame or Frame("", 0)
        self.breaks.append((told.message, frame.filename, frame.line, told.reason))
        self.told.append(told)

    def recompile(self, told: RecompileTold) -> None:
        self.recompiles.append(told)

    def graph(self, told: GraphTold) -> None:
        self.graphs.append(told)

    def region(self, told: RegionTold) -> None:
        self.regions.append(told)


class FakeLab(Lab):
    """See the module. `strict_now` is what `strict` was asked for by the innermost block, None outside any."""

    def __init__(self) -> None:
        self.recordings: list[FakeRecording] = []
        self.kept: list[Run] = []
        self.shown: list[Run] = []
        self.strict_now: bool | None = None
        self.precisions: list[str | None] = []
        self.compared: list[tuple[dict[str, Run], str, dict[str, Difference], dict[str, str]]] = []
        self.restored = 0
        self._numbers = count(1)

    def recording(self, mode: str, device: str, name: str, cell: Cell) -> tuple[FakeRecording, FakeRecording]:
        made = FakeRecording(mode, device, name, cell, next(self._numbers))
        self.recordings.append(made)
        return made, made

    def owns_device(self) -> bool:
        return False

    @contextmanager
    def strict(self, blocking: bool) -> Iterator[None]:
        before, self.strict_now = self.strict_now, blocking
        try:
            yield
        finally:
            self.strict_now = before

    @contextmanager
    def precision(self, name: str | None) -> Iterator[None]:
        self.precisions.append(name)
        yield

    def compile_backend(self, device: str) -> str:
        return "aot_eager"

    def synchronize(self, device: str) -> None:
        pass

    def restore(self, snapshot: Any) -> None:
        self.restored += 1

    def keep(self, run: Run) -> Run:
        self.kept.append(run)
        return run

    def runs(self) -> list[Run]:
        return list(self.kept)

    def forget_runs(self) -> None:
        self.kept.clear()

    def show(self, run: Run) -> None:
        self.shown.append(run)

    def compare(
        self, runs: Mapping[str, Run], reference: str, differences: Mapping[str, Difference], failures: Mapping[str, str], recorded: bool = False
    ) -> Comparison:
        self.compared.append((dict(runs), reference, dict(differences), dict(failures)))
        return super().compare(runs, reference, differences, failures, recorded)
