"""Stand-ins for the device: buffers, programs, and a device whose operators only tell the observer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from tpu_lab.device import events
from tpu_lab.device.events import OpProgram, TensorType

F32 = TensorType((8, 8), "float32")


@dataclass
class Buffer:
    id: int
    nbytes: int


class FakeDevice:
    """Tells the observer of ops as the real device does: results are allocated before the op is told, frees come when asked for."""

    def __init__(self) -> None:
        self._ids = count(100)
        self.programs: dict[tuple[str, str], OpProgram] = {}

    def buffer(self, nbytes: int = 256, tell: bool = True) -> Buffer:
        made = Buffer(next(self._ids), nbytes)
        if tell and events.observer is not None:
            events.observer.allocated(made)
        return made

    def program(self, op: str, kind: str = "xla", temp: int | None = 0) -> OpProgram:
        return self.programs.setdefault((op, kind), OpProgram(op, kind, (F32, F32), (F32,), 128.0, temp, 1, 768))

    def run(
        self, op: str, inputs: Sequence[Buffer] = (), nbytes: int = 256, kind: str = "xla", temp: int | None = 0, into: Buffer | None = None
    ) -> Buffer:
        out = into or self.buffer(nbytes)
        now = time.perf_counter_ns()
        assert events.observer is not None
        events.observer.op(self.program(op, kind, temp), now, now + 1_000, inputs, [out])
        return out

    def free(self, buffer: Buffer) -> None:
        assert events.observer is not None
        events.observer.freed(buffer)
