"""`%load_ext tpu_lab` and `%unload_ext tpu_lab`."""

from __future__ import annotations

import atexit
from functools import partial
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device import events
from .input_transform import TpuCellTransformer
from .magics import TpuMagics
from .modes import forget_cells
from .tracebacks import mark


def load_ipython_extension(shell: Any) -> None:
    """Registers `%%tpu` and `%tpu`; errors of the device are shown without its frames in every cell. Loading again replaces what is there."""
    unload_ipython_extension(shell)
    magics = TpuMagics(shell)
    shell.register_magic_function(magics.run, "cell", "tpu")
    shell.register_magic_function(magics.command, "line", "tpu")
    # before IPython's own `cell_magic`, which would make the plain call of it
    shell.input_transformer_manager.line_transforms.insert(0, TpuCellTransformer(shell))
    events.on_error = partial(mark, shell=shell)
    atexit.unregister(forget_programs)
    atexit.register(forget_programs)


def unload_ipython_extension(shell: Any) -> None:
    """Takes the magics away; runs that were kept stay."""
    transforms = shell.input_transformer_manager.line_transforms
    transforms[:] = [t for t in transforms if not isinstance(t, TpuCellTransformer)]
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("tpu", None)
    events.on_error = None


def forget_programs() -> None:
    """Drops the programs of cells, Dynamo's programs and its claims on names in the user's namespace.

    At exit IPython empties the namespace, and Dynamo would complain about each name that is gone.
    """
    forget_cells()
    if internals.dynamo_is_loaded():
        torch.compiler.reset()
        internals.drop_dynamo_claims()
