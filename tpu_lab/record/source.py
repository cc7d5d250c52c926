"""Where things happened: sources (cells and files) with their lines, places in them, and module paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of a source."""

    number: int
    """1-based; in a cell, line 1 is the magic."""
    text: str
    """Without the line break. Paths below a home folder are shortened."""


@dataclass(frozen=True, slots=True)
class Source:
    """A cell or a file that ops were called from. A cell carries all its lines, a file only those that were met."""

    name: str
    """A short name without home folders: `cell`, `cell 3`, `models/net.py`, `site-packages/transformers/...`."""
    kind: str
    """`cell` (the cell that ran), `other_cell` or `file`."""
    lines: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source."""

    source: int
    """Index in `Run.sources`."""
    line: int
    """1-based; 0 if the line is not known."""
    column: int = 0
    """0-based, in characters."""
    end_line: int = 0
    """1-based, inclusive; 0 if not known."""
    end_column: int = 0
    """0-based, exclusive, in characters."""
    function: str = ""
    """The function's qualified name; `<module>` at the top level."""


@dataclass(frozen=True, slots=True)
class ModulePath:
    """A `torch.nn.Module` that was called."""

    path: str
    """From the outermost module called, which gives the first part its class name: `MLP.layers.0`."""
    kind: str
    """Class name."""
