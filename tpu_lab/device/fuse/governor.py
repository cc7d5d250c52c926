"""When fusing pays: measured rules, as data per backend.

XLA:CPU loses on long chains of costly elementwise functions: `a = tanh(a) * b` on 1 M floats takes 0.42 ms per step with one or two
steps in a kernel and 1.2 ms with 16 in one (erf, exp, gelu and silu alike; 2.5 to 4 times). So a fence stands after every
second such operator on large arrays. XLA:CPU keeps fences only where the pass `cse_barrier_expander` is off. Beyond rules, a
program has to show that it is no slower than its calls one by one (`Record`), else it goes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from .trace import Step


@dataclass(frozen=True)
class Rules:
    """What holds for one backend.

    `least_calls`: a shorter cluster is not compiled. `costly`: functions of which at most `together` go into one kernel on
    arrays of at least `large` bytes. `slower`: a program that takes so many times its calls one by one is dropped (None: never).
    """

    least_calls: int
    costly: frozenset[str]
    together: int
    large: int
    slower: float | None


COSTLY = """
tanh erf erfc exp expm1 log log1p sin cos tan asin acos atan asinh acosh atanh pow logit sigmoid gelu silu mish softplus elu
gelu_backward silu_backward sigmoid_backward tanh_backward
"""
RULES = {
    "XLA:CPU": Rules(least_calls=3, costly=frozenset(COSTLY.split()), together=2, large=1 << 18, slower=1.05),
    "TPU": Rules(least_calls=1, costly=frozenset(), together=1, large=0, slower=None),
}
rules = RULES["TPU" if os.environ.get("TPU_LAB_FUSE_GOVERNOR") == "0" else "XLA:CPU"]
"""Those in force; `TPU_LAB_FUSE_GOVERNOR=0` takes none, to see what they gain."""
FENCED: dict[str, Any] = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""XLA's options for a program with fences."""


def fences(steps: Sequence[Step]) -> frozenset[int]:
    """The calls behind which a fence stands."""
    found, count = [], 0
    for at, (entry, *_) in enumerate(steps):
        if max((a.size * a.dtype.itemsize for a in entry.avals), default=0) < rules.large:
            continue
        if entry.info.op.removeprefix("aten.").partition(".")[0].removesuffix("_") in rules.costly:
            count += 1
            if count % rules.together == 0:
                found.append(at)
    return frozenset(found)


REST_AFTER, REST_READS = 64, 256
"""After so many clusters in a row of which nothing will come, operators run as in strict mode for so many reads of the host: noting
a call costs 1 to 2 µs. A loop that goes on like that has one look at `LOOK_AGAIN` clusters between two rests."""
LOOK_AGAIN = 8


class Patience:
    """How many clusters in a row promised nothing."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = REST_AFTER

    def look(self, hopeless: bool, reason: str) -> bool:
        """Notes a cluster that ended for a reason; True if it is time to rest. Only reads count, since only they end a rest."""
        if not hopeless:
            self.left = REST_AFTER
        elif reason in ("item", "cpu"):
            self.left -= 1
        if self.left > 0:
            return False
        self.left = LOOK_AGAIN
        return True


_LOOKS = (8, 32, 128, 512)
_KEPT = 8


@dataclass(slots=True)
class Record:
    """Times in ns from one cut to the next, the latest of each kind: of a cluster's calls one by one, and of its program."""

    apart: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    fused: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    runs: int = 0

    def ran_apart(self, took: int) -> None:
        """Notes a turn in which the calls ran one by one; 0 is none."""
        if took:
            self.apart.append(took)

    def ran_fused(self, took: int) -> bool:
        """Notes a turn in which the program ran; True if it has shown to be slower by now, by the medians."""
        self.runs += 1
        self.fused.append(took)
        if rules.slower is None or self.runs not in _LOOKS or not self.apart:
            return False
        return median(self.fused) > median(self.apart) * rules.slower
