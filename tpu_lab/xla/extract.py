"""From what a compiler dumped to a `Program`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..record.program import Instruction, Kernel, Note, Program, SourceOp
from ..record.program_memory import Buffer
from ..record.targets import Target
from .edge_ends import with_ends
from .hlo_memory import read_memory
from .hlo_module import Module
from .hlo_proto import DecodeError, Message, decode
from .kernels import Kernels, emulated, find_kernels


@dataclass(frozen=True)
class Traced:
    """What the tracer knows of a program: its name, the ops that ids lead to, and what each parameter is to the user."""

    name: str = ""
    ops: tuple[SourceOp, ...] = ()
    labels: Mapping[int, str] = field(default_factory=dict)


def program_from_dump(folder: Path, target: Target, generated: bool = True) -> Program:
    """The program in a folder that a compiler dumped into (`xla_dump_to`, `xla_dump_hlo_as_proto`).

    `generated`: with the estimates of code generation, if that ended.

    Raises DecodeError, by name of what is missing, if the dump has another form than the one known.
    """
    found = sorted(folder.glob("*after_optimizations.hlo.pb"))
    if not found:
        raise DecodeError(f"the compiler dumped no *after_optimizations.hlo.pb (it dumped {len(list(folder.iterdir()))} files)")
    estimated = sorted(folder.glob("*after_codegen.hlo.pb")) if generated else []
    if not estimated:
        return program_from_proto(decode(found[-1].read_bytes()), target)
    memory = decode(found[-1].read_bytes(), "HloProtoMemory")
    return program_from_proto({**decode(estimated[-1].read_bytes()), **memory}, target)  # the same module, with estimates


def program_from_proto(message: Message, target: Target) -> Program:
    """The program in a decoded HloProto. What its ids lead to is added by `with_source`."""
    if message["module"] is None:
        raise DecodeError("the dump holds no module")
    module = Module(message["module"], "HBM" if target.is_tpu else "RAM")
    made = find_kernels(module, target)
    return Program(
        name=module.name,
        target=target,
        computations=tuple(c.name for c in module.computations),
        instructions=_instructions(module, made),
        schedule=tuple(node.index for node in module.entry.nodes),
        kernels=made.kernels,
        edges=with_ends(module, made.edges, made.kernels),
        memory=read_memory(module, message["buffer_assignment"], target),
        flops=sum(k.flops * k.repeats for k in made.kernels),
        bytes=sum(k.bytes * k.repeats for k in made.kernels),
        time_s=sum(k.time_s * k.repeats for k in made.kernels),
        notes=tuple(_notes(module)),
    )


def with_source(program: Program, traced: Traced) -> Program:
    """A program whose ids lead back to ops, lines and modules, and whose inputs have their names."""
    known = {op.id: op for op in traced.ops}
    carried = {op for kernel in program.kernels if not kernel.inherited for op in kernel.ops}
    return replace(
        program,
        name=traced.name or program.name,
        ops=traced.ops,
        kernels=tuple(_with_lines(kernel, known) for kernel in program.kernels),
        memory=replace(program.memory, buffers=tuple(_labelled(b, traced.labels) for b in program.memory.buffers)),
        lost_ops=tuple(op.id for op in traced.ops if op.id not in carried),
    )


def _with_lines(kernel: Kernel, known: Mapping[str, SourceOp]) -> Kernel:
    ops = [known[op] for op in kernel.ops if op in known]
    phases = {op.phase for op in ops}
    phase = "" if not phases else phases.pop() if len(phases) == 1 else "mixed"
    return replace(kernel, lines=tuple(dict.fromkeys(op.place for op in ops if op.place)), phase=phase)


def _labelled(buffer: Buffer, labels: Mapping[int, str]) -> Buffer:
    return replace(buffer, label=labels.get(buffer.parameter, buffer.label)) if buffer.parameter >= 0 else buffer


def with_cost(program: Program, optimal_s: float) -> Program:
    """A program with the compiler's own lower bound.

    It counts -1 s for each custom call whose cost it does not know; those are added back.
    """
    calls = sum(1 for i in program.instructions if i.opcode == "custom-call")
    unknown = math.ceil(-optimal_s) if optimal_s < 0 else 0
    return replace(program, compiler_time_s=optimal_s + unknown if unknown <= calls else 0.0)


def _instructions(module: Module, made: Kernels) -> tuple[Instruction, ...]:
    return tuple(
        Instruction(
            name=node.name,
            opcode=node.opcode,
            computation=node.computation,
            dtype=node.shape.dtype,
            shape=node.shape.dims,
            layout=node.shape.layout,
            space=node.shape.space,
            bytes=node.shape.bytes,
            useful_bytes=node.shape.useful_bytes,
            operands=tuple(operand.index for operand in node.operands),
            called=tuple(computation.index for computation in node.called),
            kernel=made.of_instruction.get(node, -1),
            op=node.op,
            target=node.message["target"],
        )
        for node in module.nodes
    )


def _notes(module: Module) -> list[Note]:
    text = "{} values are emulated: the hardware has none, so several operations stand in for each"
    return [Note("emulated", text.format(width), ops) for width, ops in emulated(module).items()]
