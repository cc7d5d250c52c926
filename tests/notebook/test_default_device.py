"""Where tensors are made inside a magic cell. `meta` stands for the device: it is the only other one every PyTorch has."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.notebook.conftest import Notebook
from tpu_lab.notebook.default_device import DefaultDevice

MOVED: dict[str, Callable[[], torch.Tensor]] = {
    "ones": lambda: torch.ones(3),
    "zeros": lambda: torch.zeros((2, 2)),
    "tensor": lambda: torch.tensor([1, 2]),
    "as_tensor": lambda: torch.as_tensor([1.0]),
    "arange": lambda: torch.arange(3),
    "rand": lambda: torch.rand(2),
    "randn": lambda: torch.randn(2),
    "randint": lambda: torch.randint(0, 3, (2,)),
    "randperm": lambda: torch.randperm(3),
    "full": lambda: torch.full((2,), 1.5),
    "eye": lambda: torch.eye(2),
    "linspace": lambda: torch.linspace(0, 1, 3),
    "normal": lambda: torch.normal(0.0, 1.0, size=(3,)),
    "window": lambda: torch.hann_window(4),
    "fftfreq": lambda: torch.fft.fftfreq(4),
    "device none": lambda: torch.ones(3, device=None),
    "module": lambda: torch.nn.Linear(2, 3).weight,
    "module buffer": lambda: torch.nn.BatchNorm1d(2).running_mean,
    "distribution": lambda: torch.distributions.Normal(0.0, 1.0, validate_args=False).sample((2,)),
}
KEPT: dict[str, Callable[[], torch.Tensor]] = {
    "code of another file": lambda: eval("torch.ones(2)", {"torch": torch, "__name__": "some_library.part"}),
    "named device": lambda: torch.ones(3, device="cpu"),
    "generator of the CPU": lambda: torch.randperm(4, generator=torch.Generator()),
    "out": lambda: torch.arange(3, out=torch.empty(0, dtype=torch.int64, device="cpu")),
    "normal of tensors": lambda: torch.normal(torch.zeros(3, device="cpu")),
    "from_numpy": lambda: torch.from_numpy(__import__("numpy").ones(2)),
    "legacy constructor": lambda: torch.Tensor([1.0]),
    "like": lambda: torch.zeros_like(torch.ones(2, device="cpu")),
    "PyTorch's own code": lambda: eval("torch.ones(2)", {"torch": torch, "__name__": "torch.somewhere"}),
    "this package's own code": lambda: eval("torch.ones(2)", {"torch": torch, "__name__": "tpu_lab.device.kernels"}),
}


@pytest.mark.parametrize("make", MOVED.values(), ids=MOVED.keys())
def test_moved(make: Callable[[], torch.Tensor]) -> None:
    with DefaultDevice("meta", __name__):
        assert make().device.type == "meta"
    assert make().device.type == "cpu"


LIBRARY = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 2)
        self.rest = self._more()
        self.register_buffer("scale", torch.ones(2))
    def _more(self):
        return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
def build():
    return Net()
def measure():
    return torch.nn.Linear(2, 2).weight
"""


def test_a_module_of_another_file_is_wholly_here_or_wholly_there() -> None:
    library: dict[str, Any] = {"torch": torch, "__name__": "some_library.nets"}
    exec(LIBRARY, library)
    notebook = {"__name__": "__main__", **{name: library[name] for name in ("Net", "build", "measure")}}
    with DefaultDevice("meta"):
        here = eval("Net()", notebook)
        there = eval("build()", notebook)
        weight = eval("measure()", notebook)
    assert {t.device.type for t in here.state_dict().values()} == {"meta"}
    assert {t.device.type for t in there.state_dict().values()} == {"cpu"}
    assert weight.device.type == "cpu"


