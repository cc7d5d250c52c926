"""What passes from running to showing: a `Run` or a compiled `Program`, its schema, its file format, and the closed lists of reasons.

Standard library only: a saved run reads where neither torch nor jax is installed (`tpu_lab.record.Run.load`).
"""

from __future__ import annotations

from .program import Program
from .run import Run

__all__ = ["Program", "Run"]
