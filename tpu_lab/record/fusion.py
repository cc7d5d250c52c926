"""What the compiler decided about fusing pairs of instructions, and the conclusion for pairs of ops that stayed apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a fusion pass, in the compiler's own names and words. A fact: no conclusion is drawn here."""

    pass_name: str
    """The pass: `tpu_fusion`, `tpu_multi_output_fusion`, on XLA:CPU `fusion`."""
    step: int
    """Position in the pass's log, from 0."""
    kind: str
    """`fused` or `rejected`."""
    producer: str
    """Name of the producing instruction when the decision was made."""
    consumer: str
    result: str = ""
    """Name of the instruction that holds both from here on; empty for a rejection."""
    words: str = ""
    """The compiler's reason, as it stands in the log; empty if it gave none."""
    producer_ops: tuple[str, ...] = ()
    """Ids of the ATen ops in the producer (`SourceOp.id`)."""
    consumer_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotFused:
    """Two ops joined by an edge that ended in different kernels, and why."""

    producer: str
    """Id of the ATen op that makes the value (`SourceOp.id`)."""
    consumer: str
    producer_kernel: int
    """Index in `Program.kernels`."""
    consumer_kernel: int
    reason: str
    """Id in the closed list of reasons."""
    text: str
    """The mechanism, one sentence."""
    remedy: str
    """What would change it."""
    evidence: str
    """The compiler's own words, or the rule that was used."""
    source: str
    """Where the reason comes from: `log` (replayed decisions), `pass` (difference of a pass's dumps), `rule`."""
    bytes: int = 0
    """Bytes that travel between the two kernels."""
    space: str = "HBM"
    """The memory space they travel through."""
