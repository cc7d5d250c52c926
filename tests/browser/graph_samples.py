"""Compiled programs with invented numbers that show every part of the fusion graph viewer, and large ones for its benchmark.

`extension/test/graphs.json` holds the small ones for the unit tests there: python -m tests.browser.graph_samples writes it again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.browser.server import REPOSITORY
from tpu_lab.record.fusion import NotFused
from tpu_lab.record.program import Edge, Instruction, Kernel, Note, Program, SourceOp
from tpu_lab.record.program_memory import Buffer, ProgramMemory, SpaceUse
from tpu_lab.record.targets import CPU, Target, target_named

FILE = REPOSITORY / "extension" / "test" / "graphs.json"

KERNELS: list[tuple[str, list[str], int, str, float, float, float]] = [
    ("fusion.1", ["native_layer_norm", "mul", "add"], 4, "Block.norm1", 0.13e9, 67e6, 41e-6),
    ("convolution.2", ["addmm"], 5, "Block.qkv", 206e9, 159e6, 225e-6),
    ("fusion.3", ["bmm", "mul", "masked_fill", "amax"], 6, "Block.attn", 34.5e9, 336e6, 205e-6),
    ("fusion.4", ["amax", "sub", "exp", "sum"], 10, "Block.attn", 0.4e9, 269e6, 164e-6),
    ("fusion.5", ["sub", "exp", "div"], 10, "Block.attn", 0.4e9, 537e6, 328e-6),
    ("fusion.6", ["bmm", "transpose"], 12, "Block.attn", 34.4e9, 336e6, 205e-6),
    ("fusion.7", ["addmm", "add"], 12, "Block.proj", 68.7e9, 109e6, 75e-6),
    ("fusion.8", ["native_layer_norm", "mul", "add"], 13, "Block.norm2", 0.13e9, 67e6, 41e-6),
    ("fusion.9", ["addmm", "gelu"], 13, "Block.mlp.up", 275e9, 201e6, 299e-6),
    ("fusion.10", ["addmm", "add"], 13, "Block.mlp.down", 275e9, 201e6, 299e-6),
    ("fusion.11", ["sub", "square", "sum"], 14, "", 0.05e9, 101e6, 62e-6),
    ("fusion.12", ["div"], 14, "", 1, 8, 2e-9),
]
"""Name, ops, line, module, FLOP, bytes, seconds."""

EDGES = [(0, 1, 33.6), (1, 2, 67.1), (1, 5, 33.6), (2, 3, 268), (2, 4, 268), (3, 4, 1.05), (4, 5, 268), (5, 6, 33.6)]
EDGES += [(6, 7, 33.6), (6, 9, 33.6), (7, 8, 33.6), (8, 9, 134), (9, 10, 33.6), (10, 11, 0.000004)]
INPUTS = [(0, "x", 33.6), (1, "qkv.weight", 25.2), (1, "qkv.bias", 0.012), (6, "proj.weight", 8.4), (6, "x", 33.6), (8, "mlp.up.weight", 33.6)]
INPUTS += [(9, "mlp.down.weight", 33.6), (10, "target", 67.1)]


def attention(target: Target, mode: str = "compile") -> Program:
    """One attention block: twelve kernels; more, and no costs, on XLA:CPU; one for each op in `eager`."""
    kernels, edges = KERNELS, EDGES
    if mode == "eager":
        kernels = [(f"{name}.{i}", [op], *rest) for name, ops, *rest in KERNELS for i, op in enumerate(ops)]  # type: ignore[misc]
        last: list[int] = []
        for _, ops, *_ in KERNELS:
            last.append((last[-1] if last else -1) + len(ops))
        first = [end - len(ops) + 1 for end, (_, ops, *_) in zip(last, KERNELS, strict=True)]
        inside = [(i, i + 1, 67.1) for start, end in zip(first, last, strict=True) for i in range(start, end)]
        edges = [(last[a], first[b], size) for a, b, size in EDGES] + inside
    factor = target.hbm_bandwidth and 1.64e12 / target.hbm_bandwidth
    return build(target, mode, "attention", kernels, edges, INPUTS if mode == "compile" else [], factor)


def build(
    target: Target,
    mode: str,
    name: str,
    rows: list[tuple[str, list[str], int, str, float, float, float]],
    edges: list[tuple[int, int, float]],
    inputs: list[tuple[int, str, float]],
    factor: float,
) -> Program:
    """A program of kernels in a chain of rows; edges and inputs in MB; `factor` stretches the times (0: the target has none)."""
    ops: list[SourceOp] = []
    instructions: list[Instruction] = []
    kernels: list[Kernel] = []
    space = "HBM" if target.is_tpu else "RAM"

    def instruction(name: str, opcode: str, nbytes: int, kernel: int, op: str = "", operands: tuple[int, ...] = ()) -> int:
        shape = (8, max(1, nbytes // 16))
        instructions.append(Instruction(name, opcode, 0, "bf16", shape, "{1,0:T(8,128)(2,1)}", space, nbytes, nbytes, operands, (), kernel, op))
        return len(instructions) - 1

    for index, (label, names, line, module, flops, nbytes, seconds) in enumerate(rows):
        ids = []
        members = []
        for op in names:
            ids.append(f"n{len(ops)}:aten.{op}")
            ops.append(SourceOp(ids[-1], f"aten.{op}.default", "cell", line, "<module>", module))
            members.append(instruction(f"{op}.{len(ops)}", op, int(nbytes / 2), index, ids[-1]))
        kind = "matmul" if "mm" in names[0] else "fusion"
        root = instruction(label, kind, int(nbytes / 2), index, ids[-1], tuple(members[-1:]))
        bound = "" if not factor else "compute" if flops / 9.2e14 > nbytes / 1.64e12 else "memory" if nbytes > 1000 else "on chip"
        places = (f"cell:{line}",)
        kernels.append(
            Kernel(label, kind, root, tuple(members), tuple(ids), places, False, "", "forward", flops, int(nbytes), 0, seconds * factor, bound)
        )
    made = [Edge(a, b, kernels[a].instruction, int(size * 1e6), space) for a, b, size in edges]
    buffers = []
    for consumer, label, size in inputs:
        at = instruction(label.replace(".", "_"), "parameter", int(size * 1e6), -1)
        made.append(Edge(-1, consumer, at, int(size * 1e6), space))
        buffers.append(Buffer(at, (), "argument", space, "bf16", (8, 16), int(size * 1e6), int(size * 1e6), 0, -1, len(rows), "", label))
    made.append(Edge(len(kernels) - 1, -1, kernels[-1].instruction, 4, space))
    use = SpaceUse(space, target.hbm_bytes, 1_040_000_000, 5, (-1, 2, 5, 9), (190_000_000, 540_000_000, 1_040_000_000, 300_000_000))
    return Program(
        name=name,
        target=target,
        mode=mode,
        compiler="libtpu 0.0.42.1" if target.is_tpu else "jaxlib 0.10.2",
        ops=tuple(ops),
        computations=("main",),
        instructions=tuple(instructions),
        kernels=tuple(kernels),
        edges=tuple(made),
        memory=ProgramMemory((use,), tuple(buffers), 1, 4, 1),
        flops=sum(kernel.flops for kernel in kernels),
        bytes=sum(kernel.bytes for kernel in kernels),
        time_s=sum(kernel.time_s for kernel in kernels),
        notes=(Note("emulated", "float64 has no hardware here: it is emulated in 2 ops."),),
        lost_ops=("n99:aten.view",),
    )


def with_reasons(program: Program) -> Program:
    """The program with two boundaries explained: one by the compiler's words, one by a rule."""
    kernels = program.kernels
    pairs = (
        NotFused(
            kernels[3].ops[-1],
            kernels[4].ops[0],
            3,
            4,
            "reduce_feeds_broadcast",
            "Softmax needs each row's finished sum before it can divide the first element, so the row is read a second time.",
            "`F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)` runs lines 6-12 as one kernel.",
            "Not fusing reduce.41 into divide.44 as operand can not be duplicated",
            "log",
            1_050_000,
        ),
        NotFused(
            kernels[0].ops[-1],
            kernels[1].ops[0],
            0,
            1,
            "matmul_operand",
            "A matmul reads its operand once for each tile of the result, so what makes it is not repeated inside.",
            "Nothing: the value is needed whole.",
            "rule: producers of a matmul operand with more than one row tile stay apart",
            "rule",
            33_600_000,
        ),
    )
    return replace(program, not_fused=pairs)


