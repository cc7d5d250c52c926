"""What `make bench-compile` concludes from times. Nothing is measured here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import compiled
from benchmarks.workloads import WORKLOADS


def times(compile_ms: float, cpu_ms: float, inductor_ms: float | None = None) -> dict[str, dict[str, float]]:
    made = {"compile": {"steady_ms": compile_ms}, "cpu": {"steady_ms": cpu_ms}}
    return made if inductor_ms is None else {**made, "inductor": {"steady_ms": inductor_ms}}


def test_means_are_geometric_and_of_fixed_shapes_only() -> None:
    found = {"GPT block forward": times(1, 4, 1), "ViT training": times(1, 1), "RL rollout": times(9, 3, 1)}
    figures = compiled.targets(found)
    assert [(figure.measured, figure.met) for figure in figures] == [(pytest.approx(0.5), True), (1, True), (3, False)]


def test_the_workloads_that_change_are_there() -> None:
    assert set(compiled.CHANGING) <= set(WORKLOADS)


def test_a_run_in_pieces_measures_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured: list[str] = []

    def measure(name: str) -> dict[str, dict[str, float]]:
        measured.append(name)
        return times(1, 2, 2)

    monkeypatch.setattr(compiled, "_measured", measure)
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"MLP training on the digits": times(3, 2, 2)}))
    assert compiled.main(["--only", "training", "--keep", str(kept)]) == 0
    assert measured == [name for name in WORKLOADS if "training" in name and not name.startswith("MLP")]
    assert set(json.loads(kept.read_text())) == {name for name in WORKLOADS if "training" in name}
    assert "MLP training on the digits  3" in capsys.readouterr().out
