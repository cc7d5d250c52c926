"""Snapshots put back everything a cell can change from the namespace. The golden is a deep copy taken before."""

from __future__ import annotations

import collections
import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.notebook.fakes import FakeLab
from tpu_lab.errors import OptionError
from tpu_lab.notebook import state
from tpu_lab.notebook.state import Snapshot, is_hidden


class Thing:
    def __init__(self) -> None:
        self.values = [1, 2]
        self.count = 0
        self.other: Thing | None = None


def _counter() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


def _trained() -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    return {"model": model, "optimizer": optimizer, "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}


def _train_on(ns: dict[str, Any]) -> None:
    for _ in range(2):
        ns["optimizer"].zero_grad()
        ns["model"](torch.randn(5, 3)).sum().backward()
        ns["optimizer"].step()
        ns["scheduler"].step()
    ns["model"].eval()


def _rebind_data(ns: dict[str, Any]) -> None:
    ns["t"].data = torch.zeros(5)
    ns["p"].grad = None


CASES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
    "bindings": (lambda: {"a": 1, "b": [1]}, lambda ns: ns.update(a=2, new=3) or ns.pop("b")),
    "list": (lambda: {"x": [1, [2, 3]]}, lambda ns: (ns["x"].append(4), ns["x"][1].clear())),
    "dict": (lambda: {"x": {"a": 1, "b": {"c": 2}}}, lambda ns: (ns["x"].pop("a"), ns["x"]["b"].update(d=5))),
    "dict order": (lambda: {"x": {"a": 1, "b": 2}}, lambda ns: ns["x"].update(a=ns["x"].pop("a"))),
    "ordered, default and counted dicts": (
        lambda: {"o": collections.OrderedDict(a=1, b=2), "d": collections.defaultdict(list, k=[1]), "c": collections.Counter("aab")},
        lambda ns: (ns["o"].move_to_end("a"), ns["d"]["n"].append(2), ns["c"].update("bbb")),
    ),
    "set": (lambda: {"x": {1, 2}}, lambda ns: ns["x"].add(3)),
    "deque": (lambda: {"x": collections.deque([1, 2], maxlen=2)}, lambda ns: ns["x"].append(3)),
    "bytearray": (lambda: {"x": bytearray(b"abc")}, lambda ns: ns["x"].extend(b"d")),
    "array": (lambda: {"x": np.arange(4.0)}, lambda ns: ns["x"].__imul__(2)),
    "array in a tuple": (lambda: {"x": (np.arange(3), [1])}, lambda ns: (ns["x"][0].fill(7), ns["x"][1].append(2))),
    "tensor": (lambda: {"x": torch.arange(4.0)}, lambda ns: ns["x"].mul_(2)),
    "view and base": (lambda: (lambda b: {"b": b, "v": b[1:3]})(torch.arange(4.0)), lambda ns: ns["v"].zero_()),
    "data and grad": (
        lambda: {"t": torch.arange(3.0), "p": torch.nn.Parameter(torch.ones(2))},
        _rebind_data,
    ),
    "grad in place": (lambda: (lambda p: (p.sum().backward(), {"p": p})[1])(torch.nn.Parameter(torch.ones(2))), lambda ns: ns["p"].grad.add_(5)),
    "requires grad": (lambda: {"x": torch.ones(2)}, lambda ns: ns["x"].requires_grad_()),
    "resized": (lambda: {"x": torch.arange(4.0)}, lambda ns: ns["x"].resize_(9).zero_()),
    "object": (lambda: {"x": Thing()}, lambda ns: (ns["x"].values.append(3), setattr(ns["x"], "count", 9), setattr(ns["x"], "new", 1))),
    "training": (_trained, _train_on),
    "tensors in containers": (
        lambda: {"x": {"k": [torch.ones(2), (torch.zeros(2),)]}},
        lambda ns: (ns["x"]["k"][0].add_(1), ns["x"]["k"][1][0].add_(2)),
    ),
    "integer tensor": (lambda: {"x": torch.arange(3)}, lambda ns: ns["x"].add_(1)),
    "bool tensor": (lambda: {"x": torch.tensor([True, False])}, lambda ns: ns["x"].logical_not_()),
}


