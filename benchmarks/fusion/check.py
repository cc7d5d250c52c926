"""The two checks: does the replay reproduce what every kernel holds, and does a pair share a kernel once the reason's cause is gone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tpu_lab.analysis.not_fused import unknown_codes
from tpu_lab.record.fusion import NotFused
from tpu_lab.record.program import Program
from tpu_lab.xla.fusion_passes import held

from .compiling import Compiled, compile_example
from .counterfactuals import CONSUMER, PRODUCER, Counterfactual
from .programs import Example
from .truth import Values, counts


@dataclass(frozen=True)
class Replayed:
    """How well the replay of one compile's log does."""

    program: str
    target: str
    kernels: int
    """Kernels that compute something."""
    exact: int
    """Those of which the replay names every instruction and no other."""
    wrong: tuple[str, ...]
    """Names of the others."""
    decisions: int
    unknown_names: int
    """Names in the log that neither a dump nor a step of the log explains."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Pairs of ops that stayed apart, by reason."""
    sources: Counter[str] = field(default_factory=Counter)
    unknown_codes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Wall time of compiling and reading, on the machine it ran on."""


@dataclass(frozen=True)
class Tried:
    """A counterfactual on one target."""

    case: Counterfactual
    target: str
    found: NotFused | None
    """What was said of the pair while the cause was there; None: not this reason."""
    kernels: tuple[str, str]
    """The two kernels then."""
    shared: str
    """The kernel that holds both once the cause is gone; empty: none."""

    @property
    def holds(self) -> bool:
        """Whether it came out as predicted."""
        return self.found is not None and bool(self.shared)


def replay_of(example: Example, target: str, effort: str) -> Replayed:
    """Compiles a program and compares what the replay says its kernels hold with what they hold."""
    start = time.perf_counter()
    made = compile_example(example, target, effort)
    wrong = [name for name, right in _kernels(made) if not right]
    return Replayed(
        example.name,
        target,
        sum(1 for _ in _kernels(made)),
        sum(right for _, right in _kernels(made)),
        tuple(wrong),
        len(made.replay.decisions),
        len(made.replay.unknown),
        Counter(n.reason for n in made.program.not_fused),
        Counter(n.source for n in made.program.not_fused),
        unknown_codes(made.program),
        time.perf_counter() - start,
    )


def _kernels(made: Compiled) -> Iterator[tuple[str, bool]]:
    """Name of every kernel that computes something, and whether the replay says exactly what it holds."""
    before = Values(made.before.module)
    after = Values(made.final.module, before)
    origin = {node.name: value for node, value in before.of.items() if counts(node)}
    for name, node in made.final.nodes.items():
        true = {after.of[inner] for inner in held(node) if counts(inner)}
        if true and node.opcode not in ("while", "conditional", "call"):
            said = {origin[inner] for inner in made.replay.members.get(name, ()) if inner in origin}
            yield name, said == true


def tried(case: Counterfactual, target: str) -> Tried:
    """Compiles both programs of a counterfactual."""
    apart = compile_example(case.apart, target).program
    together = compile_example(case.together, target).program
    found = next((n for n in apart.not_fused if n.reason == case.reason.id and n.producer == case.pair[0] and case.pair[1] in (n.consumer, "")), None)
    kernels = (apart.kernels[found.producer_kernel].name, apart.kernels[found.consumer_kernel].name) if found else ("", "")
    again = any((n.producer, n.consumer) == case.pair for n in together.not_fused)
    return Tried(case, target, found, kernels, "" if again else _holding_both(together))


def _holding_both(program: Program) -> str:
    return next((k.name for k in program.kernels if not k.inherited and {PRODUCER, CONSUMER} <= set(k.ops)), "")
