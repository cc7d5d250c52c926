"""The rules that say why a value travels between two kernels: facts about the pair, first match decides.

The rules come from the log of libtpu 0.0.42.1 over the programs of `benchmarks/fusion`, and are held to it there: programs are compiled with
the rule's cause and without it, and without it the pair shares a kernel. docs/fusion-validation.md says for which rules that was done.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..record.fusion_reasons import FusionReason
from ..record.program import Edge, Instruction, Kernel, Program

_SORTS = re.compile(r"^(TopK|ApproxTopK|Sort)|sort|top-?k", re.IGNORECASE)
_EMULATION = re.compile(r"^X(64|128)(Split|Combine)")
_HOST = frozenset({"send", "recv", "infeed", "outfeed", "send-done", "recv-done"})
_PLACES = frozenset({"gather", "scatter", "dynamic-update-slice", "dynamic-slice"})
_RANDOM = frozenset({"rng", "rng-bit-generator", "rng-get-and-update-state"})
_WINDOWS = frozenset({"reduce-window", "select-and-scatter"})
_SHAPERS = frozenset({"reverse", "concatenate", "pad", "transpose"})
_MATMULS = frozenset({"dot", "convolution"})


@dataclass(frozen=True)
class Pair:
    """Two kernels that a value joins, with what a rule may ask of them."""

    program: Program
    first: Edge
    """The edge from the producer."""
    last: Edge
    """The edge to the consumer: the same one, unless copies that the compiler added lie between."""
    through: tuple[int, ...]
    """The kernels of those copies."""
    consumers: int
    """Kernels that take a result of the producer, and outputs of the program that are one."""

    @property
    def producer(self) -> Kernel:
        return self.program.kernels[self.first.producer]

    @property
    def consumer(self) -> Kernel:
        return self.program.kernels[self.last.consumer]

    @property
    def maker(self) -> Instruction:
        index = self.first.maker if self.first.maker >= 0 else self.first.instruction
        return self.program.instructions[index]

    @property
    def users(self) -> tuple[Instruction, ...]:
        return tuple(self.program.instructions[i] for i in self.last.users)

    @cached_property
    def made_by(self) -> frozenset[str]:
        """Opcodes inside the producer."""
        return _opcodes(self.program, self.producer)

    @cached_property
    def used_by(self) -> frozenset[str]:
        """Opcodes inside the consumer."""
        return _opcodes(self.program, self.consumer)

    @property
    def either(self) -> frozenset[str]:
        return self.made_by | self.used_by

    @property
    def calls(self) -> tuple[str, ...]:
        """What custom calls at either end are called."""
        heads = (self.program.instructions[k.instruction] for k in (self.producer, self.consumer))
        return tuple(head.target or head.name for head in heads if head.opcode == "custom-call")

    @property
    def spread(self) -> bool:
        """Whether a user has more elements than the value."""
        return any(prod(user.shape) > prod(self.maker.shape) for user in self.users)

    @property
    def reduced(self) -> bool:
        """Whether the value is a reduction's result, or made of one without growing."""
        sizes = [prod(i.shape) for i in self._members() if i.opcode == "reduce"]
        return self.maker.opcode == "reduce" or any(prod(self.maker.shape) <= size for size in sizes)

    def _members(self) -> tuple[Instruction, ...]:
        return tuple(self.program.instructions[i] for i in self.producer.members)

    @property
    def copied(self) -> bool:
        """Whether the value is copied on its way, other than into another memory."""
        return self.kinds("copy") or any(self.program.kernels[i].kind == "copy" for i in self.through)

    def kinds(self, kind: str) -> bool:
        """Whether either kernel is of a kind."""
        return kind in (self.producer.kind, self.consumer.kind)


def _opcodes(program: Program, kernel: Kernel) -> frozenset[str]:
    return frozenset(program.instructions[i].opcode for i in (*kernel.members, kernel.instruction))


