"""Why an operator takes longer on the device than on PyTorch's CPU device, for the report of `benchmarks.operators`."""

from __future__ import annotations

NOTHING_MS = 0.02
"""An operator that takes the CPU less than this does no work on the elements: what is compared is the call."""
_CAUSES: dict[str, str] = {}


def cause_of(name: str, cpu_ms: float) -> str:
    """The cause for one operator; empty where none is known."""
    if name in _CAUSES:
        return _CAUSES[name]
    return "no work on the elements: the call itself" if cpu_ms < NOTHING_MS else ""
