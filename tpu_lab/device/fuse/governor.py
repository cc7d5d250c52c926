"""When fusing pays: measured rules, as data per backend.

XLA:CPU loses on long chains of costly elementwise functions: `a = tanh(a) * b` on 1 M floats takes 0.42 ms per step with one or two
steps in a kernel and 1.2 ms with 16 in one (erf, exp, gelu and silu alike; 2.5 to 4 times). So a fence stands after every
second such operator on large arrays. XLA:CPU keeps fences only where the pass `cse_barrier_expander` is off.

One program for all calls of a step begins when Python is through with the step, while op by op the two go on together: a GPT
block's training step took 12.1 ms as one program and 8.3 to 9.1 in pieces of 100 to 200 MFLOP (strict 10.6); smaller pieces lost
again. XLA:CPU's convolutions make a fifth of the FLOPs per second that its matrix products do.

Beyond rules, a loop is timed both ways (`pace`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..events import OpProgram
from .trace import Step


@dataclass(frozen=True)
class Rules:
    """What holds for one backend.

    `least_calls`: a shorter cluster is not compiled. `costly`: functions of which at most `together` go into one kernel on
    arrays of at least `large` bytes. `launch`: a cluster ends, and its program begins, with so many FLOPs, those of operators
    whose names hold a word of `heavy` taken times its number. `shapes`: a call of a family (`host_first.family`) with so many
    shapes is in no cluster, as the cluster would not come back. `slower`: a loop that takes so many times its calls one by one rests.
    """

    least_calls: int
    costly: frozenset[str]
    together: int
    large: int
    launch: float
    heavy: Mapping[str, float]
    shapes: float
    slower: float


COSTLY = """
tanh erf erfc exp expm1 log log1p sin cos tan asin acos atan asinh acosh atanh pow logit sigmoid gelu silu mish softplus elu
gelu_backward silu_backward sigmoid_backward tanh_backward
"""
RULES = {
    "XLA:CPU": Rules(
        least_calls=3, costly=frozenset(COSTLY.split()), together=2, large=1 << 18, launch=1e8, heavy={"convolution": 5.0}, shapes=24, slower=1.0
    ),
    "TPU": Rules(least_calls=1, costly=frozenset(), together=1, large=0, launch=math.inf, heavy={}, shapes=math.inf, slower=math.inf),
}
rules = RULES["TPU" if os.environ.get("TPU_LAB_FUSE_GOVERNOR") == "0" else "XLA:CPU"]
"""Those in force; `TPU_LAB_FUSE_GOVERNOR=0` takes none, to see what they gain."""
FENCED: dict[str, Any] = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""XLA's options for a program with fences."""


def work(info: OpProgram) -> float:
    """What a call does, in FLOPs of a matrix product."""
    return (info.flops or 0.0) * next((times for word, times in rules.heavy.items() if word in info.op), 1.0)


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
