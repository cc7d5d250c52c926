"""From allocations, frees and ops in order: the lives of storages, the curve of live bytes, and what was alive at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..record.memory import CurvePoint, LineBytes, LiveTensor, Memory, Storages
from ..record.ops import TensorSpec

CURVE_POINTS = 400
LARGEST = 100

Buffers = Sequence[tuple[int, int]]
"""Buffers as pairs of id and bytes."""


@dataclass
class _Storage:
    nbytes: int
    born: int
    born_tick: int
    died: int = -1
    died_tick: int = -1
    made_by: int = -1
    spec: int = -1


class MemoryBook:
    """Replays a recording's memory. Call the methods in the order of events; `position` is the number of ops so far."""

    def __init__(self, before: dict[int, int]) -> None:
        self._index: dict[int, int] = {}
        self._storages: list[_Storage] = []
        self._specs: dict[TensorSpec, int] = {}
        self.live = 0
        self.peak = 0
        self._tick = 0
        self._peak_position = -1
        self._peak_tick = 0
        self._curve: list[int] = []
        self._largest_step = 0
        for number, nbytes in before.items():
            self._new(number, nbytes, -1)
        self.start = self.peak = self.live

    def _new(self, number: int, nbytes: int, born: int) -> int:
        index = self._index[number] = len(self._storages)
        self._storages.append(_Storage(nbytes, born, self._tick))
        self.live += nbytes
        return index

    def allocated(self, number: int, nbytes: int, position: int) -> None:
        """A storage came to life, or changed its size."""
        self._tick += 1
        index = self._index.get(number)
        if index is None:
            self._new(number, nbytes, position)
        else:
            storage = self._storages[index]
            self.live += nbytes - storage.nbytes
            storage.nbytes = nbytes
        self._note(self.live, position)

    def freed(self, number: int, position: int) -> None:
        """A storage died."""
        self._tick += 1
        storage = self._storages[self._index[number]]
        if storage.died < 0:
            storage.died, storage.died_tick = position, self._tick
            self.live -= storage.nbytes

    def op(self, position: int, reads: Buffers, writes: Buffers, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], temp: int) -> None:
        """An op ran; results not heard of before came to life with it, its scratch memory counts on top."""
        for number, nbytes in (*reads, *writes):
            index = self._index.get(number)
            if index is None or self._storages[index].nbytes != nbytes:
                self.allocated(number, nbytes, position)
        for (number, _), spec in zip(reads, inputs, strict=False) if len(reads) == len(inputs) else ():
            self._describe(number, spec)
        for place, (number, _) in enumerate(writes):
            storage = self._storages[self._index[number]]
            if storage.made_by < 0 and storage.born >= 0:  # the first to write what `torch.empty` left made it
                storage.made_by = position
            if len(writes) == len(outputs):
                self._describe(number, outputs[place])
        self._note(self.live + temp, position)
        self._curve.append(max(self.live + temp, self._largest_step))
        self._largest_step = 0

    def _note(self, nbytes: int, position: int) -> None:
        self._largest_step = max(self._largest_step, nbytes)
        if nbytes > self.peak:
            self.peak, self._peak_position, self._peak_tick = nbytes, position, self._tick

    def _describe(self, number: int, spec: TensorSpec) -> None:
        storage = self._storages[self._index[number]]
        if storage.spec < 0:
            storage.spec = self._specs.setdefault(spec, len(self._specs))

    def indices(self, buffers: Buffers) -> tuple[int, ...]:
        """Buffers as indices of the storage table."""
        return tuple(self._index[number] for number, _ in buffers)

    def storages(self) -> Storages:
        """The table of storages."""
        rows = self._storages
        return Storages(
            tuple(s.nbytes for s in rows),
            tuple(s.made_by for s in rows),
            tuple(s.born for s in rows),
            tuple(s.died for s in rows),
            tuple(s.spec for s in rows),
        )

    def memory(self, exact: bool, op_names: Sequence[str], places: Sequence[int]) -> Memory:
        """The summary. `op_names` and `places` give each op's name and location index by position."""
        at = self._peak_tick
        alive = [i for i, s in enumerate(self._storages) if s.nbytes and s.born_tick <= at and (s.died < 0 or s.died_tick > at)]
        alive.sort(key=lambda i: -self._storages[i].nbytes)
        specs = tuple(self._specs)
        lines: dict[int, tuple[int, int]] = {}
        for i in alive:
            storage = self._storages[i]
            place = places[storage.made_by] if storage.made_by >= 0 else -1
            nbytes, count = lines.get(place, (0, 0))
            lines[place] = (nbytes + storage.nbytes, count + 1)
        return Memory(
            peak_bytes=self.peak,
            exact=exact,
            peak_op=self._peak_position,
            start_bytes=self.start,
            end_bytes=self.live,
            largest=tuple(self._tensor(i, specs, op_names, places) for i in alive[:LARGEST]),
            lines=tuple(LineBytes(place, nbytes, count) for place, (nbytes, count) in sorted(lines.items(), key=lambda item: -item[1][0])),
            curve=thin(self._curve, CURVE_POINTS),
            specs=specs,
        )

    def _tensor(self, index: int, specs: Sequence[TensorSpec], op_names: Sequence[str], places: Sequence[int]) -> LiveTensor:
        storage = self._storages[index]
        made = storage.made_by
        spec = specs[storage.spec] if storage.spec >= 0 else None
        return LiveTensor(index, storage.nbytes, op_names[made] if made >= 0 else "", spec, places[made] if made >= 0 else -1)


def thin(curve: Sequence[int], limit: int) -> tuple[CurvePoint, ...]:
    """At most `limit` points of a curve; each stretch is represented by its highest value, so no peak is lost."""
    if len(curve) <= limit:
        return tuple(CurvePoint(i, value) for i, value in enumerate(curve))
    points = []
    for k in range(limit):
        first, last = k * len(curve) // limit, (k + 1) * len(curve) // limit
        best = max(range(first, last), key=curve.__getitem__)
        points.append(CurvePoint(best, curve[best]))
    return tuple(points)
