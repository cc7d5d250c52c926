"""Replay of the compiler's fusion log: which instructions of the program before fusion every name in it holds, at any moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..record.fusion import Decision
from ..record.program import Note, Program
from .fusion_log import FUSED, REJECTED, Step, fusions, read_log
from .fusion_passes import Pass, State, absorbed, read_passes, renamed
from .fusion_words import read_rejections
from .hlo_proto import DecodeError

PLAIN, MULTI_OUTPUT = "tpu_fusion", "tpu_multi_output_fusion"
KEPT_AS_OUTPUT = "one kernel with several results"
"""Words of a fusion that a pass made without writing it into the log."""


@dataclass
class Replay:
    """The state of a replay, and in the end its result."""

    members: dict[str, frozenset[str]]
    """Name to the names of the instructions before fusion that it holds, or held when it was last seen."""
    ids: Mapping[str, str]
    """Instruction before fusion to the id of the ATen op in its metadata."""
    decisions: list[Decision] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    """Names in the log that no dump and no step explains."""

    def decide(self, passed: str, kind: str, producer: str, consumer: str, result: str = "", words: str = "") -> None:
        """Adds a decision, and for a fusion its effect."""
        self.unknown |= {name for name in (producer, consumer) if name not in self.members}
        held = [self.members.get(name, frozenset()) for name in (producer, consumer)]
        self.decisions.append(Decision(passed, len(self.decisions), kind, producer, consumer, result, words, self._ops(held[0]), self._ops(held[1])))
        if kind == FUSED:
            self.members[result] = held[0] | held[1]

    def _ops(self, names: frozenset[str]) -> tuple[str, ...]:
        return tuple(sorted({id for name in names if (id := self.ids.get(name))}, key=lambda id: int(id[1:].partition(":")[0])))


def with_decisions(program: Program, folder: Path) -> Program:
    """A program with the decisions in the folder that it was dumped into.

    With the log and the dumps of `fusion_log` and `fusion_passes` all of them; with the lines of `fusion_words` alone the rejections; with
    neither none. A log of another form gives none either, and a note that says so.
    """
    try:
        decisions = read_replay(folder).decisions or _rejections(program, read_rejections(folder))
    except DecodeError as error:
        return replace(program, notes=(*program.notes, Note("missing", f"why ops were not fused is told by rules alone: {error}")))
    return replace(program, decisions=tuple(decisions))


def read_replay(folder: Path) -> Replay:
    """The replay of the log in a folder that a compiler dumped into; empty without a log or dumps of passes. Raises DecodeError."""
    passes, steps = read_passes(folder), read_log(folder)
    found = sorted(folder.glob("*after_optimizations.hlo.pb"))
    return replay(steps, passes, State(found[-1]) if found else None) if passes and steps else Replay({}, {})


def _rejections(program: Program, steps: Sequence[Step]) -> list[Decision]:
    """Rejections as decisions, with the ops of those names that kernels still have."""
    ops = {kernel.name: kernel.ops for kernel in program.kernels if not kernel.inherited}
    return [
        Decision(PLAIN, i, step.kind, step.producer, step.consumer, "", step.words, ops.get(step.producer, ()), ops.get(step.consumer, ()))
        for i, step in enumerate(steps)
    ]


def replay(steps: Sequence[Step], passes: Sequence[Pass], final: State | None = None) -> Replay:
    """Runs a log over the passes that wrote it, up to the module that is compiled in the end (by default: to the last pass).

    Between two dumps it takes in what was merged or renamed without a word in the log.
    """
    first = passes[0].before
    ids = {node.name: node.op for node in first.module.nodes if node.op}
    done = Replay({name: first.members(name) for name in first.nodes}, ids)
    parts = _parts(steps, passes)
    for index, passed in enumerate(passes):
        consumed = set()
        for about, step in _settled(parts.get(index, ())):
            if step.kind == FUSED:
                consumed |= {about.producer, about.consumer}
                done.decide(passed.name, FUSED, about.producer, about.consumer, step.consumer)
            else:
                done.decide(passed.name, REJECTED, step.producer, step.consumer, words=step.words)
        following = passes[index + 1].before if index + 1 < len(passes) else final or passed.after
        _take_in(done, passed, following, consumed)
    return done


def _take_in(done: Replay, passed: Pass, following: State, consumed: set[str]) -> None:
    """What vanished in a pass, or between it and the next, and is not accounted for by the log."""
    for before, after in ((passed.before, passed.after), (passed.after, following)):
        for old, new in renamed(before, after):
            if old in done.members and new not in done.members:
                done.members[new] = done.members[old]
        for name, holder in absorbed(before, after):
            if name in consumed or name not in done.members:
                continue
            if holder in done.members:
                words = KEPT_AS_OUTPUT if passed.name == MULTI_OUTPUT and before is passed.before else ""
                done.decide(passed.name, FUSED, name, holder, holder, words)
            else:
                done.members[holder] = done.members[name]
    for name in following.nodes.keys() - done.members.keys():
        done.members[name] = following.members(name)


def _settled(steps: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    """Fusions (with their announcement) and rejections, in order."""
    outcomes = {position: (about, outcome) for position, about, outcome in fusions(steps)}
    for position, step in enumerate(steps):
        if position in outcomes:
            yield outcomes[position]
        elif step.kind == REJECTED:
            yield step, step


def _parts(steps: Sequence[Step], passes: Sequence[Pass]) -> dict[int, tuple[Step, ...]]:
    """The part of the log that each pass wrote, by position of the pass.

    The log names no passes. It begins with the first. A part ends where the kind of rejections changes: a pass that makes only fusions with
    several outputs puts its reason second, any other puts `Not fusing MOF` there. A later part belongs to the pass of `tpu_fusion` whose
    dumps know most of its names.
    """
    plain = [i for i, p in enumerate(passes) if p.name != MULTI_OUTPUT]
    parts: dict[int, tuple[Step, ...]] = {}
    start, index = 0, plain[0] if plain else 0
    for end in (*_turns(steps), len(steps)):
        part = tuple(steps[start:end])
        if part:
            if start:
                index = _pass_of(part, passes, [i for i in plain if i > index] or [index])
            parts[index] = parts.get(index, ()) + part
        start = end
    return parts


def _turns(steps: Sequence[Step]) -> Iterator[int]:
    """Positions where a part begins, but the first."""
    current: str | None = "plain" if steps and steps[0].kind != REJECTED and not steps[0].multi_output else None
    for position, step in enumerate(steps):
        kind = _part_kind(step)
        if kind is None or kind == current:
            continue
        if current is not None:
            yield position
        current = kind


def _part_kind(step: Step) -> str | None:
    if step.kind == REJECTED:
        return "last" if step.words.partition(" ; ")[2].startswith("Not fusing MOF") or " ; " not in step.words else "several outputs"
    return "several outputs" if step.multi_output else None


def _pass_of(part: Sequence[Step], passes: Sequence[Pass], choices: Sequence[int]) -> int:
    names = {name for step in part for name in (step.producer, step.consumer)}
    return max(choices, key=lambda i: (len(names & (passes[i].before.nodes.keys() | passes[i].after.nodes.keys())), -i))
