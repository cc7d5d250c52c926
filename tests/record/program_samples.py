"""A small program as a target's compiler could make it, with every kind of entry."""

from __future__ import annotations

from tpu_lab.record.fusion import Decision, NotFused
from tpu_lab.record.program import Edge, Instruction, Kernel, Note, Program, SourceOp
from tpu_lab.record.program_memory import Buffer, ProgramMemory, SpaceUse
from tpu_lab.record.targets import target_named

TILED = "{1,0:T(8,128)}"


def program() -> Program:
    """`tanh(x) @ w` on a v6e: a fusion and a matmul."""
    ops = (
        SourceOp("n2:aten.tanh", "aten.tanh.default", "model.py", 12, "forward", "layers.0"),
        SourceOp("n3:aten.mm", "aten.mm.default", "model.py", 13, "forward", "layers.0", "backward", "n2:aten.tanh"),
    )
    instructions = (
        Instruction("x", "parameter", 0, "f32", (8, 100), TILED, "HBM", 4096, 3200, ()),
        Instruction("fusion", "fusion", 0, "f32", (8, 100), TILED, "HBM", 4096, 3200, (0,), (1,), 0, "n2:aten.tanh"),
        Instruction("mm", "convolution", 0, "f32", (8, 8), TILED, "HBM", 4096, 256, (1, 1), (), 1, "n3:aten.mm"),
        Instruction("p", "parameter", 1, "f32", (8, 100), TILED, "HBM", 4096, 3200, (), (), 0),
        Instruction("tanh", "tanh", 1, "f32", (8, 100), TILED, "HBM", 4096, 3200, (3,), (), 0, "n2:aten.tanh"),
    )
    kernels = (
        Kernel("fusion", "fusion", 1, (4,), ("n2:aten.tanh",), ("model.py:12",), False, "", "forward", 800.0, 8192, 0, 5e-9, "memory", 120),
        Kernel("mm", "matmul", 2, (2,), ("n3:aten.mm",), ("model.py:13",), False, "", "backward", 12800.0, 12288, 0, 7.5e-9, "memory"),
    )
    buffers = (
        Buffer(0, (), "argument", "HBM", "f32", (8, 100), 4096, 3200, 0, -1, 3, "", "x"),
        Buffer(1, (), "temporary", "HBM", "f32", (8, 100), 4096, 3200, 4096, 1, 2, "n2:aten.tanh", "n2:aten.tanh"),
    )
    space = SpaceUse("HBM", 8000, 8192, 1, (-1, 1, 2), (4096, 8192, 4096), (0, 1))
    return Program(
        name="forward",
        target=target_named("v6e"),
        compiler="libtpu 0.0.42.1",
        compile_s=0.5,
        ops=ops,
        computations=("main", "fused_computation"),
        instructions=instructions,
        schedule=(0, 1, 2),
        kernels=kernels,
        edges=(Edge(-1, 0, 0, 4096, "HBM"), Edge(0, 1, 1, 4096, "HBM"), Edge(1, -1, 2, 4096, "HBM")),
        memory=ProgramMemory((space,), buffers, 4096, 4096, 4096, 0),
        flops=13600.0,
        bytes=20480,
        time_s=1.25e-8,
        compiler_time_s=1.25e-8,
        decisions=(Decision("tpu_fusion", 0, "rejected", "tanh", "mm", "", "Not allowed", ("n2:aten.tanh",), ("n3:aten.mm",)),),
        not_fused=(NotFused("n2:aten.tanh", "n3:aten.mm", 0, 1, "unknown", "A sentence.", "A remedy.", "Not allowed", "log", 4096),),
        notes=(Note("emulated", "float64 is emulated", ("n2:aten.tanh",)),),
    )
