"""Two runs with invented numbers that show every part of the run view; `extension/test/runs.json` holds them for the unit tests there.

python -m tests.browser.samples        writes that file again
"""

from __future__ import annotations

import json
from typing import Any

from tests.browser.server import REPOSITORY
from tpu_lab.record import codec
from tpu_lab.record.comparison import Comparison, Difference, ModeResult, NamedDifference, Verdict
from tpu_lab.record.findings import Finding
from tpu_lab.record.graphs import Graph, Region
from tpu_lab.record.happenings import Failure, Fallback, Flush, GraphBreak, Recompile, Sync
from tpu_lab.record.memory import CurvePoint, LineBytes, LiveTensor, Memory, Storages
from tpu_lab.record.ops import Ops, RunProgram, TensorSpec
from tpu_lab.record.run import Run
from tpu_lab.record.source import Location, ModulePath, Source, SourceLine
from tpu_lab.record.timing import Timing
from tpu_lab.record.totals import LineCost, Totals

FILE = REPOSITORY / "extension" / "test" / "runs.json"

CELL = """%%tpu compile
for step, n in enumerate([1024, 1024, 960]):
    x, mask = batch[:, :n], pad_mask[..., :n, :n]
    h = norm1(x)
    q, k, v = split_heads(qkv(h))
    s = (q @ k.mT) * 0.0884
    s = s.masked_fill(mask, float("-inf"))
    if s.amax().item() > 1e4:
        s = s * (1e4 / s.amax())
    p = s.softmax(-1)
    mid = p.float().kthvalue(n // 2).values  # for the log
    x = x + proj(merge_heads(p @ v))
    y = x + mlp(norm2(x))
(y.float() - target[:, :n]).square().mean()"""

LINES = {3: (0.31, 0, 2), 4: (9.8, 33.6, 9), 5: (148, 101, 4), 6: (61.2, 268, 3), 7: (0.02, 0, 1), 8: (22.4, 0, 1), 9: (0, 0, 0)}
LINES |= {10: (58.1, 268, 2), 11: (96, 537, 2), 12: (96.3, 33.6, 5), 13: (358, 134, 13), 14: (6.1, 67.1, 4)}
"""By line: ms, MB new, ops."""

OPS = [
    ("aten.native_layer_norm", "Block.norm1", 4, "bfloat16", (8, 1024, 2048), 0.134e9, 67_000_000, 9.8, "xla"),
    ("aten.addmm", "Block.qkv", 5, "bfloat16", (8192, 6144), 206e9, 159_000_000, 148.0, "xla"),
    ("aten.transpose.int", "Block", 5, "bfloat16", (8, 16, 1024, 128), None, None, 0.002, "view"),
    ("aten.bmm", "Block.attn", 6, "bfloat16", (128, 1024, 1024), 34.4e9, 336_000_000, 40.7, "xla"),
    ("aten.mul.Scalar", "Block.attn", 6, "bfloat16", (8, 16, 1024, 1024), 0.134e9, 537_000_000, 20.5, "xla"),
    ("aten.masked_fill.Scalar", "Block.attn", 7, "bfloat16", (8, 16, 1024, 1024), 0.0, 537_000_000, 0.02, "xla"),
    ("aten.amax", "Block.attn", 8, "bfloat16", (), 0.134e9, 268_000_000, 0.4, "xla"),
    ("aten._softmax", "Block.attn", 10, "bfloat16", (8, 16, 1024, 1024), 0.671e9, 806_000_000, 58.1, "xla"),
    ("aten.kthvalue", "", 11, "float32", (8, 16, 1024), None, 537_000_000, 96.0, "fallback"),
    ("aten.bmm", "Block.attn", 12, "bfloat16", (128, 1024, 128), 34.4e9, 336_000_000, 40.1, "xla"),
    ("aten.addmm", "Block.proj", 12, "bfloat16", (8192, 2048), 68.7e9, 109_000_000, 56.2, "xla"),
    ("aten.gelu", "Block.mlp", 13, "bfloat16", (8, 1024, 8192), 1.1e9, 268_000_000, 12.0, "xla"),
]
"""Name, module, line, dtype and shape of the result, FLOP, bytes, ms, how it ran."""


