"""Ops and the programs that ran them. Ops are kept in columns: a run may have 100,000 of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import overload


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of one tensor."""

    dtype: str
    """torch's name without `torch.`: `bfloat16`."""
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunProgram:
    """What is the same each time an op runs in this way."""

    op: str
    """The ATen overload, `aten.add_.Tensor`, or the name of a compiled graph."""
    kind: str
    """How the op ran: `xla` one compiled program; `host` a host kernel, not yet worth a compile; `view` no program; `fallback` CPU
    fallback; `copy` a transfer; `compiled` a graph of torch.compile; `aten` a kernel of PyTorch's own (other devices)."""
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    flops: float | None = None
    """Floating-point operations per call; null: not known."""
    bytes: int | None = None
    """Bytes read and written per call; null: not known."""
    temp_bytes: int | None = None
    """Bytes of scratch memory while it runs; null: not known."""
    kernels: int | None = None
    """XLA kernels (or device kernels) per call; null: not known, at least one."""
    build_ns: int = 0
    """Time to build it in this run; 0 if it was there already."""
    cache: str = ""
    """Where the build came from: `miss` compiled, `disk` loaded, empty if not built in this run."""


@dataclass(frozen=True, slots=True)
class Op:
    """One op as it ran: a row of `Run.ops`. Indices are -1 where there is nothing to point at."""

    id: int
    program: int
    module: int
    location: int
    cell_location: int
    forward: int
    start_ns: int
    duration_ns: int
    thread: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Ops(Sequence[Op]):
    """The ops of a run in the order they ran; a sequence of `Op`. Every column has one entry per op.

    A record made small for a notebook keeps only some ops; `id` then has gaps.
    """

    id: tuple[int, ...] = ()
    """Position in the run, from 0."""
    program: tuple[int, ...] = ()
    """Index in `Run.programs`."""
    module: tuple[int, ...] = ()
    """Index in `Run.modules` of the innermost module it ran in; a backward op has its forward op's; -1 outside any."""
    location: tuple[int, ...] = ()
    """Index in `Run.locations` of the nearest user frame. Backward ops: of the call that started backward. -1: not known."""
    cell_location: tuple[int, ...] = ()
    """Index in `Run.locations` of the nearest frame of the cell that ran; -1: none."""
    forward: tuple[int, ...] = ()
    """A backward op: id of the forward op it belongs to; -1 if there is none (it adds to `.grad`) or it ran before the recording. Other ops: -2."""
    start_ns: tuple[int, ...] = ()
    """Nanoseconds since the start of the recording."""
    duration_ns: tuple[int, ...] = ()
    """Nanoseconds until it was done (`Run.blocking`) or until it was queued."""
    thread: tuple[int, ...] = ()
    """0 is the thread that ran the cell; autograd threads follow."""
    reads: tuple[tuple[int, ...], ...] = ()
    """Storages read: indices in `Run.storages`."""
    writes: tuple[tuple[int, ...], ...] = ()
    """Storages made or written. One that is also read was written in place."""

    def __len__(self) -> int:
        return len(self.id)

    @overload
    def __getitem__(self, index: int) -> Op: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Op]: ...
    def __getitem__(self, index: int | slice) -> Op | Sequence[Op]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Op(*(getattr(self, name)[index] for name in COLUMNS))

    def __iter__(self) -> Iterator[Op]:
        for row in zip(*(getattr(self, name) for name in COLUMNS), strict=True):
            yield Op(*row)

    def keep(self, positions: Sequence[int]) -> Ops:
        """Only the ops at these positions, in this order."""
        return Ops(*(tuple(column[i] for i in positions) for column in (getattr(self, name) for name in COLUMNS)))


COLUMNS = tuple(f.name for f in fields(Ops))
NOT_BACKWARD = -2
"""`forward` of an op that is not part of a backward pass."""


def spec_text(spec: TensorSpec) -> str:
    """A tensor's type as `bf16[8,16,1024]`; dtypes without a short name are written out."""
    return f"{SHORT_DTYPES.get(spec.dtype, spec.dtype)}[{','.join(map(str, spec.shape))}]"


SHORT_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
}
