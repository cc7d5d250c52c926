"""What torch.compile did in a block, on the device: told from one run, with counts, costs and places."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401
from tpu_lab.record import Run
from tpu_lab.recording.compile_watch import CompileWatch
from tpu_lab.recording.recorder import Recorder


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def watched(function: Callable[[], Any], guards: bool = False) -> Run:
    recorder = Recorder()
    with recorder, CompileWatch(recorder, guards):
        function()
    return recorder.run


def line_of(run: Run, location: int, function: Callable[..., Any]) -> int:
    """The line of a location, counted from the function's `def` line."""
    return run.locations[location].line - inspect.getsourcelines(function)[1]


def helper(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


def broken(x: torch.Tensor, n: float) -> torch.Tensor:
    y = helper(x) + n
    if y.sum() > 0:
        y = y * 3
    return y - 1


def test_a_break_is_told_once_with_id_stack_count_and_cost() -> None:
    compiled = torch.compile(broken, backend="tpu")
    x = torch.ones(3, 4, device="tpu")
    run = watched(lambda: [compiled(x, 1.0) for _ in range(5)])
    told = {b.reason: b for b in run.graph_breaks}
    assert set(told) == {"requested", "branch"} and len(run.graph_breaks) == 2
    asked, branch = told["requested"], told["branch"]
    assert (asked.id, asked.count, asked.function, line_of(run, asked.location, helper)) == ("GB0025", 5, "helper", 2)
    assert asked.link.endswith("/gb0025.html") and asked.hints and "User-inserted" in asked.explanation
    assert [run.locations[i].function for i in asked.stack][-2:] == ["broken", "helper"]
    assert (asked.graphs, asked.uncompiled) == (2, False) and asked.graph_ns > 0  # the rest of the helper, and of its caller
    assert (branch.id, branch.count, branch.syncs, line_of(run, branch.location, broken)) == ("GB0170", 5, 5, 2)
    assert branch.sync_ns > 0 and "torch.where" in branch.remedy


def test_a_break_of_a_function_compiled_before_is_told_too() -> None:
    compiled = torch.compile(broken, backend="tpu")
    x = torch.ones(3, 4, device="tpu")
    compiled(x, 1.0)
    run = watched(lambda: [compiled(x, 1.0) for _ in range(3)])
    assert {(b.id, b.count, b.graphs) for b in run.graph_breaks} == {("GB0025", 3, 0), ("GB0170", 3, 0)}
    assert all(g.compile_ns == 0 and g.runs == 3 for g in run.graphs)


def test_graphs_carry_runs_programs_and_the_break_at_their_end() -> None:
    compiled = torch.compile(broken, backend="tpu")
    x = torch.ones(3, 4, device="tpu", requires_grad=True)
    run = watched(lambda: [compiled(x, 1.0).sum().backward() for _ in range(2)], guards=True)
    first = run.graphs[0]
    assert (first.function, first.nodes, first.runs, first.programs) == ("helper", 1, 2, 2)  # forward and backward
    assert run.graph_breaks[first.ended_by].id == "GB0025" and first.compile_ns > 0
    assert any("check_tensor(x" in guard for guard in first.guards)
    assert not any("0x" in guard or "_dynamo_" in guard for graph in run.graphs for guard in graph.guards)
    ends = [g for g in run.graphs if g.ended_by < 0]
    assert {g.function for g in ends} == {"helper", "broken"}


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x + 1
        print("round")
    return x


def test_a_function_left_uncompiled_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = torch.compile(in_a_loop, backend="tpu")
    run = watched(lambda: compiled(torch.ones(2, device="tpu")))
    (found,) = run.graph_breaks
    assert (found.reason, found.uncompiled, found.id, line_of(run, found.location, in_a_loop)) == ("skipped", True, "GB0059", 3)
    assert capsys.readouterr().out == "round\nround\n" and not run.graphs


def test_dynamo_never_looks_below_our_kernels() -> None:
    """jax logs and converts dtypes in Python while a kernel is compiled; that code is in the standard library and in ml_dtypes."""
    seen = []

    def uncompiled(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            torch._dynamo.graph_break()
            x = (x.to(torch.bfloat16) * 3).float().erfinv().kron(x)
        return torch.linalg.matrix_exp(x[:2, :2])

    class Watch(CompileWatch):
        def compiled(self, metrics: Any) -> None:
            seen.append(metrics["co_filename"])
            super().compiled(metrics)

    recorder = Recorder()
    with recorder, Watch(recorder):
        torch.compile(uncompiled, backend="tpu")(torch.full((3, 5), 0.1, device="tpu"))
    assert set(seen) == {__file__}, "frames of other files were traced"


class Settings:
    def __init__(self) -> None:
        self.scale = 2


def scaled(x: torch.Tensor, sizes: list[int], settings: Settings) -> torch.Tensor:
    return x * settings.scale + len(sizes)


def test_recompiles_tell_old_and_new_value() -> None:
    compiled = torch.compile(scaled, backend="tpu")
    settings, x = Settings(), torch.ones(3, device="tpu")

    def changes() -> None:
        compiled(x, [1], settings)
        settings.scale = 5
        compiled(x, [1], settings)
        compiled(x, [1, 2], settings)
        compiled(torch.ones(7, device="tpu"), [1, 2], settings)
        compiled(torch.ones(7, device="tpu", dtype=torch.float64), [1, 2], settings)

    run = watched(changes)
    found = [(r.reason, r.guard, r.old, r.new, r.version) for r in run.recompiles]
    assert found == [
        ("value", "settings.scale == 2", "2", "5", 2),
        ("length", "len(sizes) == 1", "1", "2", 3),
        ("shape", "tensor 'x' size mismatch at index 0", "3", "7", 4),
        ("dtype", "tensor 'x' dtype mismatch", "Float", "Double", 5),
    ]
    assert all(r.duration_ns > 0 and r.limit == 8 and r.function == "scaled" for r in run.recompiles)
    assert line_of(run, run.recompiles[0].location, scaled) == 1


def counted(x: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    return x * len(sizes)


def test_before_the_limit_there_is_a_warning_at_the_limit_a_finding() -> None:
    from tpu_lab.analysis.findings import findings

    compiled = torch.compile(counted, backend="tpu")
    x = torch.ones(2, device="tpu")
    near = watched(lambda: [compiled(x, [1] * n) for n in range(1, 8)])
    assert [f.id for f in findings(near) if f.id != "TL201"] == ["TL301", "TL304"]
    beyond = watched(lambda: [compiled(x, [1] * n) for n in range(8, 11)])
    assert [r.reason for r in beyond.recompiles] == ["length", "limit"]
    limit = next(f for f in findings(beyond) if f.id == "TL303")
    assert "recompile_limit" in limit.remedy and beyond.locations[limit.location].function == "counted"


def test_nothing_stays_attached() -> None:
    import logging

    from tpu_lab.compiler import events

    log = logging.getLogger("torch.__trace")
    before = list(log.handlers)
    with pytest.raises(ZeroDivisionError):
        watched(lambda: 1 // 0)
    assert [h for h in log.handlers if h not in before] == [] and events.observer is None
