"""A small, hand-written run with every part filled in, for tests of the record and of what reads it."""

from __future__ import annotations

from tpu_lab.record.comparison import Comparison, Difference, ModeResult, Verdict
from tpu_lab.record.environment import Environment, Version
from tpu_lab.record.findings import Finding
from tpu_lab.record.graphs import Graph, Region
from tpu_lab.record.happenings import Failure, Fallback, Flush, GraphBreak, Recompile, Sync
from tpu_lab.record.memory import CurvePoint, LineBytes, LiveTensor, Memory, Storages
from tpu_lab.record.ops import Ops, RunProgram, TensorSpec
from tpu_lab.record.run import Run
from tpu_lab.record.source import Location, ModulePath, Source, SourceLine
from tpu_lab.record.timing import Timing
from tpu_lab.record.totals import LineCost, Totals

SMALL, LARGE = TensorSpec("float32", (8, 16)), TensorSpec("bfloat16", (8, 16, 1024, 1024))
CELL = ("%%tpu eager", "y = net(x)  # <script>alert('é')</script>", "if y.sum().item() > 0:", "    y.kthvalue(2)")


def mode_result(
    mode: str, first_ms: float, later_ms: tuple[float, ...], peak: int = 1_310_000_000, difference: Difference | None = None, failure: str = ""
) -> ModeResult:
    timing = Timing(int(first_ms * 1e6), tuple(int(ms * 1e6) for ms in later_ms))
    target = "PyTorch CPU" if mode == "cpu" else "XLA:CPU"
    return ModeResult(mode, "cpu" if mode == "cpu" else "tpu", target, f"r-{mode}", timing, peak, True, 47, 12, True, 1, 1, 0, 0, difference, failure)


def comparison() -> Comparison:
    modes = (
        mode_result("eager", 1520, (1310, 1270, 1440, 1300, 1330), difference=Difference(1e-6, 3.1e-7, "y", False, 4, 1.3e-6)),
        mode_result("compile", 5120, (856, 842, 884, 850, 860), 1_040_000_000, Difference(0.5, 8.3e-7, "net.weight", False, 4, 1.3e-6)),
        mode_result("cpu", 1150, (1120, 1050, 1290, 1100, 1130)),
        mode_result("fuse", 0, (), failure="NotImplementedError: aten::frobnicate <here>"),
    )
    verdicts = (
        Verdict("compile", "eager", "faster", 1.53, None, 3_600_000_000, 454_000_000.0, 9),
        Verdict("cpu", "eager", "close", None, 30, -370_000_000),
        Verdict("fuse", "eager", "failed"),
    )
    return Comparison("eager", "cpu", modes, verdicts)


