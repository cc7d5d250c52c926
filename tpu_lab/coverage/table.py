"""The operator table, put together from the data files. Needs neither torch nor jax.

| file | holds | made by |
|---|---|---|
| `overloads.json` | schema, family, status here and on TorchTPU | `python -m tpu_lab.coverage.survey` |
| `programs.json.gz` | StableHLO or decomposition of an example | the same with `--programs` |
| `reached.json` | what the suite's samples call, examples | `python -m tests.conformance.reached` |
| `conformance.json` | what became of each node | `make conformance` |
| `ops_used.json` | model types that call an overload | copied |
| `torch_tpu_0.2.0.txt` | TorchTPU's kernels | copied |
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .rows import EXECUTORS, Coverage, Overload

DATA = Path(__file__).parent / "data"
DTYPES = (
    *("float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"),
    *("complex64", "complex128"),
)
"""The order of columns."""
_WORST = ("fail", "declared", "pass")
_BUILT_ON = re.compile(r"^(nn\.functional|linalg|special|fft)\.")


@cache
def load() -> Coverage:
    """The whole table, the overloads that models use most first."""
    survey, reached, conformance, used = (_read(name) for name in ("overloads", "reached", "conformance", "ops_used"))
    tried = _Tried(conformance["nodes"], conformance["overloads"])
    rows = []
    for name, entry in survey["overloads"].items():
        seen = reached["overloads"].get(name, {})
        direct = seen.get("direct", [])
        own = [op for op in direct if _same(op, name)]
        tests = own or direct or seen.get("through", [])
        writes = entry.get("writes", "")
        rows.append(
            Overload(
                name=name,
                schema=entry["schema"],
                family=entry["family"],
                here=entry["status"],
                way=entry["way"],
                torch_tpu=entry["torch_tpu"],
                note=entry.get("note", ""),
                torch_tpu_needs=entry.get("torch_tpu_needs", ""),
                writes=writes,
                model_types=used["types"].get(name, 0),
                dtypes=tried.dtypes(tests, bool(own), writes),
                executors=tried.executors(name, tests, bool(own), writes),
                tests=tuple(tests[:8]),
                lowering=entry.get("lowering", ""),
                calls=tuple(sorted({inner for way in seen.get("calls", ()) for inner in way})) if entry["status"] == "decomposed" else (),
                example=seen.get("example", ""),
            )
        )
    rows.sort(key=lambda row: (-row.model_types, row.name))
    dtypes = tuple(d for d in DTYPES if any(d in row.dtypes for row in rows))
    made = {name: data["made"] for name, data in (("overloads", survey), ("conformance", conformance), ("reached", reached))}
    made["models"] = {"date": used["copied"], "source": used["source"]}
    return Coverage(tuple(rows), made, dtypes, used.get("of", 0))


def programs() -> dict[str, str]:
    """By overload the StableHLO of its lowering, or the operators of its decomposition, for its example."""
    with gzip.open(DATA / "programs.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, str] = json.load(file)["programs"]
    return found


def _read(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def _same(op: str, overload: str) -> bool:
    """Whether an operator of the suite is named after an overload's packet."""
    base = overload.partition(".")[0]
    plain = _BUILT_ON.sub("", op)
    prefixed = op.replace("nn.functional.", "").replace(".", "_")
    return base.removesuffix("_").removesuffix("_backward") in (plain.partition(".")[0], prefixed, op)


class _Tried:
    """What became of the suite's nodes, by operator."""

    def __init__(self, nodes: Mapping[str, Mapping[str, Any]], ran: Mapping[str, Iterable[str]]) -> None:
        self._by_op: dict[str, list[tuple[str, str, str]]] = {}
        self._ran = ran
        for key, entry in nodes.items():
            op, variant, dtype = key.split("|")
            if entry["status"] in _WORST:
                self._by_op.setdefault(op, []).append((variant, dtype, entry["status"]))

    def dtypes(self, ops: Iterable[str], own: bool, writes: str) -> dict[str, str]:
        """By dtype what became of the nodes that run one operation at a time."""
        found: dict[str, set[str]] = {}
        for variant, dtype, status in self._nodes(ops, writes):
            if variant not in ("compile", "fuse", "errors") and dtype in DTYPES:
                found.setdefault(dtype, set()).add(status)
        return {dtype: _verdict(found[dtype], own) for dtype in DTYPES if dtype in found}

    def executors(self, name: str, ops: Iterable[str], own: bool, writes: str) -> dict[str, str]:
        """By executor what became of the nodes."""
        found: dict[str, set[str]] = {}
        for variant, _, status in self._nodes(ops, writes):
            found.setdefault(variant if variant in ("compile", "fuse") else "eager", set()).add(status)
        base, _, overload = name.partition(".")
        if "xla" in self._ran.get(f"aten.{base}.{overload or 'default'}", ()):
            found.setdefault("eager", set()).add("pass")
        return {executor: _verdict(found[executor], own) for executor in EXECUTORS if executor in found}

    def _nodes(self, ops: Iterable[str], writes: str) -> Iterable[tuple[str, str, str]]:
        for op in ops:
            for node in self._by_op.get(op, ()):
                if node[0] not in ("inplace", "out") or node[0] == writes.replace(" ", ""):
                    yield node


def _verdict(statuses: set[str], own: bool) -> str:
    """The worst status of the operators named after an overload; of others the best, as their faults need not be this overload's."""
    order = _WORST if own else tuple(reversed(_WORST))
    return next(status for status in order if status in statuses)
