"""Which ATen overloads run here and on TorchTPU, and what a model asks for: the operator table and the scan of a model.

`tpu_lab.coverage` is this room and, called, the table: `tpu_lab.coverage()`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .rows import Coverage


class _Room(ModuleType):
    """A module that can be called. An attribute of the same name would be lost as soon as one of the room's files is imported."""

    def __call__(self, text: str = "", *, family: str = "", here: str = "", torch_tpu: str = "", dtype: str = "") -> Coverage:
        """The operator table, or the rows that `Coverage.filter` keeps; it displays itself as the explorer.

        Reads data files only: no operator runs, and neither torch nor jax is needed. Raises OptionError for a status that does not exist.
        """
        from .table import load

        whole = load()
        return (
            whole.filter(text, family=family, here=here, torch_tpu=torch_tpu, dtype=dtype) if text or family or here or torch_tpu or dtype else whole
        )


sys.modules[__name__].__class__ = _Room
