"""What became of each node: the journal of a run and the data file that all runs merge into.

The journal has a line for each node, so that a run can go on where it stopped.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .nodes import Node

ROOT = Path(__file__).parents[2]
JOURNAL = ROOT / "build" / "conformance" / "journal.jsonl"
DATA = ROOT / "tpu_lab" / "coverage" / "data" / "conformance.json"
DECLARED = ROOT / "tpu_lab" / "coverage" / "data" / "declared.json"


def read_journal(path: Path = JOURNAL) -> dict[str, dict[str, Any]]:
    """The last entry of each node. A line cut off by a killed run is left out."""
    entries: dict[str, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            entries[entry["node"]] = entry
    return entries


class Declared:
    """What is known to differ or to run on the host, with reasons.

    `nodes`: by `op|variant|dtype`, where each part may be `*` or several names with commas between; `fallbacks`: overloads that have no
    XLA program.
    """

    def __init__(self, path: Path = DECLARED) -> None:
        data = json.loads(path.read_text())
        self.nodes: dict[str, str] = data["nodes"]
        self.fallbacks: dict[str, str] = data["fallbacks"]

    def reason(self, node: str) -> str | None:
        """Why a node is expected to fail; None where it has to pass."""
        return next((reason for pattern, reason in self.nodes.items() if fits(node, pattern)), None)


def fits(node: str, pattern: str) -> bool:
    """True if a pattern of `Declared.nodes` takes in a node."""
    return all(part in wanted.split(",") or wanted == "*" for part, wanted in zip(node.split("|"), pattern.split("|"), strict=True))


def judged(entry: dict[str, Any], declared: Declared) -> dict[str, Any]:
    """An entry as the data file has it: a declared node that failed is `declared`; one that passed, or fell back undeclared, has failed the suite."""
    kept = {k: entry[k] for k in ("status", "compared", "exact", "near", "reason", "fallbacks", "samples") if k in entry}
    reason = declared.reason(entry["node"])
    if entry["status"] == "none":
        return {"status": "skipped", "reason": "no sample that the CPU runs and the device takes", "samples": entry["samples"]}
    if reason is not None and entry["status"] == "fail":
        return {**kept, "status": "declared", "reason": reason}
    if reason is not None and entry["status"] == "pass":
        return {**kept, "status": "fail", "reason": f"declared to fail ({reason}), and passes: take it off the list"}
    undeclared = [op for op in entry.get("fallbacks", ()) if op not in declared.fallbacks]
    if undeclared and entry["status"] == "pass":
        return {**kept, "status": "fail", "reason": f"fell back to the CPU, which is not declared: {', '.join(undeclared)}"}
    return kept


def load(path: Path = DATA) -> dict[str, Any]:
    """The data file; empty tables where there is none."""
    if not path.exists():
        return {"made": {}, "nodes": {}, "overloads": {}}
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def merge(data: dict[str, Any], entries: Iterable[dict[str, Any]], declared: Declared) -> None:
    """Puts a run's entries into the data."""
    for entry in entries:
        data["nodes"][entry["node"]] = judged(entry, declared)
        for overload, kind in entry.get("overloads", ()):
            data["overloads"][overload] = sorted({*data["overloads"].get(overload, ()), kind})
    data["made"] = {"date": datetime.date.today().isoformat(), **{name: version(name) for name in ("torch", "jax", "jaxlib")}}


def store(data: dict[str, Any], path: Path = DATA) -> None:
    """Writes the data file: a line for each node, so that a run's changes can be read as a difference."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in sorted(data):
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(data[name].items()))
        parts.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def rows(data: dict[str, Any], by: str) -> Iterator[tuple[str, Counter[str]]]:
    """Counts of statuses grouped by `variant` or `dtype`."""
    groups: dict[str, Counter[str]] = {}
    for key, entry in data["nodes"].items():
        groups.setdefault(getattr(Node.of(key), by), Counter())[entry["status"]] += 1
    yield from sorted(groups.items())
