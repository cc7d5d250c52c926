"""The rules between rooms (docs/architecture.md), read from the imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tpu_lab"
ROOMS = {
    "record": set(),
    "analysis": {"record"},
    "views": {"record", "analysis"},
    "lowering": set(),
    "xla": {"record"},
    "device": {"lowering", "xla", "record"},
    "compiler": {"lowering", "xla", "device", "record"},
    "recording": {"record", "device", "compiler", "xla"},
    "coverage": {"record", "analysis", "views", "lowering", "xla", "device", "compiler", "recording"},
    "notebook": {"record", "analysis", "views", "lowering", "xla", "device", "compiler", "recording", "coverage"},
}
"""Whom each room may import, beside itself and `errors`."""
COMMANDS = {"lowering/missing.py": {"device"}}
"""Commands (`python -m`) that nobody imports, and whom they ask beyond what their room may."""
SHOWING = ("record", "analysis", "views")
"""Rooms that work in a process without torch and jax."""
PRESENTED = {("record", "views"), ("compiler", "analysis")}
"""`Run.summary`, `Run.to_pandas` and a run's display open the views, when they are called; `compile_for` asks why ops were not fused."""
PRIVATE_TORCH = re.compile(r"torch(?!\.ops\b)(\.\w+)*\._(?!_)|from torch(\.\w+)* import _|\b_cdata\b")
PRIVATE_JAX = re.compile(r"jax\._src|jaxlib")
NAMED_AT_HOME = {"device/_torch_internals.py", "_autoload.py", "device/unavailable.py"}
"""The last two must work where the first does not import."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def imports(name: str, tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """What a file imports, relative names made absolute, and whether it does so when it is imported."""
    folder = ["tpu_lab", *name.split("/")[:-1]]
    top = {id(node) for node in ast.iter_child_nodes(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(folder[: len(folder) - node.level + 1]) if node.level else ""
            for alias in node.names:
                yield ".".join(filter(None, [base, node.module, alias.name])), id(node) in top


def test_the_imports_of_this_test_are_read_right() -> None:
    tree = ast.parse("from ..device import events\nfrom . import cell\ndef f():\n    import torch.fx\n")
    assert list(imports("notebook/lab.py", tree)) == [("tpu_lab.device.events", True), ("tpu_lab.notebook.cell", True), ("torch.fx", False)]


def test_rooms_import_only_whom_they_may() -> None:
    wrong = []
    for name, tree in sources():
        room = name.split("/")[0]
        for imported, at_import in imports(name, tree):
            parts = imported.split(".")
            if room not in ROOMS or parts[0] != "tpu_lab" or parts[1] in (room, "errors", "_autoload"):
                continue
            if parts[1] not in ROOMS[room] | COMMANDS.get(name, set()) and (at_import or (room, parts[1]) not in PRESENTED):
                wrong.append(f"{name} imports {imported}")
    assert not wrong
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)


def test_what_shows_a_run_needs_neither_torch_nor_jax() -> None:
    foreign = [
        f"{name} imports {imported}"
        for name, tree in sources()
        if name.split("/")[0] in SHOWING
        for imported, _ in imports(name, tree)
        if imported.split(".")[0] in ("torch", "jax", "jaxlib", "numpy", "IPython")
    ]
    assert not foreign


def named(tree: ast.AST) -> Iterator[str]:
    """Dotted names and imports as the code has them; not what stands in strings and comments."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Import, ast.ImportFrom)):
            yield ast.unparse(node)


@pytest.mark.parametrize(("private", "home"), [(PRIVATE_TORCH, NAMED_AT_HOME), (PRIVATE_JAX, {"xla/_jax_internals.py"})], ids=["torch", "jax"])
def test_private_names_stand_in_one_file(private: re.Pattern[str], home: set[str]) -> None:
    found = {}
    for name, tree in sources():
        # PyTorch documents `torch._dynamo.backends` and `device_interface` for backends
        words = [w for w in named(tree) if private.search(w) and not (name.startswith("compiler/") and w.startswith("from torch._dynamo"))]
        if words:
            found[name] = words
    assert {name: words for name, words in found.items() if name not in home} == {}
    assert home <= set(found), "a home without private names: take it off the list"


def test_files_have_at_most_400_lines() -> None:
    long = {name: lines for path in PACKAGE.rglob("*.py") if (lines := path.read_text().count("\n")) > 400 and (name := path.name)}
    assert not long
