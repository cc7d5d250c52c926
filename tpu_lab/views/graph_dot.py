"""A program as DOT, through the package `graphviz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MissingPackageError
from ..record.program import Program
from .graph_html import kernel_title
from .numbers import duration, size

if TYPE_CHECKING:
    import graphviz  # type: ignore[import-untyped]


def digraph(program: Program) -> graphviz.Digraph:
    """Kernels as boxes with their lower bounds, edges with their bytes. Raises MissingPackageError without the package."""
    try:
        import graphviz
    except ImportError as error:
        raise MissingPackageError("DOT export needs the package graphviz", remedy="pip install graphviz") from error
    graph = graphviz.Digraph(name=program.name or "program", node_attr={"shape": "box"})
    for i, kernel in enumerate(program.kernels):
        figures = [f"≥ {duration(kernel.time_s * 1e9)}"] if kernel.time_s else []
        graph.node(f"k{i}", graphviz.escape("\n".join([kernel_title(program, i), " · ".join([f"K{i + 1}", *figures, size(kernel.bytes)])])))
    links: dict[tuple[int, int], int] = {}
    for edge in program.edges:
        if edge.producer >= 0 and edge.consumer >= 0:
            links[edge.producer, edge.consumer] = links.get((edge.producer, edge.consumer), 0) + edge.bytes
    for (producer, consumer), nbytes in links.items():
        graph.edge(f"k{producer}", f"k{consumer}", label=size(nbytes))
    return graph
