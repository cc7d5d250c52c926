"""The budget of compiled programs: what was not used for the longest time goes first."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import program_cache


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Books of their own, so that the programs of other tests stay."""
    for name, value in {"_held": {}, "held_bytes": 0, "evicted": 0, "limit_bytes": 100}.items():
        monkeypatch.setattr(program_cache, name, value)
    monkeypatch.setattr(program_cache, "give_memory_back", lambda: None)
    yield


def remember(table: dict[Any, Any], key: Any, nbytes: int) -> Any:
    entry = SimpleNamespace(last=0)
    program_cache.remember(table, key, entry, nbytes)
    return entry


@pytest.mark.usefixtures("empty")
def test_within_the_budget_everything_stays() -> None:
    table: dict[Any, Any] = {}
    for i in range(10):
        remember(table, i, 10)
    assert list(table) == list(range(10)) and program_cache.counts() == (10, 100, 0)


@pytest.mark.usefixtures("empty")
def test_beyond_it_a_quarter_goes_the_longest_unused_first() -> None:
    table: dict[Any, Any] = {}
    entries = [remember(table, i, 20) for i in range(5)]
    entries[0].last = program_cache.tick()  # a run of the first
    remember(table, 5, 20)
    assert list(table) == [0, 4, 5] and program_cache.counts() == (3, 60, 3)


@pytest.mark.usefixtures("empty")
def test_a_second_key_leaves_with_its_program() -> None:
    general: dict[Any, Any] = {}
    quick: dict[Any, Any] = {}
    program_cache.also(quick, "quick", remember(general, "key", 60))
    assert quick["quick"] is general["key"]
    remember(general, "other", 60)
    assert quick == {} and list(general) == ["other"]
    program_cache.also(quick, "quick", SimpleNamespace())  # one that was dropped meanwhile gets no key again
    assert quick == {}


@pytest.mark.usefixtures("empty")
def test_a_program_larger_than_the_budget_is_kept_while_it_is_the_newest() -> None:
    table: dict[Any, Any] = {}
    remember(table, "small", 10)
    remember(table, "huge", 1000)
    assert list(table) == ["huge"]


@pytest.mark.usefixtures("empty")
def test_clear_drops_everything() -> None:
    table: dict[Any, Any] = {}
    remember(table, 1, 10)
    program_cache.clear()
    assert table == {} and program_cache.counts()[:2] == (0, 0)


def test_a_program_that_was_dropped_is_made_again() -> None:
    x = torch.arange(37.0, device="tpu")
    expected = (x * 2.5).tolist()
    before = program_cache.compilations
    assert (x * 2.5).tolist() == expected and program_cache.compilations == before
    program_cache.clear()
    assert (x * 2.5).tolist() == expected and program_cache.compilations > before


def test_runs_are_counted() -> None:
    x = torch.ones(3, device="tpu") + 1
    before = program_cache.runs()
    for _ in range(5):
        x = x + 1
    assert program_cache.runs() - before == 5
