"""How exactly float32 products are computed on a TPU's matrix units: 1, 3 or 6 bfloat16 passes.

XLA:CPU always multiplies in full float32, so on this backend every mode gives the same numbers; the mode belongs to the
program and counts where one is compiled for a TPU.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from .. import policies


class Precision(enum.Enum):
    """Passes over the matrix units for one float32 product."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


@contextmanager
def precision(mode: Precision) -> Iterator[None]:
    """The precision of float32 products inside a `with` block. Raises TypeError for anything but a Precision."""
    if not isinstance(mode, Precision):
        raise TypeError(f"precision: got {mode!r}, accepted are {', '.join(f'Precision.{m.name}' for m in Precision)}")
    before, policies.matmul_precision = policies.matmul_precision, mode.value
    try:
        yield
    finally:
        policies.matmul_precision = before
