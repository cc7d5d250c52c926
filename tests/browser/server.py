"""A real JupyterLab for tests: its own configuration, data and settings folders, the extension as it was built last."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

REPOSITORY = Path(__file__).parents[2]
BUILT = REPOSITORY / "tpu_lab" / "labextension"
START_SECONDS = 60


@dataclass(frozen=True)
class Lab:
    """A running server. `notebooks` is its root folder."""

    url: str
    notebooks: Path
    environment: dict[str, str]

    def write_notebook(self, name: str, cells: list[Any], language: str = "python") -> None:
        """Saves a notebook with these cells (made by `nbformat.v4`)."""
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        info = {"name": language, "mimetype": "text/x-ipython" if language == "python" else f"text/x-{language}"}
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": info})
        nbformat.write(notebook, self.notebooks / name)

    def read_notebook(self, name: str) -> Any:
        return nbformat.read(self.notebooks / name, as_version=4)


def prepare(folder: Path) -> dict[str, str]:
    """Lays out the folders of a server and returns its environment variables."""
    if not (BUILT / "package.json").exists():
        raise FileNotFoundError(f"{BUILT} is not built: run `make front`")
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    places = {variable: folder / name for variable, name in names.items()}
    for place in [*places.values(), folder / "notebooks"]:
        place.mkdir(parents=True)
    extension = places["JUPYTER_DATA_DIR"] / "labextensions" / "tpu-lab"
    shutil.copytree(BUILT, extension)
    shutil.copy(REPOSITORY / "install.json", extension)
    # The question about news would cover the corner of every page.
    news = places["JUPYTERLAB_SETTINGS_DIR"] / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps({"fetchNews": "false"}))
    # An extension that is installed in the environment must not come before the one just built.
    return {**os.environ, **{variable: str(place) for variable, place in places.items()}, "JUPYTER_PREFER_ENV_PATH": "0"}


def start(folder: Path) -> tuple[subprocess.Popen[bytes], Lab]:
    """Starts a server in an empty folder and waits until it answers. Raises RuntimeError with its log if it does not."""
    environment = prepare(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    command += ["--IdentityProvider.token=", "--ServerApp.password=", "--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"]
    command += [f"--ServerApp.root_dir={folder / 'notebooks'}"]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder)
    lab = Lab(f"http://127.0.0.1:{port}", folder / "notebooks", environment)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{lab.url}/api/status", timeout=2).close()
            return process, lab
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    process.kill()
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")
