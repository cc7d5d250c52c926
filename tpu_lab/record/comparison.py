"""The same cell in several modes from the same state: what `%%tpu compare` found."""

from __future__ import annotations

from dataclasses import dataclass

from .timing import Timing


@dataclass(frozen=True, slots=True)
class NamedDifference:
    """How far one value of a cell is from the reference's."""

    name: str
    """Where it is found: `loss`, `model.0.weight`, `losses[3]`."""
    max_rel: float | None = None
    """As in `Difference`; null: NaN or infinity in one of the two only, or another shape."""
    line: int = 0
    """The line of the cell that last binds the variable, else the first that uses it; 0: unknown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of a mode's results from the reference's, over everything the cell changed or showed."""

    max_abs: float | None = None
    """null: nothing to compare, or not finite."""
    max_rel: float | None = None
    """|a - b| / |b| at its largest, where b is the reference; null as above."""
    name: str = ""
    """The variable or parameter where the relative difference is largest."""
    nonfinite: bool = False
    """True: NaN or infinity in one of the two only."""
    compared: int = 0
    """How many tensors were compared."""
    tolerance: float | None = None
    """The relative tolerance that PyTorch's own tests take for the dtype; null: none given."""
    largest: tuple[NamedDifference, ...] = ()
    """The values that differ most, the worst first, at most five; equal ones are not among them."""


@dataclass(frozen=True, slots=True)
class ModeResult:
    """One mode's leg of a comparison."""

    mode: str
    device: str
    target: str
    """Who compiled and ran it: `XLA:CPU`, `TPU v6e`, `PyTorch CPU`."""
    run_id: str
    timing: Timing
    peak_bytes: int
    peak_exact: bool
    ops: int
    kernels: int
    kernels_exact: bool
    syncs: int
    fallbacks: int
    graph_breaks: int
    recompiles: int
    difference: Difference | None = None
    """null: this mode is the reference, or it failed."""
    failure: str = ""
    """Type and message of the exception that ended this leg; empty: it ran."""
    curve: tuple[int, ...] = ()
    """Live bytes of the recorded run at even steps of its ops, each the highest of its step; empty: not known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A mode against the baseline."""

    mode: str
    against: str
    verdict: str
    """`faster`, `slower`, `close` (too close to call) or `failed`."""
    ratio: float | None = None
    """How many times faster or slower in the steady state, at least 1; null unless the verdict is faster or slower."""
    repeats_needed: int | None = None
    """About how many repeats would separate the two; null: not needed, or more than 1,000."""
    extra_first_ns: int | None = None
    """How much more the first call costs; negative: less."""
    saving_ns: float | None = None
    """Saved by each later call; null unless faster."""
    break_even: int | None = None
    """The first call, from 1, by which the mode has paid for itself; null: never, or unknown."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All modes and what follows."""

    baseline: str
    reference: str
    """The mode whose numbers the others are compared with."""
    modes: tuple[ModeResult, ...]
    verdicts: tuple[Verdict, ...]
    recorded: bool = False
    """True: recorded runs side by side (`%tpu compare`): cells and starting states may differ, and no values were compared."""
    not_rewound: tuple[str, ...] = ()
    """Names of iterators, generators and open files that the first leg used up and that could not be put back: the later legs met them
    further on, so their values may differ for that alone."""
