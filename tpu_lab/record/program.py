"""`Program`: a compiled program as data. What a target's compiler made of a graph, kernel by kernel; read without torch and jax.

A `Program` is a document of its own (schema `record/program_schema.json`), beside `Run`: a run tells what happened, a program
what a compiler predicts. Every time, FLOP and byte in it is the compiler's or follows from its figures; nothing is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .fusion import Decision, NotFused
from .program_memory import ProgramMemory
from .targets import CPU, Target

PROGRAM_FORMAT = "tpu-lab-program"
PROGRAM_SCHEMA_VERSION = "1.0"
"""Major: a reader of another major cannot read it. Minor: fields were added, older readers ignore them."""
PREDICTED = "predicted by the compiler, not measured"
"""What is said of every cost of a program."""


@dataclass(frozen=True, slots=True)
class SourceOp:
    """An ATen op of the traced graph, which XLA's metadata leads back to."""

    id: str
    """As carried through the compiler: `n77:aten.tanh`. Ids of one program differ in their number."""
    op: str
    """The overload: `aten.tanh.default`."""
    file: str = ""
    """Short name of the file of the innermost user frame; empty: not known."""
    line: int = 0
    """1-based; 0: not known."""
    function: str = ""
    module: str = ""
    """Path of the innermost module: `layers.0.mlp`; empty outside any."""
    phase: str = "forward"
    """`forward`, `backward` or `optimizer`."""
    forward: str = ""
    """A backward op: id of the forward op it belongs to; empty: none."""

    @property
    def place(self) -> str:
        """`file:line`; empty if not known."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An HLO instruction of the optimized module."""

    name: str
    opcode: str
    computation: int
    """Index in `Program.computations`; 0 is the entry."""
    dtype: str
    """XLA's short name (`bf16`); `tuple` or `token` where there is no one array."""
    shape: tuple[int, ...]
    layout: str
    """Order, tiles and memory space as XLA writes them: `{1,0:T(8,128)(2,1)S(1)}`."""
    space: str
    """Memory space of the result: `HBM`, `VMEM`, …; `RAM` on XLA:CPU."""
    bytes: int
    """Bytes of the result, padding included; the parts' sum for a tuple."""
    useful_bytes: int
    """Bytes of the elements alone."""
    operands: tuple[int, ...]
    """Indices in `Program.instructions`."""
    called: tuple[int, ...] = ()
    """Computations it calls: indices in `Program.computations`."""
    kernel: int = -1
    """Index in `Program.kernels` of the kernel it is in; -1: none (parameters, tuples, free bitcasts)."""
    op: str = ""
    """Id of the ATen op it comes from (`SourceOp.id`); empty: none in its metadata."""
    target: str = ""
    """What a custom call calls: `TopK`; empty for other opcodes."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a fusion or a single instruction of the entry computation (or of a loop's body) that does work."""

    name: str
    kind: str
    """`fusion`, `matmul`, `copy`, `prefetch`, `collective`, `custom call`, `loop`, `single`."""
    instruction: int
    """Index in `Program.instructions`."""
    members: tuple[int, ...]
    """Instructions in it: indices in `Program.instructions`, parameters and constants left out."""
    ops: tuple[str, ...]
    """Ids of the ATen ops in it (`SourceOp.id`), in their order."""
    lines: tuple[str, ...]
    """Places of those ops, `file:line`, each once."""
    inherited: bool
    """True: it has no id of its own (a copy or a convert the compiler added) and shows those of what it serves."""
    role: str
    """A kernel without ops: what it is, in words; empty otherwise."""
    phase: str
    """`forward`, `backward`, `optimizer`; `mixed` if its ops differ; empty without ops."""
    flops: float
    """Floating-point operations, predicted."""
    bytes: int
    """Bytes it reads from and writes to HBM (RAM on XLA:CPU), padding included, predicted."""
    vmem_bytes: int
    """Bytes it reads from and writes to VMEM."""
    time_s: float
    """Lower bound of its time in seconds: the larger of flops / peak and bytes / bandwidth. Predicted; 0: the target has no figures."""
    bound_by: str
    """`compute`, `memory`, `on chip` (neither leaves VMEM nor takes the matrix unit), or empty where the target has no figures."""
    cycles: int = 0
    """The compiler's own estimate in cycles; 0: none. A relative figure: 1.0 to 1.4 times the time at peak on matrix units, and about
    2.5 times too slow on memory-bound kernels."""
    repeats: int = 1
    """How often it runs: the trip count of the loops around it, as far as known."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that travels from one kernel to another."""

    producer: int
    """Index in `Program.kernels`; -1: an input of the program."""
    consumer: int
    """Index in `Program.kernels`; -1: an output of the program."""
    instruction: int
    """The instruction whose result travels: index in `Program.instructions`."""
    bytes: int
    space: str
    maker: int = -1
    """The instruction inside the producer that makes the value: index in `Program.instructions`; -1: an input."""
    users: tuple[int, ...] = ()
    """The instructions inside the consumer that use it."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the whole program that a reader should know."""

    kind: str
    """`emulated` (a dtype the hardware has not), `unsupported` (what the target refuses), `missing` (facts that could not be read)."""
    text: str
    """One line."""
    ops: tuple[str, ...] = ()
    """Ids of the ATen ops concerned."""


