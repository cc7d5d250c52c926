"""Code that needs a Python process of its own: imports, forks, signals, environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(code: str, timeout: float = 120, path: Path | None = None, **environment: str) -> str:
    """What `code` prints, without the last newline. `path` comes first on PYTHONPATH. Fails with the process's errors if it fails."""
    places = [str(p) for p in (path, ROOT) if p is not None]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
