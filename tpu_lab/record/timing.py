"""Timings: the first call, the later ones, and their spread."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall times of the whole cell in nanoseconds. The first call is apart: it compiles."""

    first_ns: int = 0
    later_ns: tuple[int, ...] = ()

    @property
    def steady_ns(self) -> float:
        """Median of the later calls; the first call if there is no other."""
        return float(median(self.later_ns)) if self.later_ns else float(self.first_ns)

    @property
    def low_ns(self) -> int:
        """Shortest later call."""
        return min(self.later_ns, default=self.first_ns)

    @property
    def high_ns(self) -> int:
        """Longest later call."""
        return max(self.later_ns, default=self.first_ns)

    @property
    def repeats(self) -> int:
        """Number of later calls."""
        return len(self.later_ns)
