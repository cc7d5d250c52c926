"""Which Python frames are the user's, and what a (code, instruction) pair means as a place in a source.

While recording, a place is only a code object and an instruction offset. Lines, columns and names are worked out afterwards.
"""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import CodeType

from ..record.privacy import scrub, short_name
from ..record.source import Location, Source, SourceLine

INTERNAL, USER, CELL = 0, 1, 2
"""What a frame is: machinery, the user's code, or the cell that is recorded."""

_CELL_NAME = re.compile(r"<ipython-input-|[/\\]ipykernel_\d+[/\\]|^<tpu-cell")
_MACHINERY = (
    "torch",
    "jax",
    "jaxlib",
    "torchgen",
    "functorch",
    "torch_tpu",
    "IPython",
    "ipykernel",
    "ipykernel_launcher",
    "traitlets",
    "tornado",
    "zmq",
    "nest_asyncio",
    "_pytest",
    "pluggy",
)


@dataclass(frozen=True)
class CellText:
    """A notebook cell as the recorder needs it: its display name, its text, and how its compiled lines are numbered.

    `line_offset` is added to a line number of the compiled code to get the line in the cell, where line 1 is the magic.
    """

    name: str = "cell"
    text: str = ""
    line_offset: int = 0
    current: bool = True
    """False: another cell of the notebook, e.g. where a function was defined."""


def _machinery_roots() -> tuple[str, ...]:
    roots = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep]
    for name in _MACHINERY:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            roots += [location.rstrip(os.sep) + os.sep for location in spec.submodule_search_locations]
        elif spec is not None and spec.origin:
            roots.append(spec.origin)
    return tuple(roots)


_ROOTS = _machinery_roots()
_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep


def classify(filename: str, cells: Mapping[str, CellText]) -> int:
    """INTERNAL, USER or CELL for a code object's file name."""
    cell = cells.get(filename)
    if cell is not None:
        return CELL if cell.current else USER
    if _CELL_NAME.search(filename):
        return USER
    if filename.startswith(("<", *_ROOTS)):
        return INTERNAL
    if filename.startswith(_LIBRARY) and "-packages" + os.sep not in filename:
        return INTERNAL
    return USER


def cell_of_file(filename: str) -> dict[str, CellText]:
    """The cells to record when nobody told: the notebook cell with this file name, or none."""
    return {filename: CellText(text="".join(linecache.getlines(filename)).rstrip("\n"))} if _CELL_NAME.search(filename) else {}


class SourceTable:
    """Collects places into the tables `sources` and `locations` of a run; equal places share an entry."""

    def __init__(self, cells: Mapping[str, CellText]) -> None:
        self._cells = cells
        self._files: dict[str, int] = {}
        self._names: list[tuple[str, str]] = []
        self._lines: list[dict[int, str]] = []
        self._paths: list[str] = []
        self._places: dict[tuple[int, int], int] = {}
        self._lines_met: dict[tuple[str, int, str], int] = {}
        self._positions: dict[int, list[tuple[int | None, int | None, int | None, int | None]]] = {}
        self._keep_alive: list[CodeType] = []
        self.locations: list[Location] = []
        for filename, cell in cells.items():
            if cell.current:
                self._file(filename)

    def place(self, code: CodeType | None, instruction: int) -> int:
        """Index of the location of an instruction in a code object (`frame.f_lasti`); -1 for no code."""
        if code is None:
            return -1
        key = (id(code), instruction)
        index = self._places.get(key)
        if index is None:
            self._keep_alive.append(code)  # its id must stay its own
            index = self._places[key] = self._add(self._resolve(code, instruction))
        return index

    def line(self, filename: str, line: int, function: str = "") -> int:
        """Index of a location known only by file and line, as compilers report it."""
        key = (filename, line, function)
        index = self._lines_met.get(key)
        if index is None:
            index = self._lines_met[key] = self._add(Location(self._file(filename), self._cell_line(filename, line), function=function))
        return index

    def cell(self, location: int) -> int:
        """The index itself if that location is in the cell that is recorded, else -1."""
        return location if location >= 0 and self._names[self.locations[location].source][1] == "cell" else -1

    def _add(self, location: Location) -> int:
        self._remember_text(location)
        self.locations.append(location)
        return len(self.locations) - 1

    def _resolve(self, code: CodeType, instruction: int) -> Location:
        positions = self._positions.get(id(code))
        if positions is None:
            positions = self._positions[id(code)] = list(code.co_positions())
        at = instruction // 2
        line, end_line, column, end_column = positions[at] if 0 <= at < len(positions) else (None, None, None, None)
        filename = code.co_filename
        source = self._file(filename)
        first = line or code.co_firstlineno
        return Location(
            source,
            self._cell_line(filename, first),
            self._characters(filename, first, column),
            self._cell_line(filename, end_line or first),
            self._characters(filename, end_line or first, end_column),
            code.co_qualname,
        )

    def _cell_line(self, filename: str, line: int) -> int:
        cell = self._cells.get(filename)
        return line + cell.line_offset if cell is not None else line

    def _characters(self, filename: str, line: int, column: int | None) -> int:
        """Python counts columns in UTF-8 bytes; the record in characters."""
        if not column:
            return 0
        text = self._text(filename, line)
        return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))

    def _text(self, filename: str, line: int) -> str:
        cell = self._cells.get(filename)
        if cell is None or not cell.text:
            return linecache.getline(filename, line).rstrip("\n")
        lines = cell.text.split("\n")
        at = line + cell.line_offset - 1
        return lines[at] if 0 <= at < len(lines) else ""

    def _file(self, filename: str) -> int:
        index = self._files.get(filename)
        if index is None:
            index = self._files[filename] = len(self._names)
            self._paths.append(filename)
            cell = self._cells.get(filename)
            if cell is not None:
                self._names.append((cell.name, "cell" if cell.current else "other_cell"))
                self._lines.append(dict(enumerate(cell.text.rstrip().split("\n"), 1)) if cell.text else {})
            elif _CELL_NAME.search(filename):
                self._names.append(("another cell", "other_cell"))
                self._lines.append({})
            else:
                self._names.append((short_name(filename), "file"))
                self._lines.append({})
        return index

    def _remember_text(self, location: Location) -> None:
        lines = self._lines[location.source]
        filename = self._paths[location.source]
        cell = self._cells.get(filename)
        offset = cell.line_offset if cell is not None else 0
        for number in range(location.line, max(location.line, location.end_line) + 1):
            if number not in lines and (text := self._text(filename, number - offset)):
                lines[number] = text

    def sources(self) -> tuple[Source, ...]:
        """The table `sources`, with the lines met so far."""
        return tuple(
            Source(name, kind, tuple(SourceLine(number, scrub(text)) for number, text in sorted(lines.items())))
            for (name, kind), lines in zip(self._names, self._lines, strict=True)
        )
