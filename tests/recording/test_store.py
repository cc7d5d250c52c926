from __future__ import annotations

import threading

import pytest

from tpu_lab.errors import RunNotFoundError
from tpu_lab.record import Run
from tpu_lab.recording import store as module
from tpu_lab.recording.store import RunStore


def test_the_latest_of_a_name_is_found_and_ids_win() -> None:
    store = RunStore()
    for run in (Run(id="r1", name="base"), Run(id="r2", name="base"), Run(id="r3", name="r1")):
        assert store.add(run) is run
    assert store.get("base").id == "r2" and store.get("r1").id == "r1" and store.get().id == "r3"
    assert [run.id for run in store.runs()] == ["r1", "r2", "r3"]


def test_it_is_bounded_and_an_id_replaces_itself() -> None:
    store = RunStore(keep=2)
    for id in ("a", "b", "a", "c"):
        store.add(Run(id=id))
    assert [run.id for run in store.runs()] == ["a", "c"]
    store.clear()
    assert store.runs() == []
    with pytest.raises(ValueError, match="keep"):
        RunStore(0)


def test_an_unknown_name_lists_what_there_is() -> None:
    store = RunStore()
    with pytest.raises(RunNotFoundError, match="no run has been recorded"):
        store.get()
    store.add(Run(id="r1", name="base"))
    with pytest.raises(RunNotFoundError, match=r"there is no run 'x'\. Accepted: r1 or base"):
        store.get("x")


def test_threads_may_share_it() -> None:
    store = RunStore(keep=5)
    threads = [threading.Thread(target=lambda n=n: [store.add(Run(id=f"{n}.{i}")) for i in range(200)]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.runs()) == 5


def test_the_process_s_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "store", RunStore())
    module.store.add(Run(id="r9"))
    assert [run.id for run in module.runs()] == ["r9"] and module.get("r9").id == "r9"
