"""How long a compile will take, from those before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tpu_lab.record.targets import target_named
from tpu_lab.xla import compile_times, program_store
from tpu_lab.xla.target_compile import Job

JOB = Job(b"x" * 1000, target_named("v6e"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LAB_CACHE_DIR", str(tmp_path))


def test_the_nearest_compile_of_like_size_tells_in_proportion() -> None:
    assert compile_times.estimate(JOB) is None
    compile_times.note(JOB, 20.0)
    compile_times.note(replace(JOB, bytecode=b"x" * 3000), 90.0)
    assert compile_times.estimate(JOB) == 20.0
    assert compile_times.estimate(replace(JOB, bytecode=b"x" * 2400)) == pytest.approx(72.0)
    assert compile_times.estimate(replace(JOB, bytecode=b"x" * 13_000)) is None, "nothing of like size"


@pytest.mark.parametrize("other", [replace(JOB, target=target_named("v5e")), replace(JOB, mode="eager"), replace(JOB, effort="quick")])
def test_compiles_of_another_kind_tell_nothing(other: Job) -> None:
    compile_times.note(other, 20.0)
    assert compile_times.estimate(JOB) is None


def test_the_newest_of_equal_ones_counts_and_old_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_times, "_KEPT", 3)
    for seconds in (5.0, 6.0, 7.0, 8.0):
        compile_times.note(JOB, seconds)
    assert compile_times.estimate(JOB) == 8.0
    assert (program_store.folder() / compile_times.NAME).read_text().count("v6e") == 3


def test_a_damaged_file_or_no_cache_means_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_times.note(JOB, 5.0)
    (program_store.folder() / compile_times.NAME).write_text('[["v6e"]]')
    assert compile_times.estimate(JOB) is None
    compile_times.note(JOB, 5.0)
    assert compile_times.estimate(JOB) == 5.0
    monkeypatch.setenv("TPU_LAB_CACHE", "0")
    compile_times.note(JOB, 50.0)
    assert compile_times.estimate(JOB) is None
