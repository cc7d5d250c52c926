"""How numbers are written, everywhere: three significant digits, SI units after a no-break space, a true minus sign.

`narrow` places (gutter, columns) use two significant digits below 10. Zero is `0`, a quantity that does not apply is a dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..record.ops import TensorSpec, spec_text
from ..record.timing import Timing

NBSP = "\u00a0"
MINUS = "\u2212"
NOTHING = "\u2013"
TIMES = "\u00d7"
AT_LEAST = "\u2265"
ARROW = "\u2192"


@dataclass(frozen=True)
class Unit:
    """A unit and how many base units (ns, bytes, FLOP) it has."""

    name: str
    scale: float


TIME = (Unit("ns", 1), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9))
BYTES = (Unit("B", 1), Unit("kB", 1e3), Unit("MB", 1e6), Unit("GB", 1e9), Unit("TB", 1e12))
FLOP = (Unit("FLOP", 1), Unit("kFLOP", 1e3), Unit("MFLOP", 1e6), Unit("GFLOP", 1e9), Unit("TFLOP", 1e12))


def digits(value: float, narrow: bool = False) -> str:
    """A number: `358`, `96.3`, `9.80` (narrow `9.8`), `0.31`; from 1,000 on whole with separators."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return NOTHING
    sign, size = (MINUS if value < 0 else ""), abs(value)
    if narrow and 9.95 <= size < 10:
        size = 10.0
    keep = 2 if narrow and size < 10 else 3
    size = _rounded(size, keep)
    if size >= 1000:
        return f"{sign}{abs(value):,.0f}"
    decimals = max(0, keep - 1 - math.floor(math.log10(size)))
    if decimals > 6:
        mantissa, exponent = f"{size:.{keep - 1}e}".split("e")
        return f"{sign}{mantissa}e{MINUS if exponent[0] == '-' else ''}{exponent[1:].lstrip('0')}"
    return f"{sign}{size:.{decimals}f}"


def _rounded(value: float, keep: int) -> float:
    """To `keep` significant digits."""
    return float(f"{value:.{keep - 1}e}")


def best_unit(value: float, units: tuple[Unit, ...]) -> Unit:
    """The largest unit in which a value, rounded to three digits, is at least 1."""
    for unit in reversed(units):
        if _rounded(abs(value), 3) >= unit.scale:
            return unit
    return units[0]


def column_unit(values: Iterable[float], units: tuple[Unit, ...]) -> Unit:
    """One unit for a whole column: the one that suits its largest value."""
    return best_unit(max((abs(v) for v in values), default=0), units)


def in_unit(value: float | None, unit: Unit) -> str:
    """A number for a narrow column whose header names the unit: `358`, `96.3`, `9.8`, `0.31`, `<0.01`. None: empty."""
    if value is None:
        return ""
    scaled = value / unit.scale
    if unit.scale == 1:
        return count(round(scaled))
    if 0 < scaled < 0.005:
        return "<0.01"
    return f"{scaled:.2f}" if 0 < scaled < 0.095 else digits(scaled, narrow=True)


def with_unit(value: float | None, units: tuple[Unit, ...]) -> str:
    """A number with its own unit: `856 ms`. None is a dash; zero has no unit."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    unit = best_unit(value, units)
    return f"{_number(value, unit)}{NBSP}{unit.name}"


def _number(value: float, unit: Unit) -> str:
    """Three digits; base units are whole."""
    return count(round(value)) if unit.scale == 1 else digits(value / unit.scale)


def duration(ns: float | None) -> str:
    """A time in ns, µs, ms or s."""
    return with_unit(ns, TIME)


def size(nbytes: float | None) -> str:
    """Bytes in decimal units."""
    return with_unit(nbytes, BYTES)


def exact_bytes(nbytes: int) -> str:
    """Bytes in full, for titles: `1,040,187,392 bytes`."""
    return f"{count(nbytes)}{NBSP}bytes"


def flops(value: float | None) -> str:
    """Floating-point operations."""
    return with_unit(value, FLOP)


def count(value: int) -> str:
    """A count in full, with separators."""
    return f"{value:,}".replace("-", MINUS)


def counted(value: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 host sync`, `3 host syncs`."""
    return f"{count(value)}{NBSP}{noun if value == 1 else plural or noun + 's'}"


def at_least(text: str, exact: bool) -> str:
    """Marks a lower bound."""
    return text if exact or text in ("0", NOTHING, "") else f"{AT_LEAST}{NBSP}{text}"


def ratio(value: float) -> str:
    """`1.5×`: two digits below 10, whole above 100."""
    return f"{digits(value, narrow=value < 9.95)}{TIMES}"


def percent(part: float, whole: float) -> str:
    """A share as a percentage: whole above 10, two digits below; a dash if the whole is nothing."""
    if not whole:
        return NOTHING
    value = 100 * part / whole
    if 0 < value < 0.005:
        return f"<0.01{NBSP}%"
    return f"{round(value) if value >= 9.95 else digits(value, narrow=True)}{NBSP}%"


def ordinal(value: int) -> str:
    """`1st`, `2nd`, `3rd`, `9th`, `11th`."""
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{count(value)}{ending}"


def shape(spec: TensorSpec | None) -> str:
    """A tensor's type: `bf16[8,16,1024,1024]`."""
    return spec_text(spec) if spec is not None else NOTHING


def spread(timing: Timing, unit: Unit | None = None) -> str:
    """The shortest to the longest repeat, `1.27–1.44 s`; without the unit if one is given (a column's)."""
    if not timing.later_ns:
        return NOTHING
    own = unit or best_unit(timing.high_ns, TIME)
    low, high = _number(timing.low_ns, own), _number(timing.high_ns, own)
    text = low if low == high else f"{low}{NOTHING}{high}"
    return text if unit else f"{text}{NBSP}{own.name}"