def payload(*programs: Program) -> dict[str, Any]:
    """What the viewer takes."""
    return {"format": "tpu-lab-fusion-graph", "schema": "1.0", "programs": [json.loads(program.to_json()) for program in programs]}


def small() -> dict[str, Any]:
    v6e = target_named("v6e")
    compiled = with_reasons(attention(v6e))
    return payload(compiled, attention(v6e, "eager"), with_reasons(attention(target_named("v5e"))), attention(CPU))


def layers(count: int, ops_per_layer: int = 475) -> dict[str, Any]:
    """A training step of `count` layers with that many ops each, four to five ops in a kernel, with skips as residuals make them."""
    rows: list[tuple[str, list[str], int, str, float, float, float]] = []
    edges: list[tuple[int, int, float]] = []
    names = ["addmm", "gelu", "add", "mul", "native_layer_norm", "view", "softmax", "bmm", "tanh"]
    for layer in range(count):
        start = len(rows)
        for part in range(ops_per_layer // 4):
            ops = [names[(part + i) % len(names)] for i in range(4 + part % 2 * (part % 3 > 1))]
            module = f"GPT.h.{layer}.{('attn', 'mlp', 'ln_1', 'ln_2')[part % 4]}"
            at = len(rows)
            rows.append((f"fusion.{at}", ops, 10 + part % 40, module, 1e9 * (1 + part % 7), 1e7 * (1 + part % 5), 1e-5 * (1 + part % 9)))
            if at:
                edges.append((at - 1, at, 25.2))
            if part % 6 == 5:
                edges.append((at - 5, at, 25.2))
        if layer:
            edges.append((start - 1, start + 8, 25.2))
    return payload(build(target_named("v6e"), "compile", f"gpt2-{count}", rows, edges, [], 1.0))


def text() -> str:
    return json.dumps(small(), ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
