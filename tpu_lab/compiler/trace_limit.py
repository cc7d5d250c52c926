"""Gives up a function whose trace gets too long, so that nobody waits minutes for Dynamo; it then runs op by op.

A loop of a thousand rounds is unrolled while it is traced. Functions called by one that was given up are traced by themselves, so the
body of the loop is still compiled if it is a function. `fullgraph=True` asked for the whole, and gets it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._dynamo import exc, symbolic_convert

from ..device import _torch_internals as internals

MOST_NODES = 2_000
MOST_SECONDS = 20.0
GIVEN_UP = "Tracing given up"
"""How the message begins."""


class GivenUp(exc.Unsupported):
    """Ends the trace of the outermost function, from however deep inside it."""

    @property
    def skip_frame(self) -> bool:
        """True: Dynamo leaves the function uncompiled, and does not look for a place to go on after."""
        return True

    @skip_frame.setter
    def skip_frame(self, value: bool) -> None:
        """Dynamo takes it back for functions it inlines; here the whole function is meant."""


@contextmanager
def limited(nodes: int = MOST_NODES, seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Inside, a trace that passes `nodes` operators or `seconds` is given up."""
    kind: Any = symbolic_convert.InstructionTranslatorBase
    step = kind.step
    begun: dict[str, float] = {}

    def limited_step(self: Any) -> Any:
        now = time.monotonic()
        started = begun.setdefault(internals.compile_id(), now)
        count = len(self.output.graph.nodes)
        if (count > nodes or now - started > seconds) and not self.one_graph:
            raise _given_up(count, now - started, nodes, seconds)
        return step(self)

    kind.step = limited_step
    try:
        yield
    finally:
        kind.step = step


def _given_up(count: int, took: float, nodes: int, seconds: float) -> GivenUp:
    explanation = f"The trace had {count} operators after {took:.1f} s; the limit is {nodes} operators or {seconds:g} s."
    message = exc.format_graph_break_message(GIVEN_UP, f"{count} operators, {took:.1f} s", explanation, [])
    return GivenUp(message, GIVEN_UP)
