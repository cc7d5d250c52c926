"""What the documentation names exists: files, links, make targets, commands, environment variables."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCES = [path for folder in ("tpu_lab", "tests", "extension/src", "extension/test") for path in (ROOT / folder).rglob("*") if path.is_file()]
FILES = {path.relative_to(ROOT).as_posix() for path in SOURCES} | {p.name for p in ROOT.iterdir()} | {p.name for p in (ROOT / "docs").iterdir()}
MADE = {"_version.py", "schema.ts"}
"""Written by a build."""


def ids(pages: list[Path]) -> list[str]:
    return [page.relative_to(ROOT).as_posix() for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`([\w./-]+\.(?:py|ts|json|md|toml|txt|ipynb))`", page.read_text())
    known = {name.rsplit("/", 1)[-1] for name in FILES} | MADE | {"package.json", "package-lock.json", "constraints.txt"}
    missing = [name for name in named if not any(f == name or f.endswith("/" + name) for f in FILES) and name.rsplit("/", 1)[-1] not in known]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_commands_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    modules = re.findall(r"python -m ([\w.]+)", text)
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def test_environment_variables_that_are_named_are_read() -> None:
    code = "".join(path.read_text() for path in SOURCES if path.suffix == ".py" and "tpu_lab" in path.parts)
    named = set(re.findall(r"`(T(?:PU_LAB|ORCH_TPU|PU)_[A-Z_]+)(?:=\w+)?`", "".join(page.read_text() for page in PAGES)))
    assert "TPU_LAB_PROGRAM_CACHE_MB" in named
    assert [name for name in sorted(named) if name not in code] == []


def test_the_catalogue_of_pages_is_whole() -> None:
    listed = (ROOT / "docs/README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"({page.name})" not in listed] == []
