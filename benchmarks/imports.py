"""What importing costs: `import tpu_lab` over `import torch`, and the autoload that `import torch` runs."""

from __future__ import annotations

import sys
import time
from typing import Any

from .children import measure
from .figure import Figure, at_most, holds

_OFF = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def figures(quick: bool) -> list[Figure]:
    """Seconds and ms, the fastest of several new processes."""
    times = 2 if quick else 7
    package = [measure(import_package, environment=_OFF) for _ in range(times)]
    loads = [measure(autoload, environment=_OFF) for _ in range(times)]
    return [
        at_most(0.3, "import tpu_lab, over import torch", min(r["seconds"] for r in package), "s"),
        at_most(50, "autoload within import torch", min(r["seconds"] for r in loads) * 1e3, "ms"),
        holds("jax is not imported before the first use of the device", not any(r["jax"] for r in package + loads)),
    ]


def import_package() -> dict[str, Any]:
    """Imports torch, then the package on the clock."""
    import torch  # noqa: F401

    start = time.perf_counter()
    import tpu_lab  # noqa: F401

    return {"seconds": time.perf_counter() - start, "jax": "jax" in sys.modules}


def autoload() -> dict[str, Any]:
    """Imports torch, then what its autoload would have run, on the clock: finding the entry points and entering the device."""
    import torch

    start = time.perf_counter()
    torch._import_device_backends()
    seconds = time.perf_counter() - start
    if not hasattr(torch, "tpu"):
        raise RuntimeError("the autoload did not register the device: is the package installed (pip install -e .)?")
    return {"seconds": seconds, "jax": "jax" in sys.modules}
