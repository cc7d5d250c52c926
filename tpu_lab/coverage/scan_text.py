"""A scan in words."""

from __future__ import annotations

from collections.abc import Iterable

from ..record.targets import TARGETS
from ..views.numbers import count, counted, percent, size
from ..views.text_table import table
from .explorer import WORDS
from .rows import THERE
from .scan import Scan, ScanMemory, ScanOp

_LISTED = 20
_NAMED = 4


def verdict(scan: Scan) -> str:
    """What the scan comes to, in a few sentences: here, on TorchTPU, syncs and breaks, memory."""
    parts = [_here(scan), _there(scan), _stops(scan), _memory(scan.memory)]
    if scan.values == "either":
        parts.append("Values were not computed; what only one side of a branch calls is marked either.")
    if scan.failure:
        parts.insert(0, f"The call raised {scan.failure}; what follows it is not in the scan.")
    return " ".join(parts)


def _here(scan: Scan) -> str:
    away = [op for op in scan.ops if op.here in ("fallback", "missing")]
    total = counted(len(scan.ops), "operator")
    if not away:
        return f"Here all {total} run on the device."
    raising = [op for op in away if op.here == "missing"]
    text = f"Here {len(scan.ops) - len(away)} of {total} run on the device; on the host: {_names(op for op in away if op.here == 'fallback')}."
    return text + (f" No kernel: {_names(raising)}." if raising else "") if len(raising) < len(away) else f"Here {_names(raising)} cannot run."


def _there(scan: Scan) -> str:
    missing = [op for op in scan.ops if op.torch_tpu == "missing"]
    if missing:
        return f"TorchTPU 0.2.0 lacks {_names(missing)}: the call raises there."
    unknown = [op for op in scan.ops if op.torch_tpu == "unknown"]
    return f"TorchTPU 0.2.0 has all of ATen's; not known: {_names(unknown)}." if unknown else "TorchTPU 0.2.0 has them all."


def _names(ops: Iterable[ScanOp]) -> str:
    names = [f"{op.name}{_at(op)}" for op in ops]
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _at(op: ScanOp) -> str:
    return f" ({op.lines[0]})" if op.lines and not op.lines[0].startswith("unknown") else ""


def _stops(scan: Scan) -> str:
    syncs = sum(sync.count for sync in scan.syncs)
    parts = [
        counted(syncs, "host sync"),
        counted(len(scan.breaks), "graph break"),
        counted(len(scan.dynamic), "size that depends", "sizes that depend"),
    ]
    return f"{', '.join(parts)} on values." if syncs or scan.breaks or scan.dynamic else "No host sync, graph break or size that depends on values."


def _memory(memory: ScanMemory) -> str:
    fitting = [name for name in TARGETS if memory.fits(name)]
    smallest = min(TARGETS.values(), key=lambda target: target.hbm_bytes)
    if len(fitting) == len(TARGETS):
        share = percent(memory.peak, smallest.hbm_bytes)
        return f"Peak memory {size(memory.peak)}, each operation alone: fits on every generation ({share} of {smallest.name})."
    return f"Peak memory {size(memory.peak)}, each operation alone: fits on {', '.join(fitting) or 'no generation'} (one device)."


def summary(scan: Scan) -> str:
    """The verdict and the lists behind it."""
    lines = [f"scan of {scan.name}", "", scan.verdict, ""]
    head = ("operator", "calls", "here", "TorchTPU 0.2.0", "line")
    rows = [
        (op.name, count(op.count), WORDS.get(op.here, op.here), THERE.get(op.torch_tpu, op.torch_tpu), _line(op.lines, op.either))
        for op in ops_shown(scan)
    ]
    lines += table(head, rows, "lrlll")
    if len(scan.ops) > len(rows):
        lines.append(f"… and {len(scan.ops) - len(rows)} more operators")
    for title, entries in lists(scan):
        lines += ["", title, *(f"  {where}: {what}{f' → {remedy}' if remedy else ''}" for where, what, remedy in entries)]
    lines += ["", f"memory, each operation alone: {size(scan.memory.peak)} at the peak, {size(scan.memory.parameters)} held by the model"]
    lines += [f"  {name:<6} {100 * share:6.2f} % of {size(TARGETS[name].hbm_bytes)}" for name, share in scan.memory.targets.items()]
    return "\n".join(lines)


def _row(op: ScanOp) -> tuple[str, ...]:
    return op.name, count(op.count), WORDS.get(op.here, op.here), THERE.get(op.torch_tpu, op.torch_tpu), _line(op.lines, op.either)


def ops_shown(scan: Scan) -> list[ScanOp]:
    """The operators to list: those with a fault first, then the most called."""
    faults = list(scan.missing)
    return [*faults, *(op for op in scan.ops if op not in faults)][:_LISTED]


def lists(scan: Scan) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Syncs, sizes and breaks with their titles, each entry as line, words and remedy. Empty lists are left out."""
    syncs = [(s.line, f"{s.title}, {counted(s.count, 'time')}{_either(s.either)}", s.remedy) for s in scan.syncs]
    sizes = [(d.line, f"{d.op}{f' gives {chr(44).join(d.sizes)}' if d.sizes else ''}{_either(d.either)}", "") for d in scan.dynamic]
    breaks = [(b.line, f"{b.title}{' (inferred)' if b.inferred else ''}", b.remedy) for b in scan.breaks]
    named = (("host syncs", syncs), ("sizes that depend on values", sizes), ("graph breaks", breaks))
    return [(title, entries) for title, entries in named if entries]


def _either(either: bool) -> str:
    return " (either)" if either else ""


def _line(lines: tuple[str, ...], either: bool) -> str:
    more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
    return f"{lines[0] if lines else ''}{more}{_either(either)}"
