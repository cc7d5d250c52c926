"""Each measurement in a process of its own: cold, with its own threads and environment, and unable to spoil the next.

    python -m benchmarks.children MODULE FUNCTION ARGUMENTS

runs `MODULE.FUNCTION(*ARGUMENTS)` (a JSON list) and prints its result, JSON too, as the last line. Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .timing import BUSY_SHARE, Neighbours

THREADS = 2
"""Cores and threads of everything that is compared, on any machine."""
SECONDS = 900
ROOT = Path(__file__).parent.parent
disturbed: list[str] = []
"""A sentence for each measurement that was not alone on the machine."""
shares: list[float] = []
"""What other processes used of the processors during each measurement, 0 to 1."""


def measure(function: Callable[..., Any], *arguments: Any, threads: int = THREADS, environment: dict[str, str] | None = None) -> Any:
    """The result of a module's function, run in a new process with `threads` threads on `THREADS` cores, without programs from disk.

    Raises RuntimeError with the child's last words if it fails.
    """
    command = [sys.executable, "-m", "benchmarks.children", function.__module__, function.__name__, json.dumps(arguments)]
    settings = {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TPU_LAB_CACHE": "0",
        **(environment or {}),
    }
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{function.__module__}.{function.__name__}{arguments} failed:\n{done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    shares.append(answer["others"])
    if answer["others"] > BUSY_SHARE:
        disturbed.append(f"other processes used {answer['others']:.0%} of the processors during {function.__module__}.{function.__name__}{arguments}")
        print(f"  {disturbed[-1]}", file=sys.stderr)
    return answer["result"]


def main() -> None:
    """The child's side."""
    module, function, arguments = sys.argv[1:4]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    neighbours = Neighbours()
    result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    print(json.dumps({"result": result, "others": neighbours.share()}), flush=True)


if __name__ == "__main__":
    main()
