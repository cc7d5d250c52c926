"""tpu_lab: run, see and understand PyTorch on a `tpu` device, on any laptop.

Importing it makes `torch.device("tpu")` known (as the autoload of `import torch` does where the package is installed); jax is
imported when the first tensor of the device is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._autoload import autoload

autoload()

_LAZY = {
    "Run": "tpu_lab.record",
    "Program": "tpu_lab.record",
    "FusionGraph": "tpu_lab.views.graph",
    "compile_for": "tpu_lab.compiler.target",
    "compare_targets": "tpu_lab.notebook.targets",
    "fusion_graph": "tpu_lab.notebook.graphs",
    "runs": "tpu_lab.recording.store",
    "explain": "tpu_lab.notebook.explaining",
    "scan": "tpu_lab.coverage.scanning",
    "load_exported": "tpu_lab.compiler.exported",
    "whole_steps": "tpu_lab.compiler.whole_step",
    "load_ipython_extension": "tpu_lab.notebook.extension",
}


def __getattr__(name: str) -> Any:
    if name == "coverage":  # the room itself can be called
        return import_module("tpu_lab.coverage")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        return _the_version()
    raise AttributeError(f"module 'tpu_lab' has no attribute {name!r}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*_LAZY, "coverage", "__version__"])


def _the_version() -> str:
    """The version in `extension/package.json`, which a build writes to `_version.py`; what is installed where nothing was built."""
    try:
        return str(import_module("tpu_lab._version").VERSION)
    except ModuleNotFoundError:
        from importlib.metadata import PackageNotFoundError, version
    try:
        return version("tpu-lab")
    except PackageNotFoundError:  # a clone on the path, neither built nor installed
        return "0+unknown"


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tpu_lab`: registers the magics `%%tpu` and `%tpu`."""
    from .notebook.extension import load_ipython_extension as load

    load(shell)
