"""Fuzzes the device: `python -m tests.fuzz --steps 100000`. Stops at the first difference, with the shortest sequence that shows it."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from tpu_lab.device import host_first

from .sequence import Difference, run
from .steps import Step, sequences

ROUND = 200
"""Sequences between two lines of progress."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="steps to run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--host", action="store_true", help="let host kernels take shapes not seen before, as in normal use")
    options = parser.parse_args()
    if not options.host:
        host_first.COMPILED_AT_ONCE = 1 << 60
    began, tried, done, number = time.monotonic(), 0, 0, options.seed
    while tried < options.steps:

        @seed(number)
        @settings(max_examples=ROUND, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
        @given(sequences)
        def check(steps: list[Step]) -> None:
            nonlocal tried, done
            tried += len(steps)
            done += run(steps)

        try:
            check()
        except Difference as difference:
            print(f"seed {number}: {difference}")
            for note in getattr(difference, "__notes__", ()):
                print(note)
            return 1
        number += 1
        spent = time.monotonic() - began
        print(f"{tried} steps, {done} not refused, {spent:.0f} s, {spent * (options.steps / tried - 1) / 60:.0f} min left", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
