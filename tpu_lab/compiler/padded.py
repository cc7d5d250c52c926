"""Runs a graph whose rows are apart (`rows.prove`) on padded inputs, so that one program serves a range of sizes."""

from __future__ import annotations

from typing import Any

import torch

from ..device.graph.padding import with_rows
from ..device.graph.program import GraphProgram
from .options import bucket


class PaddedProgram:
    """What AOTAutograd runs in place of the program: takes a list of inputs (which it empties), gives a list of results."""

    def __init__(self, graph: torch.fx.GraphModule, program: GraphProgram, symbol: Any, buckets: Any) -> None:
        self._boxed_call = True
        self._program, self._buckets = program, buckets
        placeholders = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
        self._rows = [i for i, value in enumerate(placeholders) if _is_first(value, symbol)]
        self._sizes = [i for i, value in enumerate(placeholders) if _is_size(value, symbol)]
        given: Any = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        results = [out.meta.get("val") if isinstance(out, torch.fx.Node) else out for out in given]
        self._cut = [i for i, value in enumerate(results) if _is_first(value, symbol)]
        self._told = [i for i, value in enumerate(results) if _is_size(value, symbol)]

    @property
    def program_count(self) -> int:
        """Programs of the graph: one for each bucket met."""
        return self._program.program_count

    def __call__(self, inputs: list[Any]) -> Any:
        rows = int(inputs[self._rows[0]].shape[0])
        size = bucket(rows, self._buckets)
        if size == rows or not rows:
            return self._program(inputs)
        given = list(inputs)
        inputs.clear()
        for i in self._rows:
            given[i] = with_rows(given[i], size)
        for i in self._sizes:
            given[i] = size
        results = self._program(given)
        for i in self._cut:
            results[i] = results[i].narrow(0, 0, rows)
        for i in self._told:
            results[i] = rows
        return results


def _is_size(value: Any, symbol: Any) -> bool:
    return isinstance(value, torch.SymInt) and value.node.expr == symbol


def _is_first(value: Any, symbol: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0 and _is_size(value.shape[0], symbol)
