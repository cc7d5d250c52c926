"""Why something happened: closed lists of reasons, each with a stable id, a sentence that states the mechanism, and a remedy.

Recorders store only the id. A reason that is not in the list (a newer recorder, a new message of the compiler) is shown as
`unknown` next to the original words, and counted, never guessed.
"""

from __future__ import annotations

import re

from .compile_reasons import BreakReason, RecompileReason, RegionReason, SizeReason
from .flush_reasons import ClusterState, FlushReason
from .reason_list import ReasonList

__all__ = [
    "BreakReason",
    "ClusterState",
    "FallbackReason",
    "FindingKind",
    "FlushReason",
    "ReasonList",
    "RecompileReason",
    "RegionReason",
    "SizeReason",
    "SyncReason",
]


class SyncReason(ReasonList):
    """Why the host waited for the device."""

    ITEM = (
        "item",
        ".item() waits for the device",
        "Python needs the number, so everything queued before it runs first.",
        "Keep the value on the device: `total += loss.detach()`, and read it once after the loop.",
    )
    CPU = (
        "cpu",
        "A copy to the host waits for the device",
        "The bytes can leave only when every op that makes them is done.",
        "Copy once after the loop, or keep the tensor on the device.",
    )
    SYNCHRONIZE = (
        "synchronize",
        "synchronize() waits for the device",
        "The call asks for it: it returns when the queue is empty.",
        "Drop `torch.tpu.synchronize()` where no time is measured.",
    )
    DATA_DEPENDENT_SIZE = (
        "data_dependent_size",
        "A result's size depends on values",
        "PyTorch must know the size before it can return the tensor, so the values are read.",
        "Keep the size fixed: `torch.where(mask, x, 0)` instead of `x[mask]`.",
    )
    PRINT = (
        "print",
        "Printing a tensor waits for the device",
        "Text needs the values, so the queue drains and the tensor is copied.",
        "Print the shape, or print every N steps.",
    )
    INDEX_CHECK = (
        "index_check",
        "An index check waits for the device",
        "Whether the index is in range is known only when its values are.",
        "Use Python integers or a boolean mask of fixed size as index.",
    )
    UNKNOWN = (
        "unknown",
        "The host waits for the device",
        "The recorder gave a reason this version has no wording for.",
        "Read the original reason; report it if it stays.",
    )


class FallbackReason(ReasonList):
    """Why an operator ran on the host."""

    NO_LOWERING = (
        "no_lowering",
        "runs on the host: no TPU lowering",
        "The operator has neither a lowering nor a decomposition for this device.",
        "Use an operator that is native, or move the op out of the hot path.",
    )
    DTYPE = (
        "dtype",
        "runs on the host: dtype not lowered",
        "The lowering does not take an operand of this dtype.",
        "Cast the operand first: `x.float()`.",
    )
    LAYOUT = (
        "layout",
        "runs on the host: layout not lowered",
        "The operand is sparse, quantized or otherwise not strided.",
        "Make it dense first: `x.to_dense()`.",
    )
    REQUESTED = (
        "requested",
        "runs on the host: asked for",
        "The op was sent to the host by the program itself.",
        "Remove the request to run it on the device.",
    )
    UNKNOWN = (
        "unknown",
        "runs on the host",
        "The recorder gave a reason this version has no wording for.",
        "Read the original reason; report it if it stays.",
    )

    @classmethod
    def from_text(cls, text: str) -> FallbackReason:
        """The reason behind a device's words, or the member with this id."""
        for pattern, member in _FALLBACK_PATTERNS:
            if pattern.search(text):
                return member
        return cls.of(text)


_FALLBACK_PATTERNS: tuple[tuple[re.Pattern[str], FallbackReason], ...] = (
    (re.compile(r"no lowering|no decomposition"), FallbackReason.NO_LOWERING),
    (re.compile(r"\bdtype\b"), FallbackReason.DTYPE),
    (re.compile(r"sparse|quantized|layout|nested"), FallbackReason.LAYOUT),
)


class FindingKind(ReasonList):
    """The kinds of findings a run can have. `mark` names the picture in the gutter."""

    HOST_SYNC = ("TL201", "Host sync", "The host waits for the device in the middle of the cell.", "")
    FALLBACK = ("TL202", "CPU fallback", "An operator runs on the host and its operands travel there and back.", "")
    RECOMPILE = ("TL301", "Recompile", "A program is compiled again because a part of its key changed.", "")
    GRAPH_BREAK = ("TL302", "Graph break", "torch.compile ends a program where it cannot follow Python.", "")
    RECOMPILE_LIMIT = ("TL303", "No longer compiled", "A function reached the limit of programs kept and runs uncompiled from there on.", "")
    NEAR_RECOMPILE_LIMIT = ("TL304", "Near the recompile limit", "A few programs more, and torch.compile stops compiling the function.", "")
    TRACE_GIVEN_UP = ("TL305", "Tracing given up", "A function was too long to trace; it runs op by op.", "")
    NOT_REWOUND = ("TL306", "Not rewound", "What cannot be put back was used up by the first mode of a comparison.", "")
    NOT_FUSED = ("TL307", "Not fused", "A cluster of calls could not be compiled as one program; it runs call by call.", "")
    UNKNOWN = ("unknown", "Finding", "A newer version of tpu_lab made this finding.", "")

    @property
    def mark(self) -> str:
        """`sync`, `fallback`, `recompile`, `break` or `note`."""
        return _MARKS.get(self.id, "note")


_MARKS = {
    "TL201": "sync",
    "TL202": "fallback",
    "TL301": "recompile",
    "TL302": "break",
    "TL303": "recompile",
    "TL304": "recompile",
    "TL305": "break",
}
