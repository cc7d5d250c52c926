"""A finding: something in this run that is wrong or costs time, with its line, its mechanism and its remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; equal happenings on one line are one finding with a count."""

    id: str
    """Stable id of its kind in `reasons.FindingKind`: `TL201`."""
    title: str
    """At most 60 characters where the names in it allow."""
    reason: str
    """The mechanism, in words."""
    remedy: str
    """What to do; empty if it goes away with another finding."""
    severity: str = "cost"
    """`wrong` (values) or `cost` (time)."""
    count: int = 1
    cost_ns: int | None = None
    """Measured cost of all occurrences in this run; null: not known."""
    bytes: int | None = None
    """Bytes moved by all occurrences; null: none or not known."""
    location: int = -1
    cell_location: int = -1
    goes_away_with: str = ""
    """Id of the finding it depends on."""
    message: str = ""
    """The compiler's own words."""
    link: str = ""
    """A page that says more (https); empty: none."""
