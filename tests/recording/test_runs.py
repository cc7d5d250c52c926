from __future__ import annotations

import pytest

from tests.record import samples
from tpu_lab.errors import RunNotFoundError
from tpu_lab.recording.store import RunStore


def test_runs_are_found_by_number_id_and_name_and_print_one_line_each() -> None:
    store = RunStore()
    run = store.add(samples.run())
    runs = store.runs()
    assert runs[0] is runs[-1] is runs[run.id] is runs[run.name] is run
    assert repr(runs) == repr(run) and repr(run).startswith(f"<Run {run.id} {run.name!r}: compile on XLA:CPU, 0.856 s, ")
    with pytest.raises(RunNotFoundError, match="there is no run 'r99'"):
        runs["r99"]
    store.clear()
    assert repr(store.runs()) == "no run has been recorded"
