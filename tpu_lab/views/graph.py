"""A fusion graph: one compiled program or several side by side, as a view that opens anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingPackageError, OptionError, one_of
from ..record.codec import to_data
from ..record.program import Program
from . import graph_html, page
from .packed import packed
from .program_size import shrink_program

if TYPE_CHECKING:
    import graphviz  # type: ignore[import-untyped]

GRAPH_FORMAT = "tpu-lab-fusion-graph"
MIME_TYPE = "application/vnd.tpu-lab.graph+json"
MAX_BYTES = 2_000_000
"""Most bytes of JSON of a graph in a notebook, all its programs together, before it is packed."""
FILES = (".html", ".json", ".dot", ".svg", ".png", ".pdf")


@dataclass(frozen=True)
class FusionGraph:
    """Programs to look at: the kernels a compiler made, what passes between them, and why two are two.

    The first program is shown first; the others are one key away (targets, or the eager mode of the same target).
    """

    programs: tuple[Program, ...]

    def __post_init__(self) -> None:
        if not self.programs:
            raise OptionError("a fusion graph of no program", accepted="at least one Program")

    def to_data(self, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
        """The graph as JSON data for the viewer, cut to about `max_bytes`; what is cut is only HLO inside kernels."""
        each = max_bytes // len(self.programs)
        programs = [to_data(shrink_program(program, each)) for program in self.programs]
        return {"format": GRAPH_FORMAT, "schema": "1.0", "programs": programs}

    def to_json(self) -> str:
        """All programs, whole, as JSON text."""
        return json.dumps({"format": GRAPH_FORMAT, "schema": "1.0", "programs": [to_data(program) for program in self.programs]}, ensure_ascii=False)

    def to_html(self) -> str:
        """One page that opens from disk, without a network. Raises MissingPackageError where the front end was not built."""
        title = f"Fusion graph: {self.programs[0].name or 'program'} on {self.programs[0].target.title or self.programs[0].target.name}"
        return page.page("graph", self.to_data(), title, graph_html.fragment(self.programs))

    def to_dot(self, program: int = 0) -> graphviz.Digraph:
        """A program (by index) as a Graphviz digraph; rendering it needs Graphviz itself. Raises MissingPackageError without `graphviz`."""
        from .graph_dot import digraph

        return digraph(self.programs[program])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph; the file's ending says what: .html, .json, .dot, or .svg, .png and .pdf by Graphviz.

        Raises OptionError for another ending, MissingPackageError where Graphviz is needed and missing, OSError.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending not in FILES:
            raise OptionError(f"a fusion graph cannot be saved as {target.name!r}", accepted=f"a name that ends in {one_of(FILES)}")
        if ending in (".html", ".json"):
            target.write_text(self.to_html() if ending == ".html" else self.to_json(), encoding="utf-8")
            return
        dot = self.to_dot()
        if ending == ".dot":
            target.write_text(dot.source, encoding="utf-8")
            return
        import graphviz

        try:
            target.write_bytes(dot.pipe(format=ending[1:]))
        except graphviz.ExecutableNotFound as error:
            raise MissingPackageError(f"saving {target.name} needs the program dot", remedy="install Graphviz, or save as .html") from error

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> dict[str, Any]:
        first = self.programs[0]
        text = f"FusionGraph: {first.name or 'program'}, " + ", ".join(graph_html.label(program) for program in self.programs)
        return {"text/plain": text, "text/html": graph_html.fragment(self.programs), MIME_TYPE: packed(self.to_data())}
