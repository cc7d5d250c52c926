"""Loops that read nothing: where to cut them so that the same cluster comes back."""

from __future__ import annotations

from collections.abc import Sequence

GRAPH_LIMIT = 1000
"""A trace of so many calls is cut."""
LOOP_CALLS = 128
"""A loop is cut after whole turns of about so many calls together: enough to pay, and soon compiled."""


def period(calls: Sequence[object]) -> int:
    """The length of the shortest run of calls that, repeated at least twice, gives the sequence; 0 if there is none (Knuth, Morris and Pratt)."""
    border = [0] * len(calls)
    length = 0
    for i in range(1, len(calls)):
        while length and calls[i] is not calls[length]:
            length = border[length - 1]
        length += calls[i] is calls[length]
        border[i] = length
    found = len(calls) - length
    return found if calls and found * 2 <= len(calls) else 0


def next_limit(calls: Sequence[object]) -> int:
    """Where the trace after one that reached its limit is to be cut: after whole turns, if the calls repeat themselves."""
    turn = period(calls)
    return turn * max(LOOP_CALLS // turn, 1) if turn else GRAPH_LIMIT
