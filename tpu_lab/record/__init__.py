"""What passes from running to showing: one `Run`, its schema, its file format, and the closed lists of reasons.

Standard library only: a saved run reads where neither torch nor jax is installed (`tpu_lab.record.Run.load`).
"""

from __future__ import annotations

from .run import Run

__all__ = ["Run"]
