"""A measured figure and its target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    `measured` and `cpu` (torch on the CPU in the same run, None where there is no counterpart) are in `unit`. `target` is the
    target in words and `met` whether it was met; both empty where a figure is only shown.
    """

    name: str
    measured: float
    unit: str
    cpu: float | None = None
    target: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over torch on the CPU."""
        return self.measured / self.cpu if self.cpu else None


def at_most(limit: float, name: str, measured: float, unit: str, cpu: float | None = None) -> Figure:
    """A figure that shall not pass `limit`."""
    return Figure(name, measured, unit, cpu, f"≤ {limit:g} {unit}".strip(), measured <= limit)


def at_least(limit: float, name: str, measured: float, unit: str, cpu: float | None = None) -> Figure:
    """A figure that shall reach `limit`."""
    return Figure(name, measured, unit, cpu, f"≥ {limit:g} {unit}".strip(), measured >= limit)


def times_cpu(limit: float, name: str, measured: float, cpu: float, unit: str) -> Figure:
    """A figure that shall not pass `limit` times what torch takes on the CPU."""
    return Figure(name, measured, unit, cpu, f"≤ {limit:g} × CPU", measured <= limit * cpu)


def holds(name: str, true: bool) -> Figure:
    """Something that is so or not: 1 or 0."""
    return Figure(name, float(true), "", None, "yes", true)
