"""Every copied case is a test. One worker process takes many cases, a notebook case gets one of its own (see `cases/run_cases.py`)."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "cases"
KINDS = "op,view,inplace,rng,dtype,memory,io,model,notebook"
SECONDS = 120


def _load_runner() -> Any:
    spec = importlib.util.spec_from_file_location("run_cases", FOLDER / "run_cases.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = _load_runner()
OPTIONS = argparse.Namespace(device="tpu", mode="eager", only=None, kind=KINDS)
"""Each case runs through `%%tpu eager`; a cell that names another mode runs in this one."""
CASES: list[dict[str, str]] = runner.chosen(OPTIONS)


def start_worker() -> Any:
    try:
        return runner.Worker(OPTIONS)
    except SystemExit as problem:  # the script's way of saying that the device cannot start
        pytest.fail(str(problem))


class Pool:
    """At most one shared worker, started at the first need and again after a crash."""

    def __init__(self) -> None:
        self.worker: Any = None

    def run(self, case: dict[str, str]) -> dict[str, Any]:
        if case["kind"] == "notebook":
            alone = start_worker()
            try:
                return alone.run(case["path"], SECONDS)
            finally:
                alone.stop()
        self.worker = self.worker or start_worker()
        got = self.worker.run(case["path"], SECONDS)
        if got["status"] in ("CRASH", "TIMEOUT"):
            self.stop()
        return got

    def stop(self) -> None:
        if self.worker is not None:
            self.worker.stop()
            self.worker = None


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    found = Pool()
    yield found
    found.stop()


@pytest.mark.parametrize("case", CASES, ids=[f"{case['id']}_{case['name']}" for case in CASES])
def test_case(case: dict[str, str], pool: Pool) -> None:
    got = pool.run(case)
    assert got["status"] == "pass", f"{got['status']}: {got['message']}\nright: {case['right']}\nsource: {case['source']}"


def test_cases_were_found() -> None:
    assert {case["kind"] for case in CASES} == set(KINDS.split(","))
