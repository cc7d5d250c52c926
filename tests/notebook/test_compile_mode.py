"""`%%tpu compile`: the same meaning as a plain cell, one program per region, breaks with reason and line. The golden is the plain cell."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.notebook.conftest import Notebook
from tests.notebook.corpus import PYTHON, TORCH
from tests.notebook.test_cells_like_cells import _compare, _names, _seen

MAGIC = "%%tpu compile --device cpu"
SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.linspace(-1, 1, 12).view(3, 4)
w = torch.arange(8.0).view(4, 2) / 8
"""

TRAINING = """\
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
opt = torch.optim.{optimizer}
data = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 48).view(12, 4), torch.arange(12) % 3)
losses, seen, total = [], 0, 0.0
for epoch in range(3):
    for step, (xb, yb) in enumerate(torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)):
        opt.zero_grad()
        out = model(xb)
        loss = F.cross_entropy(out, yb)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        seen += len(xb)
        total += loss.item() * (step + 1)
        if step == 1 and epoch == 0:
            print('first', seen)
final = losses[-1]
final < losses[0]
"""


def _values(notebook: Notebook) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in notebook.names.items():
        if name.startswith("_") or name in ("In", "Out", "get_ipython", "exit", "quit", "open"):
            continue
        found[name] = {k: v.clone() for k, v in value.state_dict().items()} if isinstance(value, torch.nn.Module) else value
    return found


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        return same and torch.allclose(a.detach().double(), b.detach().double(), rtol=1e-5, atol=1e-6, equal_nan=True)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
    if type(a).__module__ in ("numpy", "builtins", "asyncio.futures", "_asyncio") and hasattr(a, "tolist"):
        return bool(a.tolist() == b.tolist())
    if isinstance(a, (int, str, bool, type(None))):
        return a == b and type(a) is type(b)
    return type(a).__name__ == type(b).__name__


def _same_as_plain(notebook: Notebook, body: str, setup: str = SETUP) -> None:
    notebook.run(setup)
    plain = notebook.run(body)
    right = _values(notebook)
    notebook.reset()
    notebook.run(setup)
    compiled = notebook.run(f"{MAGIC}\n{body}")
    _compare(plain, compiled)
    got = _values(notebook)
    assert set(got) == set(right)
    wrong = {name: (got[name], right[name]) for name in right if not _close(got[name], right[name])}
    assert not wrong
    assert _seen(compiled.text) == _seen(plain.text)


@pytest.mark.parametrize("body", TORCH.values(), ids=TORCH.keys())
def test_same_values_as_the_plain_cell(notebook: Notebook, body: str) -> None:
    _same_as_plain(notebook, body)


@pytest.mark.parametrize("body", PYTHON.values(), ids=PYTHON.keys())
def test_python_only_cells_are_as_plain(notebook: Notebook, body: str) -> None:
    plain = notebook.run(body)
    names = _names(notebook)
    notebook.reset()
    _compare(plain, notebook.run(f"{MAGIC}\n{body}"))
    assert _names(notebook) == names


@pytest.mark.parametrize(
    "optimizer",
    ["SGD(model.parameters(), lr=0.1, momentum=0.9)", "Adam(model.parameters(), lr=0.01)", "AdamW(model.parameters(), lr=0.01, foreach=False)"],
)
def test_training_gives_eagers_values(notebook: Notebook, optimizer: str) -> None:
    _same_as_plain(notebook, TRAINING.format(optimizer=optimizer))


def test_a_loop_body_is_compiled_once(notebook: Notebook) -> None:
    from torch._dynamo.utils import counters

    notebook.run(SETUP)
    counters.clear()
    notebook.run(f"{MAGIC}\ny = x\nfor i in range(12):\n    y = (y * 1.01 + i).sin()\ntotal = y.sum()")
    # one for the body with i = 0, one for any i, one for the last line
    assert counters["stats"]["unique_graphs"] <= 3
    assert counters["frames"]["total"] <= 3