def _plain(value: Any) -> Any:
    """A value in a form that == compares whole."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.requires_grad, value.detach().tolist(), None if value.grad is None else value.grad.tolist())
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, torch.nn.Module):
        return {name: _plain(part) for name, part in value.state_dict(keep_vars=True).items()} | {"training": value.training}
    if isinstance(value, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)):
        return _plain(value.state_dict())
    if isinstance(value, Thing):
        return {k: _plain(v) for k, v in vars(value).items()}
    if isinstance(value, dict):
        return [(k, _plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, collections.deque)):
        return [type(value).__name__, *map(_plain, value)]
    return value


@pytest.mark.parametrize(("make", "change"), CASES.values(), ids=CASES.keys())
def test_put_back(make: Callable[[], dict[str, Any]], change: Callable[[dict[str, Any]], Any]) -> None:
    namespace = make()
    identities = {name: id(value) for name, value in namespace.items()}
    before = copy.deepcopy(_plain(namespace))
    snapshot = Snapshot(namespace, FakeLab())
    for _ in range(3):
        change(namespace)
        assert _plain(namespace) != before
        snapshot.restore()
        assert _plain(namespace) == before
        assert {name: id(value) for name, value in namespace.items()} == identities
    snapshot.close()


def test_random_generators() -> None:
    namespace = {"g": torch.Generator().manual_seed(3)}

    def draw() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(1)), float(torch.rand(1, generator=namespace["g"]))]

    snapshot = Snapshot(namespace, FakeLab())
    first = draw()
    assert draw() != first
    snapshot.restore()
    assert draw() == first


def test_process_settings() -> None:
    snapshot = Snapshot({}, FakeLab())
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    snapshot.restore()
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32


def test_variables_of_closures() -> None:
    namespace = {"count": _counter()}
    namespace["count"]()
    snapshot = Snapshot(namespace, FakeLab())
    assert [namespace["count"](), namespace["count"]()] == [2, 3]
    snapshot.restore()
    assert namespace["count"]() == 2


def test_graphs_from_before_stay_usable() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * weight).sum()
    namespace = {"w": weight, "loss": loss}
    snapshot = Snapshot(namespace, FakeLab())
    with torch.no_grad():
        weight.mul_(1)  # bumps the version: backward would refuse
    snapshot.restore()
    other = torch.ones(3, requires_grad=True)
    (other * other).sum().backward()
    assert other.grad is not None


def test_cycles_and_sharing() -> None:
    thing = Thing()
    thing.other = thing
    shared = [1]
    namespace = {"t": thing, "a": shared, "b": {"same": shared}}
    snapshot = Snapshot(namespace, FakeLab())
    shared.append(2)
    thing.other = None
    snapshot.restore()
    assert thing.other is thing
    assert namespace["b"]["same"] is shared and shared == [1]


def test_unchanged_objects_are_not_written() -> None:
    class Watched(Thing):
        written = 0

        def __setattr__(self, name: str, value: Any) -> None:
            Watched.written += 1
            super().__setattr__(name, value)

    namespace = {"w": Watched()}
    snapshot = Snapshot(namespace, FakeLab())
    before = Watched.written
    snapshot.restore()
    assert Watched.written == before


def test_too_much_cpu_memory_is_refused_with_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_BYTES", 1000)
    with pytest.raises(OptionError, match="would have to copy") as caught:
        Snapshot({"big": torch.zeros(2000)}, FakeLab())
    assert "\n" not in str(caught.value)
    Snapshot({"small": torch.zeros(100)}, FakeLab())


@pytest.mark.parametrize(
    "name",
    [
        "_",
        "__",
        "___",
        "_i",
        "_ii",
        "_iii",
        "_i12",
        "_7",
        "_oh",
        "_dh",
        "_ih",
        "In",
        "Out",
        "__compiled_fn_3",
        "get_ipython",
        "_139688169238064_c0",
        "__torch_139688169238064_c12",
    ],
)
def test_names_of_ipython_and_dynamo_are_left_alone(name: str) -> None:
    assert is_hidden(name)


@pytest.mark.parametrize("name", ["_inputs", "_private", "x", "Input", "_i_am_mine", "exit_code", "_1st"])
def test_names_of_the_user_are_not(name: str) -> None:
    assert not is_hidden(name)


def test_what_dynamo_made_for_a_cell_stays() -> None:
    """A program whose names were taken away would be compiled again at each repeat."""
    names: dict[str, Any] = {"torch": torch, "x": torch.ones(2)}
    exec("def double(x):\n    return x * 2 if type(x) is torch.Tensor else x", names)
    compiled: list[Any] = []
    program = torch.compile(names["double"], backend=lambda graph, inputs: compiled.append(graph) or graph.forward)
    before = Snapshot(names, FakeLab())
    for _ in range(3):
        assert program(names["x"]).tolist() == [2, 2]
        before.restore()
    assert len(compiled) == 1