def source_of(text: str, name: str = "cell", kind: str = "cell") -> Source:
    return Source(name, kind, tuple(SourceLine(number, line) for number, line in enumerate(text.split("\n"), 1)))


def compiled_run(copies: int = 4) -> Run:
    """A run with every kind of mark, `copies` times the twelve ops of `OPS`, and one backward op at the end."""
    modules = sorted({op[1] for op in OPS} - {""})
    rows = [*(OPS * copies), ("aten.mm", "Block.proj", 14, "bfloat16", (2048, 2048), 68.7e9, 76_000_000, 61.0, "xla")]
    programs = tuple(RunProgram(name, kind, (), (TensorSpec(dtype, shape),), flops, size) for name, _, _, dtype, shape, flops, size, _, kind in rows)
    count = len(rows)
    ops = Ops(
        id=tuple(range(count)),
        program=tuple(range(count)),
        module=tuple(modules.index(row[1]) if row[1] else -1 for row in rows),
        location=tuple(row[2] - 1 for row in rows),
        cell_location=tuple(row[2] - 1 for row in rows),
        forward=tuple([-2] * (count - 1) + [10]),
        start_ns=tuple(range(count)),
        duration_ns=tuple(int(row[7] * 1e6) for row in rows),
        thread=tuple([0] * (count - 1) + [1]),
        reads=((),) * count,
        writes=((),) * count,
    )
    storages, memory = lives(count)
    findings = (
        Finding(
            "TL301",
            "Compiled again at step 3: x has 960 positions, not 1,024",
            "The key differs in one part: x.shape[1].",
            "Pad to 1,024, or `torch._dynamo.mark_dynamic(x, 1)`.",
            cost_ns=2_940_000_000,
            location=2,
            cell_location=2,
            message="tensor 'x' size mismatch at index 1. expected 1024, actual 960",
        ),
        Finding(
            "TL302",
            "Python branches on a tensor's value",
            "Which branch runs is known only when the value is, so the program ends here and a second one starts.",
            "Clamp without asking: `s = s.clamp(max=1e4)`",
            count=3,
            location=7,
            cell_location=7,
            message="Unsupported Tensor.item() call with capture_scalar_outputs=False",
        ),
        Finding(
            "TL201",
            ".item() waits for the device",
            "Python needs the number, so everything queued before it runs first.",
            "",
            cost_ns=67_200_000,
            count=3,
            location=7,
            cell_location=7,
            goes_away_with="TL302",
        ),
        Finding(
            "TL202",
            "aten.kthvalue runs on the host: dtype not lowered",
            "The lowering does not take an operand of this dtype.",
            "Log from a sample: `p[:, :, ::64]`.",
            cost_ns=288_000_000,
            bytes=1_611_000_000,
            count=3,
            location=10,
            cell_location=10,
        ),
    )
    return Run(
        id="r12",
        mode="compile",
        started="2026-12-01T10:00:00Z",
        timing=Timing(5_120_000_000, (856_000_000, 842_000_000, 884_000_000)),
        totals=Totals(
            wall_ns=6_800_000_000,
            ops=count,
            views=copies,
            kernels=12,
            kernels_exact=False,
            op_ns=856_000_000,
            builds=3,
            build_ns=4_200_000_000,
            peak_bytes=memory.peak_bytes,
            syncs=3,
            sync_ns=67_200_000,
            fallbacks=3,
            fallback_ns=288_000_000,
            graph_breaks=1,
            recompiles=1,
        ),
        lines=tuple(LineCost(0, line, int(ms * 1e6), 61_000_000 if line == 12 else 0, int(mb * 1e6), ops) for line, (ms, mb, ops) in LINES.items()),
        findings=findings,
        sources=(source_of(CELL),),
        locations=tuple(Location(0, line, function="<module>") for line in range(1, 15)),
        modules=tuple(ModulePath(path, path.rsplit(".", 1)[-1].capitalize()) for path in modules),
        programs=programs,
        ops=ops,
        storages=storages,
        memory=memory,
        syncs=(Sync("item", 4, 0, 22_400_000, 7, 7),) * 3,
        fallbacks=(Fallback("aten.kthvalue", "dtype", 537_000_000, 524_288, 0, 96_000_000, 10, 10),) * 3,
        graph_breaks=(
            GraphBreak(
                "branch",
                "Unsupported Tensor.item() call",
                7,
                7,
                3,
                id="GB0109",
                link="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0109.html",
                explanation="Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False.",
                hints=("Set `torch._dynamo.config.capture_scalar_outputs = True`.",),
                remedy="Clamp without asking: `s = s.clamp(max=1e4)`",
                function="cell",
                stack=(7,),
                graphs=2,
                graph_ns=1_100_000_000,
                syncs=3,
                sync_ns=67_200_000,
            ),
        ),
        recompiles=(
            Recompile(
                "shape",
                "cell",
                "tensor 'x' size mismatch at index 1. expected 1024, actual 960",
                2_940_000_000,
                2,
                2,
                guard="x.size(1)",
                old="1024",
                new="960",
                version=2,
                limit=8,
            ),
        ),
        graphs=(
            Graph("graph 0", "cell", 14, 1_300_000_000, 3, 2, "exact", 0, 2, 2),
            Graph("graph 1", "cell", 9, 1_100_000_000, 3, 2, "exact", -1, 8, 8),
        ),
        regions=(
            Region(0, 2, 2, False, "statement"),
            Region(0, 3, 7, True),
            Region(0, 8, 8, False, "statement"),
            Region(0, 9, 13, True),
            Region(0, 14, 14, True),
        ),
    )


