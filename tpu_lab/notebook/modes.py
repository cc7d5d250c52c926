"""The modes a cell can run in. Everything that a mode needs to come into being or to be switched on stands here."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ..device.interrupts import held_back
from .cell import Cell, split_interactive
from .compiled_cell import CompiledCell
from .execution import Statements
from .lab import Lab
from .regions import cut
from .tolerance import tolerant


@dataclass(frozen=True)
class Mode:
    """How a cell is run: operator by operator, `compiles` (by torch.compile) or `defers` (EagerMode.DEFER_AND_FUSE)."""

    name: str
    compiles: bool = False
    defers: bool = False


EAGER = Mode("eager")
FUSE = Mode("fuse", defers=True)
COMPILE = Mode("compile", compiles=True)
CPU = Mode("cpu")
"""Only a leg of `%%tpu compare`: PyTorch's own CPU kernels."""
MODES = {mode.name: mode for mode in (EAGER, FUSE, COMPILE, CPU)}


class PreparedCell:
    """A cell ready to run in a mode, any number of times."""

    def __init__(self, shell: Any, lab: Lab, cell: Cell, mode: Mode, device: str) -> None:
        self._lab = lab
        self._mode = mode
        interactivity = _interactivity(shell)
        nodes = cell.nodes
        self._compiled: CompiledCell | None = None
        if mode.compiles:
            nodes, self._compiled = _compiled(shell, cell, interactivity, lab.compile_backend(device))
        self._loud = Statements(shell, split_interactive(nodes, interactivity, cell.silenced), cell.filename)
        self._quiet = Statements(shell, split_interactive(nodes, "none", True), cell.filename)

    async def run(self, shown: bool, blocking: bool, told: Any = None) -> Any:
        """Runs the cell once. `told` hears of graph breaks the cutting makes. Returns the value to display, None if there is none.

        With `shown` the last value is to be displayed as IPython's settings say, otherwise nothing is.
        """
        __tracebackhide__ = True
        with self._entered(blocking, told):
            return await (self._loud if shown else self._quiet).run()

    @contextmanager
    def _entered(self, blocking: bool, told: Any) -> Iterator[None]:
        with ExitStack() as stack:
            if self._mode.defers:
                stack.enter_context(self._lab.deferring())
            elif self._mode is not CPU:
                stack.enter_context(self._lab.strict(blocking))
            if self._compiled is not None:
                with held_back():  # the first time it imports Dynamo, which takes seconds
                    stack.enter_context(tolerant())
                    if self._compiled.joins_steps:
                        from ..compiler.whole_step import whole_steps

                        stack.enter_context(whole_steps())
                stack.enter_context(self._compiled.entered(told))
            yield


_recent: OrderedDict[tuple[Any, ...], tuple[list[ast.stmt], CompiledCell]] = OrderedDict()
MOST_RECENT = 16
"""Of this many cells the programs are kept, so that running an unchanged cell again compiles nothing."""


def _compiled(shell: Any, cell: Cell, interactivity: str, backend: str) -> tuple[list[ast.stmt], CompiledCell]:
    """A cell cut for compiling, with the programs of an earlier run of the same text if IPython gives it the same file name."""
    key = (id(shell), cell.filename, cell.text, interactivity, backend)
    if key not in _recent:
        nodes = [node for node, _ in split_interactive(cell.nodes, interactivity, cell.silenced)]
        parts = cut(nodes, each_apart=interactivity == "all")
        _recent[key] = parts.statements, CompiledCell(shell, cell, parts, _compiler(backend), joins_steps=backend == "tpu")
        if len(_recent) > MOST_RECENT:
            _recent.popitem(last=False)
    _recent.move_to_end(key)
    return _recent[key]


def forget_cells() -> None:
    """Drops the programs of cells that ran."""
    _recent.clear()


def _interactivity(shell: Any) -> str:
    running = shell.displayhook.exec_result
    silent = running is not None and running.info is not None and running.info.silent
    return "none" if silent else str(shell.ast_node_interactivity)


def _compiler(backend: str) -> Any:
    def compile_part(function: Any) -> Any:
        import torch

        return torch.compile(function, backend=backend)

    return compile_part
