"""The version stands in one place, `extension/package.json`; a build carries it into the package."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

import tpu_lab

PACKAGE = Path(__file__).parents[2] / "extension/package.json"


def test_the_built_version_is_the_extension_s() -> None:
    assert tpu_lab.__version__ == json.loads(PACKAGE.read_text())["version"]


def test_without_a_build_it_is_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tpu_lab._version", None)
    monkeypatch.setattr(importlib.metadata, "version", {"tpu-lab": "7.8.9"}.__getitem__)
    assert tpu_lab.__version__ == "7.8.9"


def test_a_clone_that_is_neither_built_nor_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setitem(sys.modules, "tpu_lab._version", None)
    monkeypatch.setattr(importlib.metadata, "version", nothing)
    assert tpu_lab.__version__ == "0+unknown"
