"""The magics `%%tpu` and `%tpu`."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from IPython.core.error import UsageError

from ..errors import OptionError, TpuLabError
from .cell import Cell, read_cell
from .commands import Commands
from .comparing import run_comparison
from .execution import drive
from .lab import Lab
from .modes import MODES, Mode
from .options import CellOptions, cell_parser, parse_cell, parse_command
from .session import run_cell
from .targets import targets_named
from .tracebacks import mark


class TpuMagics:
    """What `%load_ext tpu_lab` registers with a shell."""

    def __init__(self, shell: Any, lab: Lab | None = None) -> None:
        self.shell = shell
        self.lab = lab or Lab()
        self.commands = Commands(shell, self.lab)

    def run(self, line: str, cell: str) -> Coroutine[Any, Any, None] | None:
        """Runs a cell on the `tpu` device and shows what it did.

        %%tpu eager              each operator runs alone, errors surface at their own line
        %%tpu compile            the cell is compiled by torch.compile(backend="tpu")
        %%tpu fuse               in fused eager mode: clusters of operators that come back run as one program
        %%tpu compare [modes]    the same cell in several modes from the same state (eager compile cpu)

        Options: --target, --effort, --device, --no-default-device, --repeat, --trace, --precision, --name, --save, --quiet; see `%tpu help`.
        """
        __tracebackhide__ = True
        try:
            options = parse_cell(line, self.commands.default_mode)
            if options is None:
                print(cell_parser().format_help())
                return None
            if options.mode == "compile" and not options.targets:
                options = replace(options, targets=self.commands.default_targets)
            targets_named(options.targets)
            modes = [MODES[name] for name in options.legs or (options.mode,)]
        except OptionError as error:
            raise UsageError(str(error)) from None
        read = read_cell(self.shell, line, cell)
        coroutine = self.run_awaited(options, modes, read)
        if read.awaits:
            return coroutine
        try:
            drive(coroutine)
        except BaseException as error:
            mark(error, self.shell)
            raise
        return None

    async def run_awaited(self, options: CellOptions, modes: list[Mode], cell: Cell) -> None:
        """Runs a cell; awaited by the text that the input transformer makes of a cell with a top-level `await`."""
        __tracebackhide__ = True
        try:
            if options.mode == "compare":
                await run_comparison(self.shell, self.lab, options, cell, modes)
            else:
                await run_cell(self.shell, self.lab, options, cell, modes[0])
        except BaseException as error:
            mark(error, self.shell)
            raise

    def command(self, line: str) -> None:
        """%tpu status | mode [MODE] | target [NAMES] | runs | compare RUN RUN … | report FILE | coverage [WORDS] | doctor | reset | help"""
        try:
            self.commands.run(parse_command(line))
        except TpuLabError as error:
            raise UsageError(str(error)) from None
