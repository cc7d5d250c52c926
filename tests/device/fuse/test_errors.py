"""A deferred call that fails when it runs at last: the error names the call and its line, comes with the next read, and nothing else is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import pytest
import torch

from tests.device.fuse.mode import deferring
from tpu_lab.device import memory
from tpu_lab.device.fuse import clusters
from tpu_lab.device.fuse.trace import Node
from tpu_lab.xla._jax_internals import XlaRuntimeError


@pytest.fixture(params=["always", "replay"])
def x(request: pytest.FixtureRequest) -> Iterator[torch.Tensor]:
    """The numbers 0 to 5, there already."""
    with deferring(request.param):
        x = torch.arange(6.0).to("tpu")
        yield x


def fail(monkeypatch: pytest.MonkeyPatch, op: str, words: str = "INTERNAL: the kernel failed") -> None:
    """From now on the strict program of an operator in a known cluster fails, and so does every program of a cluster."""

    class Failing:
        def run_into(self, *_: Any) -> None:
            raise XlaRuntimeError(words)

    def broken(arrays: Sequence[jax.Array]) -> Any:
        raise XlaRuntimeError(words)

    def each(node: Node) -> None:
        for program in node.programs.values():
            monkeypatch.setattr(program, "executable", Failing())
        if node.entry is not None and node.entry.info.op.startswith(op):
            monkeypatch.setattr(node.entry, "execute", broken)
        for following in node.next.values():
            each(following)

    each(clusters.root)


def line() -> int:
    return sys._getframe(1).f_lineno


def test_the_error_names_the_line_that_recorded_the_call(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    def chain() -> tuple[torch.Tensor, int]:
        y = x * 2
        place = line() + 1
        z = torch.nn.functional.softsign(y.neg())
        return z + 1, place

    z, place = chain()
    z.sum().item()
    del z
    fail(monkeypatch, "aten.neg")
    z, place = chain()
    words = rf"aten\.neg\(float32\[6\]\), called at .*test_errors\.py:{place}, deferred until now: XLA says: INTERNAL"
    with pytest.raises(RuntimeError, match=words):
        z.sum().item()
    monkeypatch.undo()
    torch.testing.assert_close(z.cpu(), torch.nn.functional.softsign(-2 * torch.arange(6.0)) + 1)


def test_a_cluster_from_two_places_names_the_right_one(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    def one() -> torch.Tensor:
        return x.exp().cos()

    def other() -> torch.Tensor:
        return x.exp().cos()

    one().cpu()
    other().cpu()
    fail(monkeypatch, "aten.cos")
    for function in (one, other):
        with pytest.raises(RuntimeError, match=rf"test_errors\.py:{function.__code__.co_firstlineno + 1},"):
            function().cpu()


def test_memory_that_ran_out_is_pytorchs_error(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    x.exp().sum().item()
    fail(monkeypatch, "aten.exp", "RESOURCE_EXHAUSTED: out of memory")
    with pytest.raises(torch.OutOfMemoryError, match=r"aten\.exp.*test_errors\.py"):
        x.exp().sum().item()
    monkeypatch.undo()
    assert x.exp().sum().item() == pytest.approx(torch.arange(6.0).exp().sum().item())


def test_an_error_comes_with_any_read_of_the_cluster_and_goes_when_it_is_gone(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    before = memory.stats().allocated

    def pair() -> tuple[torch.Tensor, torch.Tensor]:
        return x.sin(), x.tan()

    a, b = pair()
    a.cpu()
    del a, b
    fail(monkeypatch, "aten.sin")
    a, b = pair()
    for read in (a.cpu, b.tolist, a.cpu):
        with pytest.raises(RuntimeError, match=r"aten\.sin"):
            read()
    del a, b, read
    assert (x + 1).tolist() == [1.0, 2, 3, 4, 5, 6]
    assert memory.stats().allocated == before and memory.ledger.promised == 0
