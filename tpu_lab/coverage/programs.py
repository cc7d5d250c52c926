"""What an overload becomes: the StableHLO of its lowering for an example, or the operators it is decomposed into."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import jax
import torch

from ..device import _torch_internals as internals
from ..device import registration
from ..device.call import split
from ..device.graph.decompose import decompose
from ..device.plan import plan_for, registry_name
from ..device.program import meta_results, trace
from .table import DATA

OUT = DATA / "programs.json.gz"
LONGEST = 6_000
"""Characters of a program that are kept."""


class _Found(Exception):
    """The call was met."""

    def __init__(self, op: Any, args: Any, kwargs: dict[str, Any]) -> None:
        super().__init__(op)
        self.call = op, args, kwargs


class _Until(internals.TorchDispatchMode):
    """Stops at the first call of an overload, before it runs."""

    def __init__(self, name: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._name = name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if registry_name(func) == self._name:
            raise _Found(func, args, dict(kwargs or {}))
        return func(*args, **(kwargs or {}))


def program_text(name: str, example: str) -> str:
    """The program of an overload for an example (Python text whose last line calls it); empty if the example does not reach it.

    Operands are made on the device; the operator itself does not run.
    """
    registration.load()
    try:
        with torch.device("tpu"), _Until(name):
            exec(compile(example, "<example>", "exec"), {"torch": torch})
    except _Found as found:
        return _text(*found.call)
    except Exception:  # an example with operands that only the CPU takes
        return ""
    return ""


def _text(op: Any, args: Any, kwargs: dict[str, Any]) -> str:
    plan = plan_for(op)
    if plan.lowering is not None:
        call = split(plan, args, kwargs)
        traced = trace(plan, call, plan.lowering, meta_results(plan, call))
        with jax.enable_x64(True):
            return _readable(jax.jit(traced.function).lower(*traced.avals).as_text())
    on_meta = internals.pytree.tree_map(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    graph = decompose(op, *on_meta)
    if graph is None:
        return ""
    counts = Counter(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
    return "\n".join(f"{target}{f'  × {count}' if count > 1 else ''}" for target, count in counts.items())


def _readable(module: str) -> str:
    """The module's text without attributes that only the runtime reads."""
    text = re.sub(r" attributes \{[^}]*\}| \{jax\.[^}]*\}|, jax\.result_info = \"[^\"]*\"|\{jax\.result_info = \"[^\"]*\"\}", "", module)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} characters more"


def write(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Writes the programs of the overloads that have an example and a lowering or decomposition. Returns a line about them."""
    reached = json.loads((DATA / "reached.json").read_text(encoding="utf-8"))["overloads"]
    found = {}
    for name, entry in entries.items():
        example = reached.get(name, {}).get("example", "") if entry["way"] in ("lowering", "decomposition") else ""
        text = ""
        if example:
            with suppress(Exception):
                text = program_text(name, example)
        if text:
            found[name] = text
    made = {"date": datetime.date.today().isoformat(), "jax": jax.__version__}
    content = json.dumps({"made": made, "programs": found}, ensure_ascii=False).encode()
    OUT.write_bytes(gzip.compress(content, mtime=0))
    return f"{OUT}: {len(found)} programs, {OUT.stat().st_size / 1e3:.0f} kB"
