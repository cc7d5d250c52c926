"""How a cell is cut for compiling, and how each statement is run. The expected cuts are written by hand."""

from __future__ import annotations

import ast
import importlib
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tpu_lab.notebook.partition import Way, way_of, worth_compiling
from tpu_lab.notebook.regions import assigned_before_read, cut, names_in_inner_scopes


def _cut(source: str, each_apart: bool = False) -> tuple[str, list[list[str]]]:
    """The cell with `R(k)` for region k, and each region's statements."""
    found = cut(ast.parse(source).body, each_apart)
    text = ast.unparse(ast.Module(found.statements, [])).replace("__tpu_lab_region__", "R")
    return text, [[ast.unparse(s) for s in region.statements] for region in found.regions]


CUTS = {
    "one region": ("a = x + 1\nb = a * 2", "R(0)", [["a = x + 1", "b = a * 2"]]),
    "print between": ("a = 1\nprint(a)\nb = 2", "R(0)\nprint(a)\nR(1)", [["a = 1"], ["b = 2"]]),
    "import and definitions": ("import m\ndef f():\n    y = 1\na = f()", "import m\n\ndef f():\n    y = 1\nR(0)", [["a = f()"]]),
    "loop body": ("for i in x:\n    a = i\n    b = a", "for i in x:\n    R(0)", [["a = i", "b = a"]]),
    "break stays": (
        "for i in x:\n    a = i\n    if a:\n        break\n    b = a",
        "for i in x:\n    R(0)\n    if a:\n        break\n    R(1)",
        [["a = i"], ["b = a"]],
    ),
    "with and try": (
        "with c as d:\n    a = d\ntry:\n    b = a\nexcept E as e:\n    b = 0\nelse:\n    k = 1\nfinally:\n    l = 2",
        "with c as d:\n    R(0)\ntry:\n    R(1)\nexcept E as e:\n    R(4)\nelse:\n    R(2)\nfinally:\n    R(3)",
        [["a = d"], ["b = a"], ["k = 1"], ["l = 2"], ["b = 0"]],
    ),
    "simple if is inside": ("a = 1\nif a:\n    b = 2\nelse:\n    b = 3\nc = b", "R(0)", [["a = 1", "if a:\n    b = 2\nelse:\n    b = 3", "c = b"]]),
    "if with a print is cut": ("if a:\n    b = 2\n    print(b)", "if a:\n    R(0)\n    print(b)", [["b = 2"]]),
    "match": ("match v:\n    case 1:\n        a = 2", "match v:\n    case 1:\n        R(0)", [["a = 2"]]),
    "del, annotation, global, raise, assert": (
        "del a\nb: int = 1\nglobal c\nassert b\nraise E",
        "del a\nb: int = 1\nglobal c\nassert b\nraise E",
        [],
    ),
    "await": ("a = await f()\nb = a", "a = await f()\nR(0)", [["b = a"]]),
    "async comprehension": ("a = [i async for i in g()]", "a = [i async for i in g()]", []),
    "reads its frame": (
        "a = locals()\nb = eval('1')\nget_ipython().run_line_magic('x', '')",
        "a = locals()\nb = eval('1')\nget_ipython().run_line_magic('x', '')",
        [],
    ),
    "async loops": ("async for i in g():\n    a = i", "async for i in g():\n    R(0)", [["a = i"]]),
}


@pytest.mark.parametrize(("source", "text", "regions"), CUTS.values(), ids=CUTS.keys())
def test_cut(source: str, text: str, regions: list[list[str]]) -> None:
    tree = ast.parse(source)
    before = ast.dump(tree)
    assert _cut(source) == (text, regions)
    cut(tree.body)
    assert ast.dump(tree) == before


def test_prints_between_regions_are_known() -> None:
    source = "a = 1\nprint(a)\nprint(2)\nb = 2\nfor i in b:\n    c = i\n    print(c)\n    d = c\nprint(d)\ne = 3"
    found = [(r.before, r.printed) for r in cut(ast.parse(source).body).regions]
    assert found == [(-1, 0), (0, 2), (-1, 0), (2, 7), (-1, 0)]


def test_expressions_apart() -> None:
    assert _cut("a = 1\nb = 2\na\nb\nc = 3", each_apart=True)[1] == [["a = 1", "b = 2"], ["a"], ["b"], ["c = 3"]]


def test_lines_are_kept() -> None:
    found = cut(ast.parse("\n\na = 1\nfor i in x:\n\n    b = i").body)
    assert [s.lineno for s in found.statements] == [3, 4]
    assert [r.statements[0].lineno for r in found.regions] == [3, 6]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = x\nb = a", {"a", "b"}),
        ("a, (b, *c) = x", {"a", "b", "c"}),
        ("b = a\na = 1", {"b"}),
        ("if x:\n    a = 1\na = 2", set()),
        ("f = lambda: a\na = 1", {"f"}),
        ("a += 1", set()),
        ("d['k'] = 1\nd = {}", set()),
        ("a = b = x", {"a", "b"}),
    ],
)
def test_assigned_before_read(source: str, names: set[str]) -> None:
    assert assigned_before_read(ast.parse(source).body) == names


def test_names_in_inner_scopes() -> None:
    source = "a = [b for b in c]\nf = lambda v: k\ng = (m for m in n)\ndef h():\n    global z\n    return w\nclass C:\n    q = r"
    assert names_in_inner_scopes(ast.parse(source).body) == {"k", "m", "n", "z", "w", "q", "r"}