def test_running_the_cell_again_in_a_repeat_compiles_nothing(notebook: Notebook) -> None:
    from torch._dynamo.utils import counters

    notebook.run(SETUP + "net = nn.Linear(4, 2)")
    counters.clear()
    notebook.run(f"{MAGIC} --repeat 3\ny = net(x).relu()\nz = (y * 2).sum()")
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("made", ["in the cell", "before the cell"])
def test_what_training_compiles(notebook: Notebook, made: str) -> None:
    """Forward and backward always; the step of an optimizer that stays the same object from run to run too."""
    from torch._dynamo.utils import counters

    setup, loop = TRAINING.format(optimizer="SGD(model.parameters(), lr=0.1)").split("losses, seen", 1)
    notebook.run(SETUP)
    if made == "before the cell":
        notebook.run(setup)
        setup = ""
    counters.clear()
    notebook.run(f"{MAGIC} --repeat 3\n{setup}losses, seen{loop}")
    (recording,) = notebook.lab.recordings
    assert recording.breaks == []  # backward() between two compiled parts is where it should be
    assert all("len(self.state" in told.message for told in recording.recompiles)
    assert counters["aot_autograd"]["ok"] == {"in the cell": 1, "before the cell": 2}[made]


def test_an_unchanged_cell_that_runs_again_compiles_nothing(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook, where a cell's file name depends on its text alone; in a terminal it has the number of the input."""
    from torch._dynamo.utils import counters

    monkeypatch.setattr(notebook.shell.compile, "get_code_name", lambda raw, code, number: f"<ipython-input-{hash(raw)}>")
    notebook.run(SETUP + "net = nn.Linear(4, 2)")
    notebook.run(f"{MAGIC}\ny = net(x).relu()\ny.sum()")
    counters.clear()
    first = notebook.names["_"]
    notebook.run("with torch.no_grad():\n    net.weight.zero_()\n    net.bias.fill_(1)")
    done = notebook.run(f"{MAGIC}\ny = net(x).relu()\ny.sum()")
    assert counters["stats"]["unique_graphs"] == 0
    assert float(notebook.names["_"]) == 6.0 != float(first)
    assert done.text.startswith("Out[")
    notebook.run("%tpu reset")
    notebook.run(f"{MAGIC}\ny = net(x).relu()\ny.sum()")
    assert counters["stats"]["unique_graphs"] == 1


def test_breaks_are_told_with_line_and_reason(notebook: Notebook) -> None:
    from tpu_lab.record.reasons import BreakReason

    notebook.run(SETUP)
    notebook.run(f"{MAGIC}\ny = x * 2\nprint('here')\nz = y + 1\nif z.sum() > 0:\n    z = z * 2\nv = z.sum().item() + 1\nr = x + v")
    (recording,) = notebook.lab.recordings
    found = [(line, reason or BreakReason.from_dynamo(message).id) for message, _, line, reason in recording.breaks]
    assert (3, "print") in found
    assert (5, "branch") in found
    assert (7, "item") in found
    assert len(found) == 3
    assert all(filename == recording.cell.filename for _, filename, _, _ in recording.breaks)


def test_regions_say_which_lines_ran_together(notebook: Notebook) -> None:
    notebook.run(SETUP)
    body = "import math\ndef f(v):\n    return v + 1\ny = f(x * 2)\nz = y * math.pi\nprint('mid')\n"
    body += "v = z.sum().item()\nfor i in range(2):\n    z = z + i\nn = 3\n"
    notebook.run(f"{MAGIC}\n{body}")
    (recording,) = notebook.lab.recordings
    found = sorted((told.first_line, told.last_line, told.reason) for told in recording.regions)
    assert found == [
        (2, 4, "statement"),
        (5, 6, ""),
        (7, 7, "statement"),
        (8, 8, ""),
        (9, 9, "statement"),
        (10, 10, ""),
        (11, 11, "no_tensors"),
    ]
    assert all(told.filename == recording.cell.filename for told in recording.regions)


def test_a_separation_inside_a_loop_is_counted_each_time(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(f"{MAGIC}\ny = x\nfor i in range(5):\n    y = y * 2\n    print('step')\n    y = y + 1\n")
    (recording,) = notebook.lab.recordings
    assert [(told.reason, told.frame.line, told.count) for told in recording.told] == [("print", 5, 5)]


def test_break_inside_a_called_function_is_told_at_its_line(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(f"{MAGIC}\ndef f(v):\n    a = v * 2\n    torch._dynamo.graph_break()\n    return a + 1\ny = f(x)\nz = y * 2")
    (recording,) = notebook.lab.recordings
    assert [line for _, _, line, _ in recording.breaks] == [4]


def test_a_function_left_uncompiled_is_told(notebook: Notebook) -> None:
    """pytorch/pytorch#93457: a break inside a loop of a function leaves the whole function uncompiled."""
    notebook.run(SETUP)
    notebook.run(f"{MAGIC}\ndef f(v):\n    for i in range(3):\n        v = v + i\n        print('round', i)\n    return v * 2\ny = f(x)")
    reasons = [(line, reason) for _, _, line, reason in notebook.lab.recordings[0].breaks]
    assert (5, "skipped") in reasons


@pytest.mark.parametrize("faulty", ["z = 1 / 0", "z = f(y)", "z = y[:, 9]", "z = y @ torch.ones(5, 5)", "raise KeyboardInterrupt", "z = g(y)"])
def test_an_error_is_no_finding_of_the_compiler(notebook: Notebook, faulty: str) -> None:
    notebook.run(f"{SETUP}def f(v):\n    return v / (1 // 0)\ndef g(v):\n    raise KeyboardInterrupt")
    done = notebook.run(f"{MAGIC}\ny = x * 2\n{faulty}")
    assert done.error is not None
    assert notebook.lab.recordings[0].breaks == []


def test_an_exception_that_is_caught_says_what_it_is(notebook: Notebook) -> None:
    notebook.run(f"{SETUP}def f(v):\n    w = v * 2\n    return w / (1 // 0)")
    notebook.run(f"{MAGIC}\ntry:\n    y = f(x)\nexcept ZeroDivisionError:\n    y = x\n")
    assert [reason for _, _, _, reason in notebook.lab.recordings[0].breaks] == ["raised"]


def test_recompiles_are_told_with_line_and_guard(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(f"{MAGIC}\nfor n in (2, 3, 4):\n    v = torch.ones(n, 2)\n    r = (v * 2).sum()")
    (recording,) = notebook.lab.recordings
    assert len(recording.recompiles) == 1
    told = recording.recompiles[0]
    assert (told.guard, told.old, told.new, told.reason) == ("n == 2", "2", "3", "")
    assert told.frame is not None and (told.frame.function, told.frame.filename) == ("cell", recording.cell.filename)
    assert told.frame.line in (3, 4)
    assert told.duration_ns > 0 and told.version == 2 and told.limit == 8


def test_errors_are_eagers_own(notebook: Notebook) -> None:
    notebook.run(SETUP)
    done = notebook.run(f"{MAGIC}\na = x.sin()\nb = a + 1\nc = b @ x\nd = c * 2")
    assert type(done.error) is RuntimeError
    assert str(done.error) == "mat1 and mat2 shapes cannot be multiplied (3x4 and 3x4)"
    assert "-> 4 c = b @ x" in done.text
    assert "a" in notebook.names and "b" in notebook.names and "c" not in notebook.names
    assert done.errors == ""


class Failing:
    """A backend whose programs fail when they run, before they change anything; `failures` times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self, graph: Any, inputs: Any) -> Any:
        from tpu_lab.compiler.events import progress

        def run(*args: Any) -> Any:
            progress.begun += 1
            if self.failures:
                self.failures -= 1
                raise MemoryError("no room")
            result = graph(*args)
            progress.changed += 1
            return result

        return run


def test_names_before_an_error_of_a_running_program_are_bound(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook.lab, "compile_backend", lambda device: Failing(1))
    notebook.run(SETUP)
    done = notebook.run(f"{MAGIC}\na = x * 2\nn = 4\nb = a[idx_not_there]\nc = b + 1")
    assert isinstance(done.error, NameError)
    assert "a" in notebook.names and "c" not in notebook.names and notebook.names["n"] == 4


def test_a_program_that_fails_runs_as_plain_python_and_says_so(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook.lab, "compile_backend", lambda device: Failing(1))
    notebook.run(SETUP)
    done = notebook.run(f"{MAGIC}\na = x * 2\na.add_(1)\nprint('once')\nb = a + 1")
    assert done.error is None and done.text.count("once") == 1
    assert torch.equal(notebook.names["b"], notebook.names["x"] * 2 + 2)
    (recording,) = notebook.lab.recordings
    assert [(told.reason, told.message, told.uncompiled) for told in recording.told if told.reason == "backend"] == [
        ("backend", "MemoryError: no room", True)
    ]


def test_a_program_that_fails_after_another_ran_is_not_repeated(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Failing(0)
    monkeypatch.setattr(notebook.lab, "compile_backend", lambda device: backend)
    notebook.run(SETUP + "\ndef two(v):\n    v.add_(1)\n    torch._dynamo.graph_break()\n    fail()\n    return v * 2\ny = torch.zeros(2)")
    notebook.names["fail"] = torch._dynamo.disable(lambda: setattr(backend, "failures", 1))
    done = notebook.run(f"{MAGIC}\nz = two(y)")
    assert isinstance(done.error, MemoryError)
    assert notebook.names["y"].tolist() == [1.0, 1.0]


def test_an_error_in_a_helper_keeps_names_and_lines(notebook: Notebook) -> None:
    notebook.run(SETUP)
    done = notebook.run(
        f"{MAGIC}\ndef helper(v):\n    q = v * 2\n    return q / divisor\nn = 2\na = x.sin() * n\nn = n + 1\nb = helper(a)\nc = b + 1"
    )
    assert isinstance(done.error, NameError)
    assert "-> 4     return q / divisor" in done.text
    assert "-> 8 b = helper(a)" in done.text
    assert "_dynamo" not in done.text
    assert "a" in notebook.names and "b" not in notebook.names


def test_a_name_that_is_read_before_it_is_bound(notebook: Notebook) -> None:
    notebook.run(SETUP)
    done = notebook.run(f"{MAGIC}\ny = x * 2\nz = y + later\nlater = x + 1")
    assert isinstance(done.error, NameError)
    assert str(done.error) == "name 'later' is not defined"
    assert "later" not in notebook.names


def test_nothing_of_the_machinery_stays_in_the_namespace_or_builtins(notebook: Notebook) -> None:
    import builtins

    notebook.run(SETUP)
    before = {n for n in notebook.names if not n.startswith("_")}
    notebook.run(f"{MAGIC}\ny = x * 2")
    assert {n for n in notebook.names if not n.startswith("_")} == before | {"y"}
    assert not hasattr(builtins, "__tpu_lab_region__")


def test_factories_of_a_compiled_cell_use_the_default_device(notebook: Notebook) -> None:
    notebook.run("import torch")
    done = notebook.run("%%tpu compile\nwith torch.device('meta'):\n    a = torch.ones(3)\nb = torch.ones(2, device='cpu') * 2")
    assert done.success
    assert notebook.names["a"].device.type == "meta"
    assert notebook.names["b"].device.type == "cpu"


def test_users_own_torch_compile_is_watched_in_an_eager_cell(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(
        "%%tpu eager --device cpu\n@torch.compile(backend='eager')\ndef f(v):\n    a = v * 2\n"
        "    torch._dynamo.graph_break()\n    return a + 1\ny = f(x)"
    )
    assert [line for _, _, line, _ in notebook.lab.recordings[0].breaks] == [5]
