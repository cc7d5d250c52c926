"""What a scan finds in a model, as data: operators with counts, lines and both statuses, syncs, dynamic sizes, breaks, memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..record.reasons import BreakReason, SyncReason
from ..record.targets import TARGETS

FORMAT = "tpu-lab-scan"


@dataclass(frozen=True)
class ScanOp:
    """One overload that the model calls."""

    name: str
    """`aten.smooth_l1_loss`."""
    count: int
    here: str
    """`native`, `decomposed`, `fallback`, `missing`; `unknown` for an operator that is not ATen's."""
    torch_tpu: str
    """`own`, `composite`, `missing`, `unknown`: in TorchTPU 0.2.0."""
    lines: tuple[str, ...]
    """Where it is called: `model.py:12`, the most calls first."""
    dtypes: tuple[str, ...]
    """Of its operands."""
    either: bool = False
    """True: only one side of a branch whose value is not known calls it."""
    note: str = ""


@dataclass(frozen=True)
class ScanSync:
    """A place where the host waits for the device."""

    reason: str
    """Id in `SyncReason`."""
    line: str
    count: int
    either: bool = False

    @property
    def title(self) -> str:
        """The reason in words."""
        return SyncReason.of(self.reason).title

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return SyncReason.of(self.reason).remedy


@dataclass(frozen=True)
class ScanDynamic:
    """A result whose size depends on values: each size is another program."""

    op: str
    line: str
    count: int
    sizes: tuple[str, ...]
    """The sizes met with these inputs; empty where values were not computed."""
    either: bool = False


@dataclass(frozen=True)
class ScanBreak:
    """A place where torch.compile ends a graph."""

    reason: str
    """Id in `BreakReason`."""
    line: str
    message: str
    """PyTorch's words."""
    remedy: str
    inferred: bool = False
    """True: concluded from the host syncs, because the model is too large to be traced with values."""

    @property
    def title(self) -> str:
        """The reason in words."""
        return BreakReason.of(self.reason).title


@dataclass(frozen=True)
class ScanMemory:
    """Memory of the call, each operation alone, from shapes; in bytes."""

    parameters: int
    """Parameters, buffers and whatever else the model holds."""
    inputs: int
    peak: int
    """The most that is alive at once, with parameters, inputs and what autograd keeps."""

    @property
    def targets(self) -> dict[str, float]:
        """By TPU generation the peak as a share of the HBM that a program may use on one device of it."""
        return {name: self.peak / target.hbm_bytes for name, target in TARGETS.items()}

    def fits(self, target: str) -> bool:
        """Whether the peak fits on one device of a generation. Raises KeyError for a name that is not in `targets`."""
        return self.targets[target] <= 1


@dataclass(frozen=True)
class Scan:
    """What a scan found. It displays itself; `summary()` is its text, `to_json()` its data."""

    name: str
    ops: tuple[ScanOp, ...]
    syncs: tuple[ScanSync, ...]
    dynamic: tuple[ScanDynamic, ...]
    breaks: tuple[ScanBreak, ...]
    memory: ScanMemory
    values: str
    """`not needed`; `computed` on CPU copies; `either`: not computed, both sides of each branch were followed one level."""
    failure: str = ""
    """The exception that ended the scan, if one did: what follows it is not in the scan."""

    @property
    def missing(self) -> tuple[ScanOp, ...]:
        """Operators that do not run on the device, here or on TorchTPU."""
        return tuple(op for op in self.ops if op.here in ("fallback", "missing") or op.torch_tpu == "missing")

    @property
    def verdict(self) -> str:
        """The scan in a few sentences."""
        from .scan_text import verdict

        return verdict(self)

    def summary(self) -> str:
        """The scan as text."""
        from .scan_text import summary

        return summary(self)

    def to_data(self) -> dict[str, Any]:
        """The scan as JSON data."""
        data = asdict(self)
        data["missing"] = [op.name for op in self.missing]
        data["memory"]["targets"] = self.memory.targets
        return {"format": FORMAT, "schema": "1.0", **data, "verdict": self.verdict}

    def to_json(self) -> str:
        """The scan as JSON text."""
        return json.dumps(self.to_data(), ensure_ascii=False)

    def to_html(self) -> str:
        """The scan as one page that opens from disk."""
        from .scan_html import scan_page

        return scan_page(self)

    def _repr_mimebundle_(self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> Mapping[str, Any]:
        from .scan_html import fragment

        return {"text/plain": self.summary(), "text/html": fragment(self)}
