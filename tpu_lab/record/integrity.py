"""Whether a run that was read fits together: columns of one length, every index within its table."""

from __future__ import annotations

from collections.abc import Iterable

from .ops import COLUMNS
from .run import Run


class BrokenReference(Exception):
    """An index that points nowhere, or columns of different length."""


def check(run: Run) -> None:
    """Raises BrokenReference naming the field that does not fit; returns None for a sound run."""
    count = len(run.ops.id)
    for name in COLUMNS:
        _require(len(getattr(run.ops, name)) == count, f"ops.{name}: another length than ops.id")
    storages = len(run.storages.nbytes)
    for name in ("made_by", "born", "died", "spec"):
        _require(len(getattr(run.storages, name)) == storages, f"storages.{name}: another length than storages.nbytes")
    locations, specs = len(run.locations), len(run.memory.specs)
    within(run.ops.program, 0, len(run.programs), "ops.program")
    within(run.ops.module, -1, len(run.modules), "ops.module")
    within(run.ops.location, -1, locations, "ops.location")
    within(run.ops.cell_location, -1, locations, "ops.cell_location")
    for name in ("reads", "writes"):
        within((i for row in getattr(run.ops, name) for i in row), 0, storages, f"ops.{name}")
    within(run.storages.spec, -1, specs, "storages.spec")
    within((place.source for place in run.locations), 0, len(run.sources), "locations.source")
    within((line.source for line in run.lines), 0, len(run.sources), "lines.source")
    within((tensor.storage for tensor in run.memory.largest), -1, storages, "memory.largest.storage")
    within((tensor.location for tensor in run.memory.largest), -1, locations, "memory.largest.location")
    within((line.location for line in run.memory.lines), -1, locations, "memory.lines.location")
    for name in ("syncs", "fallbacks", "graph_breaks", "recompiles", "failures", "findings", "graphs"):
        rows = getattr(run, name)
        within((row.location for row in rows), -1, locations, f"{name}.location")
        within((row.cell_location for row in rows), -1, locations, f"{name}.cell_location")
    within((i for row in run.graph_breaks for i in row.stack), 0, locations, "graph_breaks.stack")
    within((graph.ended_by for graph in run.graphs), -1, len(run.graph_breaks), "graphs.ended_by")
    within((region.source for region in run.regions), 0, len(run.sources), "regions.source")


def within(indices: Iterable[int], low: int, length: int, what: str) -> None:
    """Raises BrokenReference unless every index is at least `low` and below `length`; `what` names the field."""
    for index in indices:
        if not low <= index < length:
            raise BrokenReference(f"{what}: {index} points nowhere")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise BrokenReference(what)
