"""A run as a MIME bundle: the record itself for our renderer, HTML and text for every other front end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..analysis.findings import with_findings
from ..record.codec import dumps, to_data
from ..record.memory import Storages
from ..record.run import Run
from . import html, text
from .packed import packed

MIME_TYPE = "application/vnd.tpu-lab.run+json"
MAX_BYTES = 400_000
"""Most bytes of JSON of one run in a notebook; packed they are a third or less."""
_HAPPENINGS = 200
_SAMPLE = 2_000


def mime_bundle(run: Run, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """`text/plain`, `text/html` and the record. The record is cut to about `max_bytes`, what was cut is counted in it, and packed."""
    run = with_findings(run)
    return {"text/plain": text.summary(run), "text/html": html.run_html(run), MIME_TYPE: packed(to_data(shrink(run, max_bytes)))}


def shrink(run: Run, max_bytes: int = MAX_BYTES) -> Run:
    """The run with only as many ops, the most expensive, as fit into `max_bytes` of JSON. Totals, lines, findings and peak stay.

    Storages go when ops go: lives without their ops mean nothing. A run that fits is returned as it is.
    """
    if len(run.ops) <= _SAMPLE and len(dumps(run)) <= max_bytes:
        return run
    order = sorted(range(len(run.ops)), key=lambda i: -run.ops.duration_ns[i])
    bare, sample = len(dumps(_only(run, []))), order[:_SAMPLE]
    each = max((len(dumps(_only(run, sample))) - bare) / max(len(sample), 1), 1)
    keep = max(0, int((max_bytes - bare) / each))
    while keep and len(dumps(small := _only(run, order[:keep]))) > max_bytes:
        keep = keep * 9 // 10
    return small if keep else _only(run, [])


def _only(run: Run, positions: Sequence[int]) -> Run:
    keep = sorted(positions)
    ops = run.ops.keep(keep)
    none: tuple[tuple[int, ...], ...] = tuple(() for _ in keep)
    programs, program = _compact(ops.program, run.programs)
    modules, module = _compact(ops.module, run.modules)
    return replace(
        run,
        ops=replace(ops, program=program, module=module, reads=none, writes=none),
        programs=programs,
        modules=modules,
        storages=Storages(),
        memory=replace(run.memory, largest=tuple(replace(tensor, storage=-1) for tensor in run.memory.largest), specs=()),
        syncs=run.syncs[:_HAPPENINGS],
        fallbacks=run.fallbacks[:_HAPPENINGS],
        graph_breaks=run.graph_breaks[:_HAPPENINGS],
        recompiles=run.recompiles[:_HAPPENINGS],
        graphs=tuple(replace(g, ended_by=g.ended_by if g.ended_by < _HAPPENINGS else -1) for g in run.graphs[:_HAPPENINGS]),
        regions=run.regions[:_HAPPENINGS],
        ops_dropped=run.ops_dropped + len(run.ops) - len(keep),
    )


def _compact(indices: Sequence[int], table: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Only the rows that are pointed at, and the indices into what is left; -1 stays."""
    used = {old: new for new, old in enumerate(sorted(set(indices) - {-1}))}
    return tuple(table[old] for old in used), tuple(used.get(i, -1) for i in indices)
