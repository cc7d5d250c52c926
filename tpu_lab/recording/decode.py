"""From a recorder's raw events to a `Run`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from ..device.events import OpProgram, TensorType
from ..record.environment import Environment
from ..record.ops import NOT_BACKWARD, Ops, RunProgram, TensorSpec
from ..record.privacy import scrub
from ..record.run import Run
from ..record.timing import Timing
from ..record.totals import Totals, exclusive, kernel_count, line_costs
from .frames import SourceTable
from .memory_curve import MemoryBook
from .raw import RawBuffer, RawOp, read

if TYPE_CHECKING:
    from .recorder import Recorder

_ids = count(1)


def decode(recorder: Recorder) -> Run:
    """The record of a finished recording."""
    table = SourceTable(recorder.cells)
    program_index, programs = program_rows(list(recorder.programs), recorder.happenings.builds)
    events = list(read(recorder.events))
    book = MemoryBook(_alive_before(recorder, events))
    rows, positions = _replay(events, book, program_index, programs)
    ops = _columns(rows, recorder, program_index, table, book)
    storages, happened = book.storages(), recorder.happenings

    def op_before(position: int) -> int:
        return bisect_left(positions, position) - 1

    syncs = happened.syncs(table, recorder.start_ns, op_before)
    fallbacks = happened.fallbacks(table, recorder.start_ns)
    failures = happened.failures(table, op_before)
    flushes = happened.flushes(table, recorder.start_ns, op_before)
    breaks, recompiles = happened.graph_breaks(table, syncs), happened.recompiles(table)
    graphs, regions = happened.graphs(table), happened.regions(table)
    names = [programs[p].op for p in ops.program]
    places = [cell if cell >= 0 else user for cell, user in zip(ops.cell_location, ops.location, strict=True)]
    # PyTorch's own kernels do not tell their scratch memory; XLA's programs do, or the peak is a lower bound
    scratch_known = all(program.temp_bytes is not None for program in programs if program.kind in ("xla", "compiled"))
    memory = book.memory(recorder.dropped_ops == 0 and scratch_known, names, places)
    locations = tuple(table.locations)
    return Run(
        id=f"r{next(_ids)}",
        name=scrub(recorder.name),
        mode=recorder.mode,
        device=recorder.device,
        target=recorder.target,
        started=datetime.fromtimestamp(recorder.started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        blocking=recorder.blocking,
        environment=Environment.here(),
        timing=Timing(recorder.end_ns - recorder.start_ns),
        totals=_totals(recorder, ops, programs, memory.peak_bytes),
        lines=line_costs(ops, storages, locations, syncs, fallbacks),
        sources=table.sources(),
        locations=locations,
        modules=tuple(recorder.names.paths),
        programs=programs,
        ops=ops,
        storages=storages,
        memory=memory,
        syncs=syncs,
        fallbacks=fallbacks,
        graph_breaks=breaks,
        recompiles=recompiles,
        failures=failures,
        graphs=graphs,
        regions=regions,
        flushes=flushes,
        ops_dropped=recorder.dropped_ops,
    )


def program_rows(programs: Sequence[OpProgram], builds: Mapping[OpProgram, tuple[int, str]]) -> tuple[list[int], tuple[RunProgram, ...]]:
    """The programs met as record data, and for each its index there: host kernels and transfers come as a new object each time."""
    rows: dict[RunProgram, int] = {}
    index = []
    for one in programs:
        build_ns, cache = builds.get(one, (0, ""))
        shapes = _specs(one.inputs), _specs(one.outputs)
        row = RunProgram(one.op, one.kind, *shapes, one.flops, one.bytes_accessed, one.temp_bytes, one.kernels, build_ns, cache)
        index.append(rows.setdefault(row, len(rows)))
    return index, tuple(rows)


def _specs(types: Sequence[TensorType]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(one.dtype, tuple(one.shape)) for one in types)


def _alive_before(recorder: Recorder, events: Sequence[tuple[int, RawOp | RawBuffer]]) -> dict[int, int]:
    """Buffers that were there before the recording: those told at the start, or read or freed without having been made."""
    before = dict(recorder.before)
    made: set[int] = set()
    for _, event in events:
        if isinstance(event, RawOp):
            operands = dict(event.operands)
            for number, nbytes in event.operands:
                if number not in made:
                    before.setdefault(number, nbytes)
            made.update(number for number, _ in event.results if number not in operands and number not in before)
        elif event.freed:
            if event.id not in made:
                before.setdefault(event.id, event.nbytes)
        else:
            made.add(event.id)
    return before


def _replay(
    events: Sequence[tuple[int, RawOp | RawBuffer]], book: MemoryBook, program_index: Sequence[int], programs: Sequence[RunProgram]
) -> tuple[list[RawOp], list[int]]:
    """Plays memory forward; returns the ops and their positions in the event list."""
    rows: list[RawOp] = []
    positions = []
    for at, event in events:
        if isinstance(event, RawOp):
            program = programs[program_index[event.program]]
            book.op(len(rows), event.operands, event.results, program.inputs, program.outputs, program.temp_bytes or 0)
            rows.append(event)
            positions.append(at)
        elif event.freed:
            book.freed(event.id, len(rows))
        else:
            book.allocated(event.id, event.nbytes, len(rows))
    return rows, positions


def _columns(rows: Sequence[RawOp], recorder: Recorder, program_index: Sequence[int], table: SourceTable, book: MemoryBook) -> Ops:
    """Ops as columns, with backward ops linked to their forward ops."""
    forward = _links(rows, recorder.first_sequence)
    module = [row.module for row in rows]
    for i, link in enumerate(forward):
        if link >= 0 and module[i] < 0:
            module[i] = module[link]
    return Ops(
        id=tuple(range(len(rows))),
        program=tuple(program_index[row.program] for row in rows),
        module=tuple(module),
        location=tuple(table.place(row.user, row.user_at) for row in rows),
        cell_location=tuple(table.place(row.cell, row.cell_at) for row in rows),
        forward=tuple(forward),
        start_ns=tuple(row.start_ns - recorder.start_ns for row in rows),
        duration_ns=tuple(row.end_ns - row.start_ns for row in rows),
        thread=tuple(row.thread for row in rows),
        reads=tuple(book.indices(row.operands) for row in rows),
        writes=tuple(book.indices(row.results) for row in rows),
    )


def _links(rows: Sequence[RawOp], first_sequence: int) -> list[int]:
    """For each op the id of its forward op (see `Ops.forward`).

    An autograd node takes the next sequence number of its thread just before its forward op runs, so that op is the first one
    that saw the number. Ops without a node see the number of the node before them and come later.
    """
    first: dict[int, int] = {}
    links = []
    for i, row in enumerate(rows):
        if row.backward >= 0:
            links.append(first.get(row.backward, -1))
            continue
        if row.sequence >= first_sequence:
            first.setdefault(row.sequence, i)
        links.append(NOT_BACKWARD)
    return links


def _totals(recorder: Recorder, ops: Ops, programs: Sequence[RunProgram], peak_bytes: int) -> Totals:
    per_program = [kernel_count(program) for program in programs]
    counts = recorder.happenings.counts
    intervals = [(start, start + duration, thread) for start, duration, thread in zip(ops.start_ns, ops.duration_ns, ops.thread, strict=True)]
    return Totals(
        wall_ns=recorder.end_ns - recorder.start_ns,
        ops=len(ops) + recorder.dropped_ops,
        views=sum(1 for p in ops.program if programs[p].kind == "view"),
        kernels=sum(per_program[p][0] for p in ops.program),
        kernels_exact=recorder.dropped_ops == 0 and all(exact for _, exact in per_program),
        op_ns=sum(exclusive(intervals)),
        peak_bytes=peak_bytes,
        **asdict(counts),
    )
