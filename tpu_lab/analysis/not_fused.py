"""Why not fused: for every value that travels between two kernels the ops at its ends, a reason from the closed list, and the evidence.

The compiler's words come from the decisions it logged for the pair, under the names the two had at the time. Where it logged none, the
evidence is what a pass changed, or the rule that was used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..record.fusion import Decision, NotFused
from ..record.fusion_codes import code_places, in_words
from ..record.fusion_reasons import FusionReason
from ..record.program import Edge, Instruction, Program
from .fusion_rules import Pair, first_match

LOG, PASS, RULE = "log", "pass", "rule"
_FREE = frozenset({"get-tuple-element", "bitcast", "reshape", "tuple"})


def with_not_fused(program: Program) -> Program:
    """The program with `not_fused` worked out from its edges and decisions."""
    return replace(program, not_fused=not_fused(program))


def not_fused(program: Program) -> tuple[NotFused, ...]:
    """All pairs of ops that a value joins across kernels; each pair of ops and kernels once, those that carry most bytes first."""
    log = _Log(program)
    consumers = Counter(producer for producer, _ in {(e.producer, e.consumer) for e in program.edges})
    found: dict[tuple[str, str, int, int], NotFused] = {}
    for first, last, through in paths(program):
        pair = Pair(program, first, last, through, consumers[first.producer])
        for one in _conclusions(pair, log):
            key = one.producer, one.consumer, one.producer_kernel, one.consumer_kernel
            if key not in found or found[key].bytes < one.bytes:
                found[key] = one
    return tuple(sorted(found.values(), key=lambda n: (-n.bytes, n.producer_kernel, n.consumer_kernel, n.producer, n.consumer)))


def paths(program: Program) -> Iterator[tuple[Edge, Edge, tuple[int, ...]]]:
    """The ways of values from the kernel of one op to that of another: the first edge, the last (the same one unless copies lie between),
    and the kernels of those copies.

    A copy or prefetch that the compiler added is no op: no way begins at one, so the copies of inputs are left out, and one ends there
    only if the value goes no further.
    """
    into: dict[int, list[Edge]] = {}
    for edge in program.edges:
        if edge.producer >= 0 and edge.consumer >= 0:
            into.setdefault(edge.consumer, []).append(edge)
    onward = {edge.producer for edges in into.values() for edge in edges}
    movers = {i for i, k in enumerate(program.kernels) if k.kind in ("copy", "prefetch") and (k.inherited or not k.ops)}

    def beginnings(edge: Edge, through: tuple[int, ...]) -> Iterator[tuple[Edge, tuple[int, ...]]]:
        if edge.producer not in movers:
            yield edge, through
        elif edge.producer not in through:
            for one in into.get(edge.producer, ()):
                yield from beginnings(one, (edge.producer, *through))

    for edges in into.values():
        for last in edges:
            if last.producer != last.consumer and not (last.consumer in movers and last.consumer in onward):
                yield from ((first, last, through) for first, through in beginnings(last, ()) if first.producer != last.consumer)


def unknown_codes(program: Program) -> Counter[str]:
    """Places in the compiler's sources that its log names and the table of this version does not know, with how often."""
    return Counter(code for d in program.decisions for code in code_places(d.words) if not in_words(code))


def _conclusions(pair: Pair, log: _Log) -> Iterator[NotFused]:
    words, kept = log.words(pair.first) or log.words(pair.last), log.kept(pair.producer.name)
    rule = first_match(pair)
    if words:
        source, evidence = LOG, _explained(words)
    elif kept:
        source, evidence = PASS, f"{kept.pass_name}: {kept.producer} and {kept.consumer} became {kept.words}, {kept.result}"
    else:
        source, evidence = RULE, rule[1] if rule else ""
    codes = code_places(words)
    told = bool(words) and (not codes or any(in_words(code) for code in codes))
    reason = rule[0] if rule else FusionReason.COMPILER_CHOICE if told else FusionReason.UNKNOWN
    for user in pair.last.users or (pair.consumer.instruction,):
        yield NotFused(
            producer=_name(pair.maker),
            consumer=_name(pair.program.instructions[user]),
            producer_kernel=pair.first.producer,
            consumer_kernel=pair.last.consumer,
            reason=reason.id,
            text=reason.sentence,
            remedy=reason.remedy,
            evidence=evidence,
            source=source,
            bytes=pair.last.bytes,
            space=pair.last.space,
        )


def _name(instruction: Instruction) -> str:
    return instruction.op or f"%{instruction.name}"


def _explained(words: str) -> str:
    """The compiler's words, followed by what the bare places in them mean."""
    meant = {code: in_words(code) or "not in the table of this version" for code in code_places(words)}
    told = "; ".join(f"{code.rpartition(':')[2]}: {meaning}" for code, meaning in meant.items() if meaning not in words)
    return f"{words} [{told}]" if told else words


class _Log:
    """The rejections of a program's decisions, by what the names of both ends became."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._rejected: dict[str, list[Decision]] = {}
        self._kept: dict[str, Decision] = {}
        holders: dict[str, frozenset[str]] = {}
        for decision in reversed(program.decisions):
            if decision.kind == "rejected":
                forms = holders.get(decision.producer, frozenset()) | {decision.producer}
                for form in forms:
                    self._rejected.setdefault(form, []).append(decision)
            else:
                became = holders.get(decision.result, frozenset()) | {decision.result}
                for name in (decision.producer, decision.consumer):
                    holders[name] = holders.get(name, frozenset()) | became
                if decision.words:
                    self._kept.setdefault(decision.result, decision)
        self._holders = holders

    def words(self, edge: Edge) -> str:
        """The compiler's last reason against fusing what makes the edge's value into what uses it; empty if it gave none."""
        consumer = self._program.kernels[edge.consumer].name
        names = self._names(edge)
        exact = (d for name in names for d in self._rejected.get(name, ()) if d.consumer == consumer and d.producer in names)
        later = (d for name in names for d in self._rejected.get(name, ()) if consumer in self._holders.get(d.consumer, frozenset({d.consumer})))
        decision = next(exact, None) or next(later, None)
        return decision.words if decision else ""

    def kept(self, kernel: str) -> Decision | None:
        """The fusion that made a kernel one with several results, if a pass did so without giving words."""
        return self._kept.get(kernel)

    def _names(self, edge: Edge) -> tuple[str, ...]:
        """The producer's names: what travels, and what it is read from."""
        names, index = [], edge.instruction
        last = self._program.kernels[edge.producer].instruction
        while index != last:
            instruction = self._program.instructions[index]
            names.append(instruction.name)
            if instruction.opcode not in _FREE or len(instruction.operands) != 1:
                break
            index = instruction.operands[0]
        return (*names, self._program.kernels[edge.producer].name)