@dataclass(frozen=True)
class Program:
    """A program as a compiler made it. Times are seconds, sizes bytes. Frozen; `to_json` and `from_json` keep it whole."""

    format: str = PROGRAM_FORMAT
    schema: str = PROGRAM_SCHEMA_VERSION
    """`major.minor` of the schema it was written with."""
    name: str = ""
    target: Target = CPU
    mode: str = "compile"
    """`compile`: the default passes. `eager`: fusion passes off, one kernel for each operation."""
    effort: str = "full"
    """`full`, or `quick`: the same fusions, without the placement in VMEM, so memory and cycles differ."""
    compiler: str = ""
    """`libtpu 0.0.42.1` or `jaxlib 0.10.2`."""
    compile_s: float = 0.0
    """Seconds the compiler took when it ran."""
    costs: str = PREDICTED
    outcome: str = "ok"
    """`ok`, `out_of_memory` (everything is there but it does not fit) or `refused` (the compiler takes no such program)."""
    message: str = ""
    """The compiler's words, if the outcome is not `ok`."""
    ops: tuple[SourceOp, ...] = ()
    computations: tuple[str, ...] = ()
    """Names; the entry is the first."""
    instructions: tuple[Instruction, ...] = ()
    schedule: tuple[int, ...] = ()
    """The entry's instructions in the order they run: indices in `instructions`."""
    kernels: tuple[Kernel, ...] = ()
    """In the order they run."""
    edges: tuple[Edge, ...] = ()
    memory: ProgramMemory = field(default_factory=ProgramMemory)
    flops: float = 0.0
    """Of the whole program, loops included."""
    bytes: int = 0
    """HBM bytes read and written by all kernels."""
    time_s: float = 0.0
    """Sum of the kernels' lower bounds."""
    compiler_time_s: float = 0.0
    """The compiler's own lower bound (`optimal_seconds`, corrected); 0: not told."""
    lost_ops: tuple[str, ...] = ()
    """Ids of ops that no kernel carries: views that became free, constants, ops merged with others."""
    decisions: tuple[Decision, ...] = ()
    not_fused: tuple[NotFused, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def collectives(self) -> tuple[Kernel, ...]:
        """The kernels that talk to other chips."""
        return tuple(k for k in self.kernels if k.kind == "collective")

    @property
    def bound_by(self) -> str:
        """What most of the predicted time is bound by: `compute`, `memory`, `on chip`, or empty."""
        times: dict[str, float] = {}
        for kernel in self.kernels:
            times[kernel.bound_by] = times.get(kernel.bound_by, 0.0) + kernel.time_s * kernel.repeats
        return max(times, key=lambda name: times[name]) if any(times.values()) else ""

    @property
    def mapped(self) -> float:
        """The share of kernels that lead back to at least one op, 0 to 1 (1 for a program without kernels)."""
        return sum(bool(k.ops) for k in self.kernels) / len(self.kernels) if self.kernels else 1.0

    def op(self, id: str) -> SourceOp:
        """The op with this id (`n77:aten.tanh` or `n77`). Raises LookupError."""
        number = id.partition(":")[0]
        for op in self.ops:
            if op.id.partition(":")[0] == number:
                return op
        raise LookupError(f"the program has no op {id!r}; Program.ops lists {len(self.ops)}")

    def summary(self) -> str:
        """The program as text: what the compiler predicts, the kernels that take longest, what fills its memory if it does not fit."""
        from ..views.targets import program_summary

        return program_summary(self)

    def to_json(self) -> str:
        """The program as JSON text (schema `record/program_schema.json`)."""
        from . import program_codec

        return program_codec.dumps(self)

    @staticmethod
    def from_json(text: str) -> Program:
        """The program in a JSON text. Raises RecordError, RecordTooNewError."""
        from . import program_codec

        return program_codec.loads(text)

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> dict[str, Any]:
        from ..views.targets import TargetTable

        return {"text/plain": self.summary(), "text/html": TargetTable((self,)).to_html()}
