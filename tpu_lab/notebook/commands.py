"""The line magic `%tpu`: status, mode, target, runs, compare, report, coverage, doctor, reset, help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ..coverage.table import load
from ..device import _torch_internals as internals
from ..errors import OptionError, one_of
from ..views.page import run_page
from ..views.targets import target_lines
from ..xla import compile_service
from .doctor import examine, text
from .lab import Lab
from .modes import forget_cells
from .options import CELL_MODES, CommandOptions, cell_parser, parse_report
from .targets import targets_named

_HELP = """\
%%tpu eager              run the cell on the device, each operator alone
%%tpu fuse               run the cell in fused eager mode: clusters of operators that come back as one program
%%tpu compile            run the cell compiled by torch.compile(backend="tpu")
%%tpu compare [modes]    run the cell in several modes from the same state and compare (eager compile cpu);
                         each mode once and up to 15 times more (--repeat N); files and network are not put back

%tpu status              device, memory, default mode, recorded runs
%tpu mode [MODE]         show or set the mode of a cell that says only %%tpu
%tpu target [NAMES|all]  TPU generations that compiled cells are compiled for too, or what there are
%tpu target off          none any more; ends what compiles in the background
%tpu runs [RUN]          the recorded runs, or one of them again, by id or name
%tpu compare RUN RUN     two or more recorded runs side by side, by id or name
%tpu report FILE [--run NAME]  one page of a run (the last one) that opens from disk, offline
%tpu coverage [WORDS]    which operators run here and on TorchTPU; WORDS are parts of their names
%tpu doctor              versions, device, compiler, caches, what is missing
%tpu reset               forget recorded runs and compiled programs, start peak memory again
%tpu help                this text"""


class Commands:
    """What `%tpu` can do; `default_mode` is the mode of a bare `%%tpu`."""

    def __init__(self, shell: Any, lab: Lab) -> None:
        self._lab = lab
        self.default_mode = "eager"
        self.default_targets: tuple[str, ...] = ()

    def run(self, options: CommandOptions) -> None:
        """Runs one command; text goes to standard output. Raises OptionError or another TpuLabError with one line."""
        command: Callable[..., None] = getattr(self, f"_{options.command}")
        command(*options.words)

    def _status(self) -> None:
        lab = self._lab
        print(f"mode     {self.default_mode} (of a cell that says only %%tpu)")
        if lab.owns_device():
            from ..device import memory

            stats = memory.stats()
            print(
                f"device   tpu, {stats.allocated / 1e6:.3g} MB in use, peak {stats.peak / 1e6:.3g} MB, limit {memory.get_memory_limit() / 1e9:.3g} GB"
            )
        else:
            print("device   tpu is not this package's device; runs are only recorded (see %tpu doctor)")
        runs = lab.runs()
        print(f"runs     {len(runs)} recorded" + (f", the last is {runs[-1].id}" if runs else ""))

    def _mode(self, mode: str = "") -> None:
        if mode:
            if mode not in CELL_MODES:
                raise OptionError(f"%tpu mode {mode!r} is not known", accepted=one_of(CELL_MODES))
            self.default_mode = mode
        print(f"a cell that says only %%tpu runs as {self.default_mode}")

    def _target(self, *words: str) -> None:
        if words == ("off",):
            self.default_targets = ()
            compile_service.cancel_compiles()
        elif words:
            self.default_targets = tuple(target.label for target in targets_named(words))
        else:
            print(target_lines())
        now = ", ".join(self.default_targets)
        print(f"%%tpu compile cells are also compiled for {now}" if now else "%%tpu compile cells are compiled for no target")

    def _runs(self, name: str = "") -> None:
        if name:
            return self._lab.show(self._lab.find(name))
        runs = self._lab.runs()
        if not runs:
            print("no run has been recorded yet; run a cell that starts with %%tpu eager")
        for run in runs:
            peak, seconds = run.memory.peak_bytes / 1e6, run.timing.steady_ns / 1e9
            print(f"{run.id:>6}  {run.mode:<8} {run.device:<5} {seconds:>9.4f} s  {run.totals.ops:>7} ops  {peak:>9.3f} MB peak  {run.name}".rstrip())

    def _compare(self, *names: str) -> None:
        if len(names) < 2:
            raise OptionError("%tpu compare of fewer than two runs", accepted="two or more run ids or names", remedy="%tpu runs lists them")
        found = [self._lab.find(name) for name in names]
        labels = [run.mode for run in found]
        if len(set(labels)) < len(labels):
            labels = [f"{run.mode} ({run.id})" for run in found]
        if len(set(labels)) < len(labels):
            raise OptionError(f"%tpu compare {' '.join(names)} names a run twice", accepted="different runs")
        by_label = dict(zip(labels, found, strict=True))
        failures = {label: f"{run.failures[-1].kind}: {run.failures[-1].message}" for label, run in by_label.items() if run.failures}
        comparison = self._lab.compare(by_label, labels[0], {}, failures, recorded=True)
        self._lab.show(replace(found[0], id=f"{found[0].id}c", mode="compare", comparison=comparison))

    def _report(self, *words: str) -> None:
        file, name = parse_report(words)
        runs = self._lab.runs()
        if not name and not runs:
            raise OptionError("%tpu report before any run", remedy="run a cell that starts with %%tpu eager")
        run = self._lab.find(name) if name else runs[-1]
        file.write_text(run_page(run), encoding="utf-8")
        print(f"{run.id} is in {file}: one file, {file.stat().st_size / 1e6:.1f} MB, which opens without a network")

    def _coverage(self, *words: str) -> None:
        from IPython.display import publish_display_data

        publish_display_data(load().filter(" ".join(words))._repr_mimebundle_())  # type: ignore[no-untyped-call]

    def _doctor(self) -> None:
        print(text(examine(self._lab)))

    def _reset(self) -> None:
        self._lab.forget_runs()
        forget_cells()
        if internals.dynamo_is_loaded():
            torch.compiler.reset()
        if self._lab.owns_device():
            from ..device import memory, program_cache

            program_cache.clear()
            memory.reset_peak()
        print("recorded runs and compiled programs are forgotten; variables and tensors are untouched")

    def _help(self) -> None:
        print(_HELP)
        print("\noptions of a cell:\n" + cell_parser().format_help().partition("options:\n")[2].rstrip())