LIVES = [
    ("", "bfloat16", (8, 1024, 2048), -1, -1, -1, 33_600_000, 0),
    ("", "float32", (8, 1024, 2048), -1, -1, -1, 67_100_000, 0),
    ("", "bfloat16", (8192, 2048), -1, -1, -1, 33_600_000, 0),
    ("", "bfloat16", (2048, 8192), -1, -1, -1, 33_600_000, 0),
    ("", "bfloat16", (6144, 2048), -1, -1, -1, 25_200_000, 0),
    ("aten.addmm", "bfloat16", (8192, 6144), 1, 10, 1, 100_700_000, 5),
    ("aten.bmm", "bfloat16", (8, 16, 1024, 1024), 3, 7, 3, 268_000_000, 6),
    ("aten._softmax", "bfloat16", (8, 16, 1024, 1024), 7, 10, 7, 268_000_000, 10),
    ("aten._to_copy", "float32", (8, 16, 1024, 1024), 8, 9, 8, 537_000_000, 11),
]
"""What lives when: made by, dtype, shape, born before op, died before op, id of the op that made it, bytes, line."""


def lives(ops: int) -> tuple[Storages, Memory]:
    """The storages of `LIVES` and the curve that follows from them."""
    specs = tuple(TensorSpec(dtype, shape) for _, dtype, shape, *_ in LIVES)
    columns = [tuple(column) for column in zip(*LIVES, strict=True)]
    storages = Storages(columns[6], columns[5], columns[3], columns[4], tuple(range(len(LIVES))))

    def live(op: int) -> list[int]:
        return [i for i, row in enumerate(LIVES) if row[3] <= op and not 0 <= row[4] <= op]

    curve = tuple(CurvePoint(op, sum(LIVES[i][6] for i in live(op)) + 12_000_000 * (op == 8)) for op in range(min(ops, 14)))
    peak = max(curve, key=lambda point: point.nbytes)
    largest = tuple(LiveTensor(i, LIVES[i][6], LIVES[i][0], specs[i], LIVES[i][7] - 1) for i in sorted(live(peak.op), key=lambda i: -LIVES[i][6]))
    lines = {location: [t.nbytes for t in largest if t.location == location] for location in dict.fromkeys(t.location for t in largest)}
    by_line = tuple(LineBytes(location, sum(sizes), len(sizes)) for location, sizes in lines.items())
    return storages, Memory(peak.nbytes, True, peak.op, 193_100_000, 193_100_000, largest, by_line, curve, specs)