class Tokenizer:
    """Stands for an object of a package that Dynamo does not follow."""

    __module__ = "transformers.tokenization"

    def __call__(self, text: str) -> list[int]:
        return [len(text)]

    def encode(self, text: str) -> list[int]:
        return [len(text)]


NAMESPACE: dict[str, Any] = {
    "torch": torch,
    "nn": torch.nn,
    "F": torch.nn.functional,
    "math": math,
    "random": random,
    "x": torch.ones(2),
    "model": torch.nn.Linear(2, 2),
    "opt": torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1),
    "loader": torch.utils.data.DataLoader([1, 2]),
    "tokenizer": Tokenizer(),
    "xs": [1],
    "d": {},
    "helper": lambda v: v,
}
NAMESPACE["helper"].__module__ = "__main__"
NAMESPACE["scheduler"] = torch.optim.lr_scheduler.StepLR(NAMESPACE["opt"], 1)

WAYS = {
    "y = x * 2": Way.COMPILED,
    "y = F.relu(model(x))": Way.COMPILED,
    "y = helper(x)": Way.COMPILED,
    "y = unknown.sum()": Way.COMPILED,
    "y = math.sqrt(2) * x": Way.COMPILED,
    "model.weight.mul_(2)": Way.COMPILED,
    "loss.backward()": Way.BACKWARD,
    "x.sum().backward()": Way.BACKWARD,
    "v = x.item()": Way.ITEM,
    "total += loss.item()": Way.ITEM,
    "v = loss.detach().cpu().numpy()": Way.ITEM,
    "v = (x * 2).sum().item()": Way.LAST,
    "v = model(x).tolist()": Way.LAST,
    "opt.step()": Way.ALONE,
    "opt.zero_grad()": Way.SET_UP,
    "scheduler.step()": Way.SET_UP,
    "it = loader.sampler": Way.COMPILED,
    "m = nn.Linear(2, 2)": Way.SET_UP,
    "m = nn.Sequential(nn.Linear(2, 2)).eval()": Way.SET_UP,
    "o = torch.optim.Adam(model.parameters())": Way.SET_UP,
    "torch.manual_seed(0)": Way.SET_UP,
    "torch.save(model, 'f')": Way.SET_UP,
    "model.eval()": Way.SET_UP,
    "model.to('tpu')": Way.SET_UP,
    "x = x.to('tpu')": Way.COMPILED,
    "xs.append(x)": Way.BOOKKEEPING,
    "d.update(a=x)": Way.BOOKKEEPING,
    "n = random.random()": Way.CALL,
    "ids = tokenizer('a')": Way.CALL,
    "ids = tokenizer.encode('a')": Way.CALL,
    "ids = torch.tensor(tokenizer('a'))": Way.CALL,
}


@pytest.mark.parametrize(("statement", "way"), WAYS.items(), ids=WAYS.keys())
def test_way(statement: str, way: Way) -> None:
    assert way_of(ast.parse(statement).body[0], NAMESPACE, set()) is way


@pytest.mark.parametrize(
    ("place", "text", "way"),
    [
        ("project", "def f(v):\n    return v * 2\n", Way.COMPILED),
        ("site-packages", "import torch\ndef f(v):\n    return torch.relu(v)\n", Way.COMPILED),
        ("site-packages", "def f(v):\n    return v\n", Way.CALL),
        ("project", "import torch\ndef g(v):\n    return v + torch.ones(2)\ndef f(v):\n    return g(v)\n", Way.CALL),
        ("project", "import torch\nclass Net(torch.nn.Module): pass\ndef f(v):\n    return Net()(v)\n", Way.CALL),
        ("project", "def f(v, n=3):\n    return f(v, n - 1) if n else v\n", Way.COMPILED),
    ],
    ids=["the user's own file", "a package that works with torch", "another package", "makes a tensor", "makes a module", "calls itself"],
)
def test_way_of_a_call_into_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str, way: Way) -> None:
    name = f"made_for_test_{abs(hash((place, text)))}"
    (tmp_path / place).mkdir()
    (tmp_path / place / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / place)
    module = importlib.import_module(name)
    namespace = {**NAMESPACE, "f": module.f, "library": module}
    assert way_of(ast.parse("y = f(x)").body[0], namespace, set()) is way
    assert way_of(ast.parse("y = library.f(x)").body[0], namespace, set()) is way


def test_the_step_of_an_optimizer_that_the_cell_makes_is_plain() -> None:
    assert way_of(ast.parse("opt.step()").body[0], NAMESPACE, {"opt"}) is Way.SET_UP


def test_looking_at_a_statement_runs_no_code_of_the_users() -> None:
    class Loud:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("looked at")

    way_of(ast.parse("y = loud.part.method(x)").body[0], {**NAMESPACE, "loud": Loud()}, set())


@pytest.mark.parametrize("source", ["y = x * 2", "y = model(x)", "y = [x][0]", "y = torch.ones(2)", "n += x.sum()", "y = pair[0] * 2"])
def test_worth_compiling(source: str) -> None:
    assert worth_compiling(ast.parse(source).body, {**NAMESPACE, "pair": (x := torch.ones(1), x), "n": 1})


@pytest.mark.parametrize("source", ["y = 1 + 2", "y = x", "n += len(x)", "k = isinstance(x, int)", "s = 'a' * 3", "y = xs[0] + 1", "pass"])
def test_not_worth_compiling(source: str) -> None:
    assert not worth_compiling(ast.parse(source).body, {**NAMESPACE, "n": 1})