@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT.keys())
def test_kept(make: Callable[[], torch.Tensor]) -> None:
    with DefaultDevice("meta", __name__):
        assert make().device.type == "cpu"


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index)])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_shuffling_loader_works_and_stays_on_the_cpu(workers: int) -> None:
    with DefaultDevice("meta", __name__):
        batches = list(DataLoader(Numbers(), batch_size=2, shuffle=True, num_workers=workers))
    assert [b.device.type for b in batches] == ["cpu"] * 3
    assert sorted(torch.cat(batches).flatten().tolist()) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_loading_draws_the_same_order_as_without() -> None:
    data = TensorDataset(torch.arange(8))
    torch.manual_seed(4)
    right = [b[0].tolist() for b in DataLoader(data, batch_size=2, shuffle=True)]
    torch.manual_seed(4)
    with DefaultDevice("meta", __name__):
        assert [b[0].tolist() for b in DataLoader(data, batch_size=2, shuffle=True)] == right


def test_optimizer_state_is_where_it_always_is() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    with DefaultDevice("meta", __name__):
        optimizer = torch.optim.Adam([weight])
        weight.grad = torch.ones(3, device="cpu")
        optimizer.step()
    assert {k: v.device.type for k, v in optimizer.state[weight].items()} == {"step": "cpu", "exp_avg": "cpu", "exp_avg_sq": "cpu"}


def test_a_device_context_inside_wins() -> None:
    with DefaultDevice("meta", __name__):
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == "meta"


def test_a_default_device_set_inside_stays() -> None:
    try:
        with DefaultDevice("cpu", __name__):
            torch.set_default_device("meta")
            assert torch.ones(1).device.type == "meta"
        assert torch.ones(1).device.type == "meta"
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"
    assert not torch.overrides._get_current_function_mode_stack()


def test_a_default_device_from_before_comes_back() -> None:
    torch.set_default_device("meta")
    try:
        with DefaultDevice("cpu", __name__):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == "meta"
    finally:
        torch.set_default_device(None)


def test_other_threads_are_not_in_the_cell() -> None:
    seen: list[str] = []
    with DefaultDevice("meta", __name__):
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


def test_other_tasks_are_not_in_the_cell_but_its_own_tasks_are() -> None:
    seen: dict[str, str] = {}

    async def make(name: str) -> None:
        await asyncio.sleep(0.01)
        seen[name] = torch.ones(1).device.type

    async def main() -> None:
        other = asyncio.ensure_future(make("other"))
        with DefaultDevice("meta", __name__):
            await asyncio.gather(make("own"), make("own too"))
        await other

    asyncio.run(main())
    assert seen == {"other": "cpu", "own": "meta", "own too": "meta"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_not_in_the_cell() -> None:
    with DefaultDevice("meta", __name__):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:  # nothing of the child may reach pytest
                os.write(write, torch.ones(1).device.type.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 10) == b"cpu"


def test_traced_by_dynamo() -> None:
    def f(v: torch.Tensor) -> torch.Tensor:
        return v + torch.ones(3) + torch.rand(3, generator=None)

    torch._dynamo.reset()
    with DefaultDevice("meta", __name__):
        explained = torch._dynamo.explain(f)(torch.ones(3))
    assert explained.graph_break_count == 0
    assert {n.kwargs.get("device", torch.device("meta")).type for graph in explained.graphs for n in graph.graph.nodes if n.target is torch.ones} == {
        "meta"
    }


def test_of_a_cell(notebook: Notebook) -> None:
    notebook.run("import torch")
    notebook.run("%%tpu eager --device cpu\na = torch.ones(1)")
    assert notebook.names["a"].device.type == "cpu"
    notebook.run("%%tpu eager --no-default-device\nb = torch.ones(1)\nc = torch.get_default_device().type")
    assert notebook.names["b"].device.type == "cpu"
    notebook.run("%%tpu eager\nd = str(torch.get_default_device())")
    assert notebook.names["d"] == "tpu:0"
    notebook.run("e = torch.get_default_device().type")
    assert notebook.names["e"] == "cpu"
