"""Fused or op by op: a loop that reads is timed both ways in turns, and goes on with what is faster.

A *turn* is the time from one read of the host to the next. A program runs while Python goes on, so the time of one cluster says
nothing; that of whole turns does. Once nothing is being compiled any more, blocks of turns with the programs and blocks in which
operators run as in strict mode follow each other. A loop that is slower with the programs rests, longer each time, and after
some trials its programs go for good.
"""

from __future__ import annotations

import time
from statistics import median

from .. import modes
from . import clusters, governor

READS, NANOSECONDS = 16, 50_000_000
"""A block has at least so many turns and takes at least so long."""
PAIRS = 3
"""A trial has so many blocks of each kind."""
_PAUSE = 16
"""Blocks from a first trial to the next; four times as many each time the answer is the same, up to the power `_MOST`."""
_MOST = 5
FOR_GOOD = 4
"""Programs that lost so many trials in a row are dropped."""


def typical(turns: list[int]) -> float:
    """The mean of the faster three quarters, in ns: what else the machine does only makes turns slower."""
    kept = sorted(turns)[: max(len(turns) * 3 // 4, 1)]
    return sum(kept) / len(kept)


class Pace:
    """The turns of the loop that runs, and the trial it is in."""

    __slots__ = ("_apart", "_block", "_fused", "_last", "_losses", "_news", "_ratios", "_start", "_wait", "_wins")

    def __init__(self) -> None:
        self._last = time.perf_counter_ns()
        self._block: list[int] = []
        self._fused = 0.0
        self._apart = False  # the rest that is on is a block of a trial
        self._ratios: list[float] = []
        self._wait = self._wins = self._losses = 0
        self._news = self._start = 0

    def read(self) -> None:
        """Notes a read of the host, before the host waits for it."""
        before, self._last = self._last, time.perf_counter_ns()
        if modes.resting:
            if self._apart:
                self._block.append(self._last - before)
        elif not modes.fusing:
            self._begin()
        elif self._apart:
            self._block.append(self._last - before)
            self._compare()
        else:
            self._with_programs(self._last - before)

    def _with_programs(self, took: int) -> None:
        if self._news != clusters.news or clusters.compiling:
            self._news = clusters.news
            self._begin()
            self._wait = self._wins = self._losses = 0
        elif self._wait > 0:
            self._wait -= 1
        else:
            if not self._block and not self._ratios:
                self._start = clusters.now()
            self._block.append(took)
            if len(self._block) > READS and sum(self._block) > NANOSECONDS:
                self._fused = typical(self._block[1:])
                reads, self._block, self._apart = len(self._block), [], True
                modes.rest(reads)

    def _begin(self) -> None:
        self._block, self._ratios, self._apart = [], [], False

    def _compare(self) -> None:
        """The end of a block op by op; at the end of a trial decides."""
        turns, self._block, self._apart = self._block, [], False
        if len(turns) <= READS:
            self._begin()  # somebody switched the mode meanwhile
            return
        self._ratios.append(self._fused / typical(turns[1:]))
        if len(self._ratios) == PAIRS:
            slower = median(self._ratios) > governor.rules.slower
            self._decide(slower, len(turns))
            self._begin()

    def _decide(self, slower: bool, reads: int) -> None:
        self._wins, self._losses = (0, self._losses + 1) if slower else (self._wins + 1, 0)
        pause = reads * _PAUSE * 4 ** min(max(self._wins, self._losses) - 1, _MOST)
        if not slower:
            self._wait = pause
            return
        if self._losses >= FOR_GOOD:
            clusters.drop(self._start)
        modes.rest(pause)
