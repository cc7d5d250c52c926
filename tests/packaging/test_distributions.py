"""The wheel and the source archive carry the built extension, so a user needs no node."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STATIC = ("engine.js", "page.js", "page.css")
"""What pages and reports are made of: without it `%tpu report` and `FusionGraph.to_html` raise."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a wheel and a source archive, made from the working tree with its built extension."""
    assert (REPOSITORY / "tpu_lab/labextension/package.json").exists(), "run `make front`"
    folder = tmp_path_factory.mktemp("dist")
    no_npm = {**os.environ, "PATH": "/nonexistent"}
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=REPOSITORY, env=no_npm, check=True, capture_output=True)
    yield folder


def test_wheel(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        read = {name: wheel.read(name).decode() for name in names if name.endswith((".json", "METADATA", "entry_points.txt"))}
    data = next(name for name in names if name.endswith("labextensions/tpu-lab/install.json")).removesuffix("install.json")
    assert json.loads(read[f"{data}install.json"])["packageName"] == "tpu-lab"
    extension = json.loads(read[f"{data}package.json"])
    assert f"{data}{extension['jupyterlab']['_build']['load']}" in names
    assert f"{data}schemas/tpu-lab/plugin.json" in names
    assert all(version.startswith("^") for version in extension["dependencies"].values())

    points = configparser.ConfigParser()
    points.read_string(next(text for name, text in read.items() if name.endswith("entry_points.txt")))
    assert dict(points["torch.backends"]) == {"tpu_lab": "tpu_lab._autoload:autoload"}
    metadata = Parser().parsestr(next(text for name, text in read.items() if name.endswith("METADATA")))
    assert (metadata["Name"], metadata["License-Expression"], metadata["Requires-Python"]) == ("tpu-lab", "Apache-2.0", ">=3.11")
    assert metadata["Version"] == extension["version"]

    assert "tpu_lab/record/schema.json" in names and "tpu_lab/_version.py" in names
    assert {f"tpu_lab/static/{name}" for name in STATIC} <= set(names)
    folders = {name.split("/")[0] for name in names}
    assert folders == {"tpu_lab", f"tpu_lab-{extension['version']}.dist-info", f"tpu_lab-{extension['version']}.data"}
    assert not any(name.startswith("tpu_lab/labextension/") for name in names), "the extension is in the wheel twice"


def test_source_archive_installs_without_node(built: Path) -> None:
    archive = next(built.glob("*.tar.gz"))
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    assert {
        "tpu_lab/labextension/package.json",
        "tpu_lab/labextension/static/style.js",
        "install.json",
        "LICENSE",
        "extension/package-lock.json",
        *(f"tpu_lab/static/{name}" for name in STATIC),
    } <= names
    assert not any("node_modules" in name or name.startswith("extension/lib/") for name in names)
    assert archive.stat().st_size < 5_000_000


def test_an_install_from_the_source_archive_has_the_extension_and_the_pages(built: Path, tmp_path: Path) -> None:
    """Built without node on the path, as pip does it, and installed into an empty folder."""
    no_node = {**os.environ, "PATH": "/usr/bin:/bin" if shutil.which("node", path="/usr/bin:/bin") is None else "/nonexistent"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([*pip, str(next(built.glob("*.tar.gz")))], env=no_node, check=True, capture_output=True, cwd=tmp_path)
    folder = tmp_path / "site" / "share/jupyter/labextensions/tpu-lab"
    extension = json.loads((folder / "package.json").read_text())
    assert (folder / extension["jupyterlab"]["_build"]["load"]).exists() and (folder / "install.json").exists()
    code = "from tpu_lab.record import Run; from tpu_lab.views.page import run_page; print(len(run_page(Run())))"
    isolated = {**no_node, "PYTHONPATH": str(tmp_path / "site")}
    shown = subprocess.run([sys.executable, "-c", code], env=isolated, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert int(shown.stdout) > 50_000


def test_constraints_pin_what_the_project_names() -> None:
    lines = [line for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    assert pins["torch"] == "2.13.0" and pins["jax"] == pins["jaxlib"] == "0.10.2"
    assert not any("+" in version for version in pins.values())
