"""In what a cluster without a program differs from the nearest one that has one: the first call that is not the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..events import OpProgram, TensorType
from .trace import Node, Step


def difference(root: Node, steps: Sequence[Step]) -> tuple[str, str]:
    """The id of a `record.reasons.RecompileReason` and a sentence; both empty if no cluster begins as this one does."""
    node = root
    for at, step in enumerate(steps):
        following = node.next.get(step)
        if following is None:
            known = _nearest(node, step)
            return ("", "") if known is None else _compare(at, step, known)
        node = following
    if node.programs:
        return "liveness", f"after call {len(steps)} other results are alive than in {_programs(len(node.programs))}"
    return "operator", f"it ends after call {len(steps)}, where clusters with a program go on"


def _programs(count: int) -> str:
    return "its program" if count == 1 else f"any of its {count} programs"


def _nearest(node: Node, step: Step) -> Step | None:
    """The known continuation most like this call: the same program, the same operator, or any."""
    known = list(node.next)
    if not known or (not node.depth and all(k[0].info.op != step[0].info.op for k in known)):
        return None
    return max(known, key=lambda k: (k[0] is step[0], k[0].info.op == step[0].info.op))


def _compare(at: int, step: Step, known: Step) -> tuple[str, str]:
    new, old = step[0].info, known[0].info
    call = f"call {at + 1}, {new.op}"
    if step[0] is known[0]:
        return "wiring", f"{call}: reads another tensor than the program does"
    if new.op != old.op:
        return "operator", f"call {at + 1} is {new.op}, the program has {old.op}"
    for name, reason in (("shape", "shape"), ("dtype", "dtype")):
        was, now = _part(old, name), _part(new, name)
        if was != now:
            return reason, f"{call}: {_text(new.inputs)}, the program has {_text(old.inputs)}"
    return "static", f"{call}: another argument that is part of the program (a dimension, a flag, strides)"


def _part(info: OpProgram, name: str) -> list[Any]:
    return [getattr(one, name) for one in (*info.inputs, *info.outputs)]


def _text(types: Sequence[TensorType]) -> str:
    return ", ".join(f"{one.dtype}{list(one.shape)}" for one in types) or "no tensors"