def compared_run() -> Run:
    """Four modes of one cell: one faster, one too close to call, one that failed."""

    def leg(mode: str, target: str, first_ms: int, later_ms: tuple[int, ...], peak_mb: int, kernels: int, **more: Any) -> ModeResult:
        timing = Timing(first_ms * 1_000_000, tuple(ms * 1_000_000 for ms in later_ms))
        counts = {"syncs": 1, "fallbacks": 1, "graph_breaks": 0, "recompiles": 0} | more
        return ModeResult(mode, "tpu", target, "", timing, peak_mb * 1_000_000, True, 47, kernels, mode != "compile", **counts)

    worst = (NamedDifference("p", 0.0313, 10), NamedDifference("model.0.weight", 0.004, 13), NamedDifference("mid", None))
    rises = tuple(1_000_000 * n for n in (310, 340, 440, 710, 980, 1310, 1180, 900, 760, 420))
    modes = (
        leg("eager", "XLA:CPU", 1520, (1310, 1270, 1440, 9800), 1310, 47, curve=rises, difference=Difference(1.2e-4, 2.4e-7, "y", False, 14, 1.3e-6)),
        leg(
            "compile",
            "XLA:CPU",
            5120,
            (856, 842, 884),
            1040,
            8,
            graph_breaks=1,
            recompiles=1,
            difference=Difference(0.03, 0.0313, "p", False, 14, 0.016, worst),
            curve=tuple(1_000_000 * n for n in (310, 310, 840, 1040, 620, 310)),
        ),
        leg("fuse", "XLA:CPU", 0, (), 0, 0, failure="OptionError: Mode fuse does not exist yet"),
        leg("cpu", "PyTorch CPU", 1150, (1120, 1050, 1290), 1310, 47, syncs=0, fallbacks=0, curve=tuple(n * 9 // 10 for n in rises)),
    )
    verdicts = (
        Verdict("compile", "eager", "faster", 1.53, None, 3_600_000_000, 454_000_000.0, 9),
        Verdict("cpu", "eager", "close", None, 30, -370_000_000),
        Verdict("fuse", "eager", "failed"),
    )
    cell = CELL.replace("%%tpu compile", "%%tpu compare eager compile fuse cpu --repeat 3")
    timing = Timing(1_520_000_000, (1_310_000_000,))
    return Run(
        id="r13", name="attention", mode="compare", comparison=Comparison("eager", "cpu", modes, verdicts), sources=(source_of(cell),), timing=timing
    )


def failed_run() -> Run:
    """A run that ended in an exception of an op."""
    failure = Failure("aten.mm", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", 1, 1)
    cell = source_of("%%tpu eager\na @ b")
    places = (Location(0, 1), Location(0, 2))
    return Run(id="r14", totals=Totals(failures=1), failures=(failure,), sources=(cell,), locations=places, timing=Timing(3_100_000))


def fused_run() -> Run:
    """Two turns of a loop in deferred mode: the second met a size that no program was made for."""
    cell = source_of("%%tpu fuse\nfor x in batches:\n    y = net(x)\n    total += y.sum().item()")
    places = (Location(0, 3), Location(0, 4))
    flushes = (
        Flush("item", "fused", 12, 3, 0, 900_000, "", "", 1, 1, 11),
        Flush("item", "unseen", 12, 3, 1_000_000, 0, "shape", "aten.addmm: 960 rows, not 1,024", 1, 1, 23),
    )
    totals = Totals(ops=24, kernels=3, syncs=2)
    return Run(id="r15", mode="fuse", totals=totals, flushes=flushes, sources=(cell,), locations=places, timing=Timing(5_400_000))


def data() -> dict[str, Any]:
    """All of them as JSON data."""
    made = {"compiled": compiled_run(), "compared": compared_run(), "failed": failed_run(), "fused": fused_run()}
    return {name: json.loads(codec.dumps(run)) for name, run in made.items()}


def text() -> str:
    return json.dumps(data(), ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
