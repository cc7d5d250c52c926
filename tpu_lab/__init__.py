"""tpu_lab: run, see and understand PyTorch on a `tpu` device, on any laptop.

Importing it makes `torch.device("tpu")` known (as the autoload of `import torch` does where the package is installed); jax is
imported when the first tensor of the device is made.
"""

from __future__ import annotations

from typing import Any

from ._autoload import autoload

__version__ = "0.1.0"

autoload()

_LAZY = {"Run": "tpu_lab.record", "runs": "tpu_lab.recording.store", "load_ipython_extension": "tpu_lab.notebook.extension"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tpu_lab' has no attribute {name!r}; it has {', '.join(sorted(_LAZY))}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tpu_lab`: registers the magics `%%tpu` and `%tpu`."""
    from .notebook.extension import load_ipython_extension as load

    load(shell)
