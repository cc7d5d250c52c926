from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from tpu_lab.record import Run
from tpu_lab.recording.frames import CellText
from tpu_lab.recording.recorder import Recorder

from .fakes import FakeDevice


class Leaf(nn.Module):
    def __init__(self, device: FakeDevice, op: str = "aten.leaf") -> None:
        super().__init__()
        self.device, self.op = device, op

    def forward(self, x: int) -> int:
        self.device.run(self.op)
        return x + 1


class Tree(nn.Module):
    """A module with a child of its own, one shared by two names, and one hidden in a list."""

    def __init__(self, device: FakeDevice) -> None:
        super().__init__()
        self.device = device
        self.first = Leaf(device)
        self.layers = nn.Sequential(Leaf(device), Leaf(device))
        self.again = self.first
        self.hidden = [Leaf(device)]

    def forward(self, x: int) -> int:
        self.device.run("aten.before")
        x = self.layers(self.first(x))
        x = self.hidden[0](self.again(x))
        self.device.run("aten.after")
        return x


def paths(run: Run) -> list[str]:
    return [run.modules[op.module].path if op.module >= 0 else "" for op in run.ops]


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


def test_paths_start_at_the_module_that_was_called(device: FakeDevice) -> None:
    tree = Tree(device)
    with Recorder() as recorder:
        device.run("aten.outside")
        tree(0)
        tree.layers(0)
    assert paths(recorder.run) == [
        "",
        "Tree",
        "Tree.first",
        "Tree.layers.0",
        "Tree.layers.1",
        "Tree.first",
        "Tree.<Leaf>",
        "Tree",
        "Sequential.0",
        "Sequential.1",
    ]
    assert {m.path: m.kind for m in recorder.run.modules}["Tree.layers"] == "Sequential"


def test_two_roots_of_one_class_are_told_apart(device: FakeDevice) -> None:
    a, b = Leaf(device), Leaf(device)
    with Recorder() as recorder:
        a(0), b(0), a(0)
    assert paths(recorder.run) == ["Leaf", "Leaf#2", "Leaf"]


def test_a_forward_that_raises_leaves_its_path(device: FakeDevice) -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Leaf(device)

        def forward(self, x: int) -> int:
            self.inner(x)
            raise RuntimeError("no")

    failing, leaf = nn.Sequential(Failing()), Leaf(device)
    with Recorder() as recorder:
        with pytest.raises(RuntimeError, match="no"):
            failing(0)
        leaf(0)
        device.run("aten.outside")
    assert paths(recorder.run) == ["Sequential.0.inner", "Leaf", ""]


def test_threads_have_stacks_of_their_own(device: FakeDevice) -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Waiting(nn.Module):
        def forward(self, x: int) -> int:
            inside.set()
            go_on.wait(10)
            device.run("aten.waited")
            return x

    waiting = Waiting()
    with Recorder() as recorder:
        worker = threading.Thread(target=waiting, args=(0,))
        worker.start()
        inside.wait(10)
        device.run("aten.meanwhile")
        go_on.set()
        worker.join()
    assert dict(zip((recorder.run.programs[op.program].op for op in recorder.run.ops), paths(recorder.run), strict=True)) == {
        "aten.meanwhile": "",
        "aten.waited": "Waiting",
    }


def test_a_module_entered_before_the_recording_is_left_without_harm(device: FakeDevice) -> None:
    recorder = Recorder()

    class Starts(nn.Module):
        def forward(self, x: int) -> int:
            recorder.__enter__()
            device.run("aten.a")
            return x

    Starts()(0)
    device.run("aten.b")
    recorder.__exit__(None, None, None)
    assert paths(recorder.run) == ["", ""]


def test_hooks_and_modules_go_with_the_block(device: FakeDevice) -> None:
    import gc
    import weakref

    hooks = (len(torch_module._global_forward_pre_hooks), len(torch_module._global_forward_hooks))
    leaf = Leaf(device)
    with Recorder() as recorder:
        leaf(0)
    assert (len(torch_module._global_forward_pre_hooks), len(torch_module._global_forward_hooks)) == hooks
    gone = weakref.ref(leaf)
    del leaf
    gc.collect()
    assert gone() is None and len(recorder.run.ops) == 1


def test_lines_are_right_however_deep_the_modules_are(device: FakeDevice) -> None:
    """The walk up the stack ends at the innermost module call; the cell's line must come out as if it had gone all the way."""
    text = "x = 0\nx = deep(x)\ndevice.run('aten.flat')\nx = deep(x)\n"
    filename = "/tmp/ipykernel_7/99.py"
    deep: nn.Module = Leaf(device)
    for _ in range(30):
        deep = nn.Sequential(deep)
    with Recorder(cells={filename: CellText(text=text)}) as recorder:
        exec(compile(text, filename, "exec"), {"deep": deep, "device": device})
    run = recorder.run
    assert [run.locations[op.cell_location].line for op in run.ops] == [2, 3, 4]
    assert [run.locations[op.location].function for op in run.ops] == ["Leaf.forward", "<module>", "Leaf.forward"]


def test_walks_are_short_inside_deep_modules(device: FakeDevice) -> None:
    """Counts the frames looked at per op: as many at depth 40 as at depth 5."""

    def frames_looked_at(depth: int) -> int:
        module: nn.Module = Leaf(device)
        for _ in range(depth):
            module = nn.Sequential(module)
        with Recorder() as recorder:
            seen = []
            locate = recorder._locate

            class Probe(nn.Module):
                def forward(self, x: int) -> int:
                    stack = recorder._thread()
                    count, frame = 0, sys._getframe(0)
                    while frame is not None and frame is not stack.anchor:
                        count, frame = count + 1, frame.f_back  # type: ignore[assignment]
                    seen.append(count)
                    assert locate(sys._getframe(0), stack)[0] is not None
                    return x

            nn.Sequential(*[Probe()], module)(0)
        return seen[0]

    assert frames_looked_at(40) == frames_looked_at(5) < 5


def test_recording_changes_nothing_for_dynamo() -> None:
    """No graph break, and no new compilation whether a function is compiled within a recording, without one, or both by turns."""
    import torch._dynamo

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.ones(2, 4)
    for first_recorded in (False, True):
        torch._dynamo.reset()
        graphs: list[Any] = []

        def backend(graph: torch.fx.GraphModule, inputs: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(graph)
            return graph.forward

        compiled = torch.compile(lambda x: net(x) + 1, backend=backend, fullgraph=True)
        if not first_recorded:
            compiled(x)
        for _ in range(2):
            with Recorder() as recorder:
                net(x)
                compiled(x)
                net(x)
            assert [m.path for m in recorder.run.modules] == ["Sequential", "Sequential.0", "Sequential.1"]
        compiled(x)
        assert len(graphs) == 1
    torch._dynamo.reset()


def test_a_compiler_that_is_loaded_within_the_block_finds_no_graph_break() -> None:
    """In a new process: the hooks are traced there."""
    code = """
import sys, torch
from tpu_lab.recording.recorder import Recorder
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward
with Recorder():
    assert "torch._dynamo" not in sys.modules
    torch.compile(lambda x: net(x) + 1, backend=backend, fullgraph=True)(torch.ones(2, 4))
print(len(graphs), [n.op for n in graphs[0].graph.nodes].count("call_function"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "3"]
