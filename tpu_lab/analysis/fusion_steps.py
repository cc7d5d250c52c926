"""How kernels came about: a program's fusion decisions one after the other, each with what it joined or kept apart."""

from __future__ import annotations

from dataclasses import dataclass

from ..record.fusion import Decision
from ..record.program import Program


@dataclass(frozen=True, slots=True)
class FusionStep:
    """One decision, in its place among all of a program."""

    number: int
    """From 1."""
    decision: Decision
    sentence: str
    """What happened, in words."""
    ops: tuple[str, ...]
    """Ids of the ATen ops that are together from here on; for a rejection those that were to be joined."""


def fusion_steps(program: Program) -> tuple[FusionStep, ...]:
    """All steps, in the order the compiler took them; empty if it logged none."""
    return tuple(FusionStep(i, d, _sentence(d), _ops(d)) for i, d in enumerate(program.decisions, 1))


def joined_by(program: Program, first: str, second: str) -> FusionStep | None:
    """The step that first put two ops into one kernel; None if none did. Ops are given by id (`n3:aten.mm` or `n3`)."""
    numbers = {first.partition(":")[0], second.partition(":")[0]}
    for step in fusion_steps(program):
        if step.decision.kind == "fused" and numbers <= {op.partition(":")[0] for op in step.ops}:
            return step
    return None


def _ops(decision: Decision) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*decision.producer_ops, *decision.consumer_ops)))


def _sentence(decision: Decision) -> str:
    if decision.kind == "rejected":
        return f"{decision.pass_name} left {decision.producer} out of {decision.consumer}: {decision.words or 'no reason given'}"
    result = "" if decision.result == decision.consumer else f", now {decision.result}"
    return f"{decision.pass_name} put {decision.producer} into {decision.consumer}{result}{f' ({decision.words})' if decision.words else ''}"
