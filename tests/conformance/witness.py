"""How operators ran: an observer of the device that keeps each overload's way (one program, a view, the CPU)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_WAYS = ("xla", "host", "view", "fallback", "copy")
"""Kinds of programs that are one overload, not a graph or a cluster of them."""


class Witness:
    """Notes for each overload how it ran (`kinds`), which fell back since `begin` (`fallbacks`) and how many programs were compiled."""

    blocking = False

    def __init__(self) -> None:
        self.kinds: dict[str, set[str]] = {}
        self.fallbacks: set[str] = set()
        self.programs = 0

    def begin(self) -> None:
        """Starts another node."""
        self.fallbacks = set()

    def op(self, program: Any, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if program.kind in _WAYS:
            self.kinds.setdefault(program.op, set()).add(program.kind)

    def compiled(self, program: Any, seconds: float, cache: str) -> None:
        self.programs += 1

    def fallback(self, op: str, reason: str, bytes_out: int, bytes_in: int, start_ns: int, end_ns: int) -> None:
        self.fallbacks.add(op)

    def allocated(self, buffer: Any) -> None:
        """Of no interest here."""

    def freed(self, buffer: Any) -> None:
        """Of no interest here."""

    def sync(self, reason: str, nbytes: int, start_ns: int, end_ns: int) -> None:
        """Of no interest here."""

    def flushed(self, told: Any) -> None:
        """Of no interest here."""

    def failed(self, op: str, error: BaseException) -> None:
        """Of no interest here."""
