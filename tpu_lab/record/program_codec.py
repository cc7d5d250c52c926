"""A `Program` as JSON text, and as gzip bytes (the disk cache); read with the same checks and limits as a run."""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import replace
from typing import Any

from ..errors import RecordError
from .codec import DEFAULT_LIMITS, Limits, Mismatch, check_version, inflate, read_value, to_data
from .integrity import BrokenReference, within
from .program import PROGRAM_FORMAT, PROGRAM_SCHEMA_VERSION, Program


def dumps(program: Program) -> str:
    """A program as compact JSON text, in this version's schema."""
    data = to_data(replace(program, schema=PROGRAM_SCHEMA_VERSION))
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes, name: str = "the text") -> Program:
    """The program in a JSON text. Raises RecordError, and RecordTooNewError for a newer major schema."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{name} is not a program: its JSON cannot be read ({type(error).__name__})", remedy="make it again with to_json") from None
    return from_data(data, name)


def pack(program: Program, level: int = 6) -> bytes:
    """A program as gzip bytes; `level` is zlib's."""
    compress = zlib.compressobj(level, zlib.DEFLATED, 31)
    return compress.compress(dumps(program).encode(errors="replace")) + compress.flush()


def unpack(packed: bytes, name: str = "the file", limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program in gzip bytes. Raises as `loads`, and RecordTooLargeError."""
    return loads(inflate(io.BytesIO(packed).read, name, limits), name)


def from_data(data: Any, name: str = "the data") -> Program:
    """Parsed JSON data as a program; checks version, types and indices."""
    if not isinstance(data, dict) or data.get("format") != PROGRAM_FORMAT:
        raise RecordError(f"{name} is not a program", accepted=f"what Program.to_json made (format {PROGRAM_FORMAT})")
    check_version(data.get("schema"), PROGRAM_SCHEMA_VERSION, name)
    try:
        program: Program = read_value(Program, data)
        check_program(program)
    except (Mismatch, BrokenReference) as mismatch:
        raise RecordError(f"{name} is damaged at {mismatch}", remedy="make it again with to_json") from None
    return program


def check_program(program: Program) -> None:
    """Raises BrokenReference naming the field with an index that points nowhere; returns None for a sound program."""
    instructions, kernels, computations = len(program.instructions), len(program.kernels), len(program.computations)
    buffers = len(program.memory.buffers)
    within(program.schedule, 0, instructions, "schedule")
    within((i.computation for i in program.instructions), 0, computations, "instructions.computation")
    within((o for i in program.instructions for o in i.operands), 0, instructions, "instructions.operands")
    within((c for i in program.instructions for c in i.called), 0, computations, "instructions.called")
    within((i.kernel for i in program.instructions), -1, kernels, "instructions.kernel")
    within((k.instruction for k in program.kernels), 0, instructions, "kernels.instruction")
    within((m for k in program.kernels for m in k.members), 0, instructions, "kernels.members")
    within((e.producer for e in program.edges), -1, kernels, "edges.producer")
    within((e.consumer for e in program.edges), -1, kernels, "edges.consumer")
    within((e.instruction for e in program.edges), 0, instructions, "edges.instruction")
    within((b.instruction for b in program.memory.buffers), -1, instructions, "memory.buffers.instruction")
    within((b for s in program.memory.spaces for b in s.at_peak), 0, buffers, "memory.spaces.at_peak")
    within((k for n in program.not_fused for k in (n.producer_kernel, n.consumer_kernel)), 0, kernels, "not_fused")
    if any(len(s.position) != len(s.live) for s in program.memory.spaces):
        raise BrokenReference("memory.spaces: columns of different length")
