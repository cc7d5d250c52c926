"""`%%tpu compare`: every mode from the same state, the first one's results stay. The golden is one run of the plain cell."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.notebook.conftest import Notebook
from tpu_lab.notebook.cpu_twins import OnCpu, replace_by_twins
from tpu_lab.notebook.outcome import difference, lines_of, outcome
from tpu_lab.notebook.state import Reachable

COMPARE = "%%tpu compare eager compile --device cpu"
SETUP = """\
import torch
from torch import nn
torch.manual_seed(1)
model = nn.Linear(4, 2)
opt = torch.optim.Adam(model.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 12).view(3, 4)
log, runs = [], 0
"""
BODY = """\
opt.zero_grad()
noise = torch.rand(3, 4)
loss = model(x + noise).pow(2).sum()
loss.backward()
opt.step()
log.append(loss.item())
runs += 1
print('ran', runs)
runs
"""


REACH = "from tests.notebook import conftest\nlab = conftest.current.lab\n"


def _mode(notebook: Notebook) -> str:
    return notebook.lab.recordings[-1].mode


def _state(notebook: Notebook) -> dict[str, Any]:
    names = notebook.names
    return {
        "weight": names["model"].weight.tolist(),
        "grad": names["model"].weight.grad.tolist(),
        "step": [s["step"].item() for s in names["opt"].state.values()],
        "log": list(names["log"]),
        "runs": names["runs"],
        "next": torch.rand(2).tolist(),
    }


def test_state_is_as_after_one_run_of_the_first_mode(notebook: Notebook) -> None:
    notebook.run(SETUP)
    plain = notebook.run(BODY)
    right = _state(notebook)
    notebook.reset()
    notebook.run(SETUP)
    done = notebook.run(f"{COMPARE} --repeat 3\n{BODY}")
    assert done.success
    assert _state(notebook) == right
    assert re.sub(r"Out\[\d+\]", "Out", done.text) == re.sub(r"Out\[\d+\]", "Out", plain.text)
    assert notebook.names["_"] == 1


def test_the_comparison(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(f"{COMPARE} --repeat 4 --name both\n{BODY}")
    eager, compiled, shown = notebook.lab.kept
    assert (eager.mode, compiled.mode) == ("eager", "compile")
    assert eager.timing.repeats == compiled.timing.repeats == 4
    assert notebook.lab.shown == [shown]
    assert (shown.mode, shown.name, shown.id) == ("compare", "both", eager.id + "c")
    ((runs, reference, differences, failures),) = notebook.lab.compared
    assert list(runs) == ["eager", "compile"] and reference == "eager" and failures == {}
    found = differences["compile"]
    assert found.max_rel is not None and found.max_rel < 1e-4 and found.compared >= 6
    assert shown.comparison is not None


def test_how_often_without_repeat(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    from tpu_lab.notebook import comparing

    notebook.run("n = 0")
    notebook.run("%%tpu compare eager cpu --device cpu\nn += 1")
    assert [run.timing.repeats for run in notebook.lab.kept[:2]] == [comparing.MOST_REPEATS] * 2
    monkeypatch.setattr(comparing, "REPEAT_SECONDS", 0.0)
    notebook.run("%%tpu compare eager cpu --device cpu\nn += 1")
    assert [run.timing.repeats for run in notebook.lab.kept[3:5]] == [1, 1]
    assert notebook.names["n"] == 2


def test_the_first_mode_runs_last_and_first_runs_alone_are_recorded(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        notebook.lab, "note", lambda: seen.append((_mode(notebook), notebook.lab.recordings[-1].active, notebook.lab.strict_now)), False
    )
    notebook.run(f"%%tpu compare eager cpu --device cpu --repeat 1\n{REACH}lab.note()")
    assert seen == [("cpu", True, None), ("cpu", False, None), ("eager", True, True), ("eager", False, False)]


def test_an_error_in_every_mode_comes_out_as_from_the_plain_cell(notebook: Notebook) -> None:
    done = notebook.run(f"{COMPARE}\nkept = 1\nprint('before')\n1 / 0")
    assert isinstance(done.error, ZeroDivisionError)
    assert "-> 4 1 / 0" in done.text
    assert done.text.splitlines().count("before") == 1
    assert notebook.names["kept"] == 1
    assert notebook.lab.strict_now is None


def test_an_error_in_another_mode_is_told_and_the_rest_goes_on(notebook: Notebook) -> None:
    cell = "a = 1\nif lab.recordings[-1].mode == 'cpu':\n    raise KeyError('only here')\nb = 2"
    done = notebook.run(f"%%tpu compare eager cpu --device cpu --repeat 1\n{REACH}{cell}")
    assert done.success
    assert (notebook.names["a"], notebook.names["b"]) == (1, 2)
    assert done.errors.strip() == "%%tpu compare: the cell raised in mode cpu only: KeyError: 'only here'"
    ((_, reference, differences, failures),) = notebook.lab.compared
    assert reference == "eager" and list(failures) == ["cpu"] and differences == {}
    assert notebook.lab.shown[0].comparison.modes[1].failure.startswith("KeyError")  # type: ignore[union-attr]


def test_sys_exit_keeps_the_names_bound_before_it(notebook: Notebook) -> None:
    notebook.run(SETUP)
    done = notebook.run(f"{COMPARE} --repeat 1\nimport sys\nfirst = x * 2\nsys.exit('enough')\nlater = 1")
    assert isinstance(done.error, SystemExit)
    assert "first" in notebook.names and "later" not in notebook.names


def test_what_cannot_be_rewound_is_said(notebook: Notebook) -> None:
    from tpu_lab.analysis.findings import findings

    notebook.run(SETUP)
    notebook.run("batches = (x * i for i in range(9))\nnames = iter(['a', 'b'])\nheld = {'it': batches}\nplain = [1, 2]\nunused = iter([])")
    notebook.run(f"{COMPARE} --repeat 1\nrows = iter(plain)\ny = next(rows) + x.sum()\nz = next(held['it'])\nn = next(names, '')\nb = next(batches)")
    run = notebook.lab.kept[-1]
    assert run.comparison is not None and sorted(run.comparison.not_rewound) == ["batches", "held", "names"]
    (told,) = [f for f in findings(run) if f.id == "TL306"]
    assert told.severity == "wrong" and "batches" in told.reason


def test_loaders_and_own_iterators_are_put_back_so_nothing_is_said(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(
        "class Rows:\n    at = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.at += 1\n        return self.at\n"
        "rows = Rows()\nloader = torch.utils.data.DataLoader(range(4), batch_size=2)"
    )
    notebook.run(f"{COMPARE} --repeat 1\ny = x * next(rows)\nfor batch in loader:\n    y = y + batch.sum()")
    run = notebook.lab.kept[-1]
    assert run.comparison is not None and run.comparison.not_rewound == ()
    assert notebook.names["rows"].at == 1


def test_an_interrupt_leaves_the_state_from_before(notebook: Notebook) -> None:
    notebook.run("n = 5\nlog = [1]")
    notebook.names["lab"] = notebook.lab
    done = notebook.run(
        "%%tpu compare eager cpu --device cpu\nn = 6\nlog.append(2)\nif lab.recordings[-1].mode == 'cpu':\n    raise KeyboardInterrupt"
    )
    assert isinstance(done.error, KeyboardInterrupt)
    assert notebook.names["n"] == 5 and notebook.names["log"] == [1]


def test_awaiting_cell(notebook: Notebook) -> None:
    notebook.run("import asyncio")
    done = notebook.run("%%tpu compare eager cpu --device cpu --repeat 1\na = await asyncio.sleep(0, 3)\na")
    assert done.success
    assert notebook.names["a"] == 3


def test_save_the_comparison(notebook: Notebook, tmp_path: Path) -> None:
    from tpu_lab.record.run import Run

    file = tmp_path / "c.json"
    notebook.run(f"%%tpu compare eager cpu --device cpu --repeat 1 --save {file}\na = 1.5")
    assert [m.mode for m in Run.load(file).comparison.modes] == ["eager", "cpu"]  # type: ignore[union-attr]


# ---- twins -------------------------------------------------------------------------------------


def _twin_namespace() -> dict[str, Any]:
    """`meta` cannot be copied to the CPU, so the twins are tested from the CPU to the CPU: what counts is sharing and places."""
    base = torch.arange(12.0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        "base": base,
        "view": base.view(3, 4).t()[1:],
        "model": model,
        "opt": optimizer,
        "pair": (base, [base[2:4]]),
        "z": torch.ones(2, dtype=torch.complex64).conj(),
    }


def test_twins_have_the_same_values_sharing_and_places() -> None:
    namespace = _twin_namespace()
    original = dict(namespace)
    values = {name: value.tolist() for name, value in namespace.items() if isinstance(value, torch.Tensor)}
    replace_by_twins(Reachable(namespace), namespace, "cpu")
    for name, right in values.items():
        assert namespace[name] is not original[name]
        assert namespace[name].tolist() == right
    assert namespace["pair"][0] is namespace["base"]
    namespace["base"].mul_(2)
    assert namespace["view"][0, 0].item() == 2 * original["view"][0, 0].item()
    assert namespace["pair"][1][0].tolist() == [4.0, 6.0]
    assert original["base"].tolist() == values["base"]
    model, optimizer = namespace["model"], namespace["opt"]
    assert model is original["model"]
    assert model[1].weight is model[0].weight and isinstance(model[0].weight, torch.nn.Parameter)
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert set(map(id, optimizer.state)) == set(map(id, optimizer.param_groups[0]["params"]))
    assert model[0].weight.grad is not None


def test_code_that_names_the_device_is_led_to_the_cpu() -> None:
    with OnCpu("meta"):
        assert torch.ones(2, device="meta").device.type == "cpu"
        assert torch.ones(2, device=torch.device("meta")).device.type == "cpu"
        assert torch.ones(2).to("meta").device.type == "cpu"
        assert torch.nn.Linear(2, 2).to("meta").weight.device.type == "cpu"
        assert torch.tensor([1.0], device="meta:0").tolist() == [1.0]
    assert torch.ones(2, device="meta").device.type == "meta"


# ---- differences -------------------------------------------------------------------------------


def test_difference_by_hand() -> None:
    ours = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([100.0]), "only": torch.ones(1)}
    right = {"a": torch.tensor([1.0, 2.5]), "b": torch.tensor([101.0])}
    found = difference(ours, right)
    assert found.max_abs == 1.0
    assert found.max_rel == pytest.approx(0.2)  # 0.5 of 2.5
    assert (found.name, found.compared, found.nonfinite) == ("a", 2, False)
    assert found.tolerance == 1.3e-6


@pytest.mark.parametrize(
    ("ours", "right"),
    [([float("nan")], [1.0]), ([1.0], [float("inf")]), ([float("inf")], [float("-inf")]), ([1.0, 2.0], [1.0])],
)
def test_nonfinite_or_another_shape(ours: list[float], right: list[float]) -> None:
    found = difference({"v": torch.tensor(ours)}, {"v": torch.tensor(right)})
    assert (found.nonfinite, found.name, found.max_abs, found.max_rel) == (True, "v", None, None)


def test_equal_nonfinite_values_are_equal() -> None:
    value = torch.tensor([float("nan"), float("inf"), 3.0])
    found = difference({"v": value.clone()}, {"v": value})
    assert (found.max_abs, found.max_rel, found.nonfinite) == (0.0, 0.0, False)


def test_nothing_to_compare() -> None:
    assert difference({}, {"a": torch.ones(1)}).compared == 0
    assert difference({}, {}).max_abs is None


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8), st.floats(1e-6, 1e-2))
def test_a_relative_change_is_found_as_such(values: list[float], change: float) -> None:
    right = torch.tensor(values, dtype=torch.float64)
    found = difference({"v": right * (1 + change)}, {"v": right})
    if right.abs().max() > 0:
        assert math.isclose(found.max_rel or 0.0, change, rel_tol=1e-6)
    else:
        assert found.max_rel == 0.0


def test_what_is_compared() -> None:
    import numpy as np

    namespace = {
        "t": torch.ones(2, requires_grad=True),
        "m": torch.nn.Linear(1, 1),
        "f": 1.5,
        "flag": True,
        "text": "no",
        "l": [1, [2.0, "x"], {"k": torch.zeros(1)}],
        "n": np.arange(3),
        "c": 1 + 2j,
        "huge": 2**80,
        "skipped": 9.0,
    }
    found = outcome([n for n in namespace if n != "skipped"] + ["missing"], namespace)
    assert sorted(found) == sorted(["t", "m.weight", "m.bias", "f", "flag", "l[0]", "l[1][0]", "l[2]['k']", "n", "c", "huge"])
    assert not found["t"].requires_grad
    namespace["t"].data.mul_(5)
    assert found["t"].tolist() == [1.0, 1.0]


def test_what_differs_most_is_named_with_its_line() -> None:
    right = {"a": torch.tensor([1.0]), "b[0]": torch.tensor([1.0]), "c.weight": torch.tensor([2.0]), "same": torch.ones(1)}
    ours = {"a": torch.tensor([1.5]), "b[0]": torch.tensor([float("nan")]), "c.weight": torch.tensor([2.5]), "same": torch.ones(1)}
    found = difference(ours, right, {"a": 2, "b": 3, "c": 5})
    assert [(one.name, one.max_rel, one.line) for one in found.largest] == [("b[0]", None, 3), ("a", 0.5, 2), ("c.weight", 0.25, 5)]


def test_a_name_has_the_line_that_binds_it_last() -> None:
    nodes = ast.parse("a = x\nfor i in range(3):\n    a = a + i\nprint(a, x)").body
    cell = SimpleNamespace(nodes=nodes)
    assert {name: line for name, line in lines_of(cell).items() if name in "aix"} == {"a": 3, "i": 2, "x": 1}  # type: ignore[arg-type]
