"""The raw form of a recording: what the recorder appends and the decoder reads."""

from __future__ import annotations

from .frames import Place

ALLOCATED = -1
FREED = -2
"""First items of the memory events `(ALLOCATED | FREED, buffer id, bytes)`. Ops are tuples that start with the index of their
program: `(program, start_ns, end_ns, user, cell, module, sequence, backward, thread, reads, writes)`, where `sequence` is the
autograd sequence number a forward op saw, `backward` the one of the node a backward op belongs to (-1: the other kind)."""

Places = tuple[Place | None, Place | None]
"""The nearest user frame and the nearest frame of the recorded cell."""
