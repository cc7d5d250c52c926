"""The harness itself: what it calls a difference, how runs merge, and that the report shows the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tpu_lab.device.ways import cpu_overloads, way_of

from . import report, results
from .agreement import Agreement, Disagreement, Outcome, Tolerance, by_double_precision, same, same_error
from .nodes import Node, all_nodes
from .operands import Mover, as_conjugate, as_negative
from .pool import Worker
from .witness import Witness
from .worker import examine

ONE = torch.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (ONE + 1e-3, ONE),
        (ONE.double(), ONE),
        (ONE[:1], ONE),
        ([ONE], [ONE, ONE]),
        (None, ONE),
        (torch.tensor([1.0, torch.nan]), ONE),
        (2, 3),
        ({"a": ONE}, {"b": ONE}),
    ],
)
def test_differences(actual: Any, expected: Any) -> None:
    with pytest.raises(Disagreement):
        same(actual, expected, Tolerance(), "here")
    same(expected, expected, Tolerance(), "here")


def test_random_results_count_by_shape_and_dtype() -> None:
    same(ONE + 1, ONE, Tolerance(), "here", values=False)
    with pytest.raises(Disagreement):
        same(ONE.double(), ONE, Tolerance(), "here", values=False)


def test_nearness_is_judged_by_double_precision() -> None:
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    for actual, expected, agreement in (
        (ONE, ONE + 2e-4, Agreement.EXACT),
        (ONE + 1e-4, ONE + 2e-4, Agreement.NEAR),
        (ONE + 2e-4, ONE + 1e-4, Agreement.DIFFERENT),
        (torch.tensor([torch.inf, 2.0]), ONE + 1e-3, Agreement.DIFFERENT),
        (torch.tensor([torch.nan, 2.0]), torch.tensor([torch.nan, 2.0]), Agreement.EXACT),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), Agreement.DIFFERENT),
    ):
        assert by_double_precision(actual, expected, exact, Tolerance()) is agreement
    assert by_double_precision([ONE, ONE + 1e-4], [ONE, ONE + 2e-4], [exact, exact], Tolerance()) is Agreement.NEAR


def test_types_of_exceptions() -> None:
    same_error(Outcome(error=IndexError("x")), IndexError("y"), "here")
    for outcome in (Outcome(value=ONE), Outcome(error=TypeError("x"))):
        with pytest.raises(Disagreement):
            same_error(outcome, IndexError("y"), "here")


def test_samples_keep_their_geometry() -> None:
    base = torch.arange(24.0).reshape(4, 6) * (1 + 1j)
    view, other = base.t()[1::2], base[1]
    moved, second = Mover("tpu")((as_negative(as_conjugate(view)), other))
    assert moved.is_neg() and moved.shape == view.shape and second.stride() == other.stride()
    torch.testing.assert_close(moved.cpu(), view)
    left, right = Mover("tpu")((view, other))
    right.zero_()
    assert left.stride() == view.stride() and (left[:, 1] == 0).all(), "views of one storage stay views of one storage"


def test_declared_nodes(tmp_path: Path) -> None:
    path = tmp_path / "declared.json"
    path.write_text(json.dumps({"nodes": {"a,b|out|*": "because"}, "fallbacks": {}}))
    declared = results.Declared(path)
    assert declared.reason("b|out|int8") == "because" and declared.reason("b|functional|int8") is None
    failed, passed = ({"node": "a|out|int8", "status": status, "reason": "differs"} for status in ("fail", "pass"))
    assert results.judged(failed, declared)["status"] == "declared"
    assert results.judged(passed, declared)["status"] == "fail"
    fell = {"node": "b|functional|int8", "status": "pass", "fallbacks": ["aten.b.default"]}
    assert results.judged(fell, declared)["status"] == "fail"


def test_overloads_without_a_program_are_declared_and_only_those() -> None:
    """One that got a lowering has to leave the list."""
    without = {f"aten.{op._schema.name[6:]}.{op._overloadname}" for op in cpu_overloads() if way_of(op) in ("host", "fallback")}
    assert without == results.Declared().fallbacks.keys()


def test_declared_nodes_still_differ() -> None:
    """The first node of each declaration that has samples; `make conformance` looks at all of them."""
    declared, keys = results.Declared(), sorted(node.key for node in all_nodes())
    for pattern in declared.nodes:
        entries = (examine(Node.of(key), 2, Witness()) for key in keys if results.fits(key, pattern))
        first = next(entry for entry in entries if entry["status"] != "none")
        assert first["status"] == "fail", f"{first['node']} passes: take it off declared.json"


def test_a_journal_survives_a_line_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"node": "a|out|int8", "status": "fail"}\n{"node": "a|out|int8", "status": "pass"}\n{"node": "b|o')
    assert results.read_journal(path) == {"a|out|int8": {"node": "a|out|int8", "status": "pass"}}


def test_a_worker_that_takes_too_long_or_dies_fails_the_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.conformance.pool.JOURNAL", tmp_path / "journal.jsonl")
    monkeypatch.setattr("tests.conformance.pool.START_SECONDS", 0)
    slow = Worker(0, samples=1, timeout=0)
    slow.give("add|functional|float32")
    assert slow.answer() == {"node": "add|functional|float32", "status": "fail", "reason": "no answer within 0 s (exit code None)", "overloads": []}
    dead = Worker(1, samples=1, timeout=60)
    dead.give("add|functional|float32")
    assert dead.process is not None
    dead.process.kill()
    entry = None
    while entry is None:
        entry = dead.answer()
    assert entry["reason"] == "the process died (exit code -9)"


def test_the_data_names_nodes_that_exist_and_the_report_shows_it() -> None:
    data, declared = results.load(), results.Declared()
    assert data["nodes"].keys() <= {node.key for node in all_nodes()}
    assert report.REPORT.read_text() == report.render(data, declared), "write it again: python -m tests.conformance.report"
    assert Node.of("add|out|int8").key == "add|out|int8"