Rule = tuple[FusionReason, str, Callable[[Pair], bool]]
_R = FusionReason
COMMON: tuple[Rule, ...] = (
    (_R.COLLECTIVE, "one kernel is a collective", lambda p: p.kinds("collective")),
    (_R.HOST_TRANSFER, "one kernel is a transfer to or from the host", lambda p: bool(p.either & _HOST)),
    (_R.MEMORY_MOVE, "one kernel only moves the value between memory spaces", lambda p: p.kinds("prefetch") or _moves(p)),
    (_R.CONTROL_FLOW, "the kernels are in different computations: one is in a loop or branch", lambda p: _apart(p)),
    (_R.EMULATED_DTYPE, "one kernel is a call that emulates a dtype", lambda p: any(_EMULATION.match(c) for c in p.calls)),
    (_R.SORT, "one kernel sorts", lambda p: "sort" in p.either or any(_SORTS.search(c) for c in p.calls)),
    (_R.GATHER_SCATTER, "one kernel reads or writes at computed places", lambda p: bool(p.either & _PLACES)),
    (_R.RANDOM, "one kernel is the random generator", lambda p: bool(p.either & _RANDOM)),
)
"""Rules that hold for every target, in order."""
TPU: tuple[Rule, ...] = (
    *COMMON,
    (_R.CUSTOM_CALL, "one kernel is a custom call", lambda p: bool(p.calls)),
    (_R.LAYOUT_CHANGE, "a copy changes the layout between the two, or one kernel is such a copy", lambda p: p.copied),
    (_R.TWO_MATMULS, "both kernels drive the matrix unit", lambda p: p.producer.kind == p.consumer.kind == "matmul"),
    (_R.WINDOW, "one kernel works on windows", lambda p: bool(p.either & _WINDOWS)),
    (_R.SCALAR_RESULT, "the value has one element", lambda p: prod(p.maker.shape) == 1),
    (_R.REDUCTION_THEN_BROADCAST, "the value is a reduction's result and its user has more elements", lambda p: p.reduced and p.spread),
    (_R.AFTER_REDUCTION, "the value is a reduction's result", lambda p: p.reduced),
    (_R.SMALL_VALUE, "its user has more elements than the value", lambda p: p.spread),
    (_R.USED_MORE_THAN_ONCE, "several kernels or outputs take the producer's results", lambda p: p.consumers > 1),
    (_R.AFTER_MATMUL, "the producer is a matrix product", lambda p: p.producer.kind == "matmul"),
    (_R.NOT_FUSIBLE, "one op rearranges elements in a way that no loop over elements does", lambda p: _rearranges(p)),
)
"""Rules for TPU targets, in order."""
CPU: tuple[Rule, ...] = (
    *COMMON,
    (_R.LIBRARY_CALL, "one kernel is a library call", lambda p: bool(p.calls) or _library(p)),
    (_R.LAYOUT_CHANGE, "a copy changes the layout between the two, or one kernel is such a copy", lambda p: p.copied),
    (_R.WINDOW, "one kernel works on windows", lambda p: bool(p.either & _WINDOWS)),
    (_R.REDUCTION_THEN_BROADCAST, "the value is a reduction's result and its user has more elements", lambda p: p.reduced and p.spread),
    (_R.AFTER_REDUCTION, "the value is a reduction's result", lambda p: p.reduced),
    (_R.SMALL_VALUE, "its user has more elements than the value", lambda p: p.spread),
    (_R.USED_MORE_THAN_ONCE, "several kernels or outputs take the producer's results", lambda p: p.consumers > 1),
    (_R.NOT_FUSIBLE, "one op rearranges elements in a way that no loop over elements does", lambda p: _rearranges(p)),
)
"""Rules for XLA:CPU, in order. They are no guide to a TPU."""


def first_match(pair: Pair) -> tuple[FusionReason, str] | None:
    """The reason of the first rule that holds, and the rule in words; None if none does."""
    for reason, words, holds in TPU if pair.program.target.is_tpu else CPU:
        if holds(pair):
            return reason, words
    return None


def _moves(pair: Pair) -> bool:
    heads = [pair.program.instructions[k.instruction] for k in (pair.producer, pair.consumer)]
    return any(head.opcode.endswith(("-start", "-done")) for head in heads)


def _apart(pair: Pair) -> bool:
    first, second = (pair.program.instructions[k.instruction].computation for k in (pair.producer, pair.consumer))
    return first != second


def _rearranges(pair: Pair) -> bool:
    return pair.maker.opcode in _SHAPERS or any(user.opcode in _SHAPERS for user in pair.users)


def _library(pair: Pair) -> bool:
    heads = {pair.program.instructions[k.instruction].opcode for k in (pair.producer, pair.consumer)}
    names = {pair.program.instructions[k.instruction].name for k in (pair.producer, pair.consumer)}
    return bool(heads & _MATMULS) or any("ynn" in name or "onednn" in name for name in names)