def run(with_comparison: bool = True) -> Run:
    """Three forward ops (one of them in a file), one backward op, one view; a sync, a fallback, a break, a recompile, an exception."""
    return Run(
        id="r12",
        name="sample & co",
        mode="compile",
        target="XLA:CPU",
        started="2026-11-30T12:00:00Z",
        environment=Environment("3.11.7", "Linux", "x86_64", 16, (Version("torch", "2.13.0"),)),
        timing=Timing(5_120_000_000, (856_000_000, 842_000_000, 884_000_000)),
        totals=Totals(5_200_000_000, 5, 1, 3, True, 4_000_000, 2, 60_000_000, 1_040_000_000, 1, 22_400_000, 2, 96_000_000, 1, 1, 1),
        lines=(LineCost(0, 2, 3_000_000, 900_000, 268_000_000, 3), LineCost(0, 3, 22_400_000, 0, 4, 1, 1), LineCost(1, 7, 2_000_000, 0, 512, 1)),
        findings=(
            Finding(
                "TL202",
                "aten.kthvalue runs on the host",
                "No <lowering>.",
                "Use `x.topk(2)`, which is native.",
                "cost",
                2,
                96_000_000,
                537_000_000,
                3,
                3,
            ),
            Finding(
                "TL302",
                "Python reads a value inside the graph",
                "A value is needed.",
                "",
                location=2,
                cell_location=2,
                goes_away_with="TL201",
                message="Unsupported <b>\nsecond",
                link="https://example.org/gb0109.html",
            ),
        ),
        comparison=comparison() if with_comparison else None,
        sources=(
            Source("cell 3", "cell", tuple(SourceLine(n, text) for n, text in enumerate(CELL, 1))),
            Source("models/net.py", "file", (SourceLine(7, "        return x @ self.w"),)),
        ),
        locations=(
            Location(0, 2, 4, 2, 10, "<module>"),
            Location(1, 7, 15, 7, 25, "Net.forward"),
            Location(0, 3, 3, 3, 17, "<module>"),
            Location(0, 4, 4, 4, 17, "<module>"),
        ),
        modules=(ModulePath("Net", "Net"), ModulePath("Net.proj", "Linear")),
        programs=(
            RunProgram("aten.mm.default", "xla", (SMALL, SMALL), (LARGE,), 2.0e9, 800_000_000, 1024, 2, 60_000_000, "miss"),
            RunProgram("aten.t.default", "view", (SMALL,), (SMALL,)),
            RunProgram("aten.kthvalue.default", "fallback", (LARGE,), (SMALL,)),
        ),
        ops=Ops(
            id=(0, 1, 2, 3, 4),
            program=(0, 1, 2, 0, 0),
            module=(1, 0, -1, 1, -1),
            location=(1, 0, 3, 0, -1),
            cell_location=(0, 0, 3, 0, -1),
            forward=(-2, -2, -2, 0, -1),
            start_ns=(100, 2_000_100, 3_000_000, 99_000_000, 99_900_000),
            duration_ns=(2_000_000, 500, 48_000_000, 900_000, 40_000),
            thread=(0, 0, 0, 1, 1),
            reads=((0, 1), (0,), (2,), (2, 1), ()),
            writes=((2,), (0,), (3,), (4,), (4,)),
        ),
        storages=Storages((512, 512, 268_435_456, 512, 512), (-1, -1, 0, 2, 3), (-1, -1, 0, 2, 3), (-1, -1, 4, -1, -1), (0, 0, 1, 0, -1)),
        memory=Memory(
            1_040_000_000,
            True,
            2,
            1024,
            2048,
            (LiveTensor(2, 268_435_456, "aten.mm.default", LARGE, 0), LiveTensor(0, 512, "", SMALL, -1)),
            (LineBytes(0, 800_000_000, 1), LineBytes(-1, 1024, 2)),
            (CurvePoint(0, 1024), CurvePoint(2, 1_040_000_000)),
            (SMALL, LARGE),
        ),
        syncs=(Sync("item", 4, 5_000_000, 22_400_000, 2, 2, 2),),
        fallbacks=(Fallback("aten.kthvalue.default", "no_lowering", 536_870_912, 524_288, 3_000_000, 48_000_000, 3, 3),) * 2,
        graph_breaks=(
            GraphBreak(
                "item", "Unsupported <b>", 2, 2, 1, "GB0109", "https://example.org/gb0109", "No <i>.", ("Hint.",), "Do.", "f", (0, 2), 1, 5, 1, 9
            ),
        ),
        recompiles=(Recompile("shape", "forward", "x size mismatch", 294_000_000, 0, 0, "x.size(0)", "4", "5", 2, 8),),
        graphs=(Graph("graph 0", "cell", 4, 1_000, 2, 3, "exact", 0, 0, 0, ("x is a tensor",)),),
        regions=(Region(0, 2, 2, True), Region(0, 3, 4, False, "item")),
        flushes=(Flush("item", "unseen", 5, 2, 5_000_000, 90_000, "shape", "call 2, aten.mm: float32[3]", 2, 2, 2),),
        failures=(Failure("aten.mm.default", "RuntimeError", "mat1 and mat2 <shapes> cannot be multiplied", 1, 0, 2),),
    )
