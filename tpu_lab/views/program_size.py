"""A program made small enough for a notebook: the viewer keeps kernels, links and reasons; HLO inside kernels goes first."""

from __future__ import annotations

from dataclasses import replace

from ..record.program import Program
from ..record.program_codec import dumps


def shrink_program(program: Program, max_bytes: int) -> Program:
    """The program without what the viewer does not show (decisions, schedule, temporary buffers), and, if that is not enough,
    without the instructions inside kernels. Kernels, edges, ops and reasons stay; the costs stay true.
    """
    bare = replace(
        program,
        decisions=(),
        schedule=(),
        memory=replace(
            program.memory,
            spaces=tuple(replace(space, at_peak=()) for space in program.memory.spaces),
            buffers=tuple(buffer for buffer in program.memory.buffers if buffer.kind == "argument"),
        ),
    )
    whole = _keeping(bare, members=True)
    return whole if len(dumps(whole)) <= max_bytes else _keeping(bare, members=False)


def _keeping(program: Program, members: bool) -> Program:
    """Only the instructions that kernels, edges and buffers point at, renumbered; operands that are gone are left out."""
    used = {edge.instruction for edge in program.edges} | {kernel.instruction for kernel in program.kernels}
    used |= {buffer.instruction for buffer in program.memory.buffers if buffer.instruction >= 0}
    if members:
        used |= {member for kernel in program.kernels for member in kernel.members}
    new = {old: i for i, old in enumerate(sorted(used))}
    return replace(
        program,
        instructions=tuple(
            replace(program.instructions[old], operands=tuple(new[o] for o in program.instructions[old].operands if o in new)) for old in new
        ),
        kernels=tuple(
            replace(kernel, instruction=new[kernel.instruction], members=tuple(new[m] for m in kernel.members if m in new))
            for kernel in program.kernels
        ),
        edges=tuple(replace(edge, instruction=new[edge.instruction]) for edge in program.edges),
        memory=replace(
            program.memory,
            buffers=tuple(replace(buffer, instruction=new.get(buffer.instruction, -1)) for buffer in program.memory.buffers),
        ),
    )
