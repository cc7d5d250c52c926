"""Asks the dispatcher and the device about every ATen overload and writes `data/overloads.json`: `python -m tpu_lab.coverage.survey`.

Nothing is executed but the tracing of examples. `--programs` also writes `data/programs.json.gz`: for each overload with an example
(from `reached.json`) the StableHLO of its lowering, or the operators of its decomposition.
"""

from __future__ import annotations

import argparse
import datetime
import json
from importlib.metadata import version
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device import registration
from ..device.own_ops import DATA_DEPENDENT
from ..device.plan import functional_twin, registry_name
from ..device.ways import elsewhere, way_of
from ..lowering import registry
from . import families, programs
from .table import DATA
from .torch_tpu import TorchTpu, kernels

OUT = DATA / "overloads.json"
_FORWARDS = ("std", "var", "std_mean", "var_mean")
"""Packets whose overloads all end in the one called `correction`, which C++ calls without the dispatcher."""


def all_overloads() -> dict[str, Any]:
    """Every overload of ATen that Python can call, by name without `aten::`."""
    found = {}
    for full in sorted(internals.operator_names("aten")):
        name = full.removeprefix("aten::")
        base, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if op is not None and internals.is_dispatched(full):
            found[name] = op
    return found


def status_here(op: Any) -> tuple[str, str, str]:
    """How an overload runs here (`native`, `decomposed`, `fallback`, `missing`), by which way, and a note."""
    name, way = registry_name(op), way_of(op)
    composite = internals.has_backend_kernel(op.name(), "CompositeImplicitAutograd") or (way == "fallback" and _only_composed(op))
    if way in ("own", "fallback") and composite and elsewhere(op):
        return "missing", "elsewhere", "for sparse, nested or quantized tensors, or another vendor's library"
    if way in ("own", "fallback") and composite:
        return "decomposed", "composite", "written in other overloads by PyTorch"
    if way in ("lowering", "view", "own"):
        return "native", way, {"view": "a view: no program of its own", "own": "answered by the device itself", "lowering": ""}[way]
    if way == "host" or name in DATA_DEPENDENT:
        return "fallback", "host", "the host counts: the size of the result depends on values"
    if elsewhere(op):
        return "missing", "elsewhere", "for sparse, nested or quantized tensors, or another vendor's library"
    if way == "decomposition":
        return "decomposed", way, ""
    if internals.has_backend_kernel(op.name(), "CPU"):
        return "fallback", way, "no lowering and no decomposition: runs on the host"
    return "missing", "no kernel", "has no kernel for CPUs either"


def _only_composed(op: Any) -> bool:
    """Whether PyTorch's only kernel of an overload is one written in other overloads, which the device is given too."""
    return _explicit_only(op, "CompositeExplicitAutogradNonFunctional") and not internals.has_backend_kernel(op.name(), "CUDA")


def servers(ops: dict[str, Any]) -> dict[str, str]:
    """For each overload without a kernel of its own the one that serves it: structured by its `out=` form, generated ones by their twin."""
    twins = {name: functional_twin(op) for name, op in ops.items()}
    structured: dict[str, str] = {}
    for name, (twin, out) in twins.items():
        if out and twin is not None and _explicit_only(twin, "CompositeExplicitAutogradNonFunctional"):
            structured[registry_name(twin)] = name
    found = dict(structured)
    for name, (twin, out) in twins.items():
        if twin is None or registry_name(twin) == name:
            continue
        inner = registry_name(twin)
        if (out and _explicit_only(ops[name], "CompositeExplicitAutograd")) or _explicit_only(ops[name], "CompositeExplicitAutogradNonFunctional"):
            found[name] = structured.get(inner, inner)
    for base in _FORWARDS:
        found |= {name: f"{base}.correction" for name in ops if name.partition(".")[0] == base and name != f"{base}.correction" and "out" not in name}
    return found


def _explicit_only(op: Any, key: str) -> bool:
    return internals.has_backend_kernel(op.name(), key)


def _composite(name: str) -> bool:
    keys = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return any(internals.has_backend_kernel(f"aten::{name}", key) for key in keys)


def examine() -> dict[str, dict[str, Any]]:
    """The entry of every overload."""
    registration.load()
    ops = all_overloads()
    reached = json.loads((DATA / "reached.json").read_text(encoding="utf-8"))["overloads"]
    calls = {name: [frozenset(way) for way in entry["calls"]] for name, entry in reached.items() if not entry["leaf"]}
    there = TorchTpu(kernels(), _composite, servers(ops), calls)
    entries = {}
    for name, op in ops.items():
        status, way, note = status_here(op)
        twin, out = functional_twin(op)
        lowering = registry.find(registry_name(twin)) if twin is not None else None
        file = lowering.family if lowering is not None else ""
        torch_tpu, needs = there.status(name)
        entry = {
            "schema": str(op._schema).removeprefix("aten::"),
            "family": families.family_of(name, file),
            "status": status,
            "way": way,
            "note": note,
            "lowering": f"{file}.{lowering.function.__name__}" if lowering is not None and way == "lowering" else "",
            "torch_tpu": torch_tpu,
            "torch_tpu_needs": needs if needs != name else "",
            "writes": "out" if out else "in place" if twin is not op else "",
        }
        entries[name] = {key: value for key, value in entry.items() if value}
    return entries


def main() -> None:
    """Writes the data, a line for each overload."""
    parser = argparse.ArgumentParser(prog="python -m tpu_lab.coverage.survey", description=__doc__)
    parser.add_argument("--programs", action="store_true", help="also write data/programs.json.gz")
    wanted = parser.parse_args()
    entries = examine()
    made = {"date": datetime.date.today().isoformat(), **{name: version(name) for name in ("torch", "jax", "jaxlib")}}
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    OUT.write_text(f'{{\n "made": {json.dumps(made)},\n "overloads": {{\n{rows}\n }}\n}}\n', encoding="utf-8")
    print(f"{OUT}: {len(entries)} overloads")
    if wanted.programs:
        print(programs.write(entries))


if __name__ == "__main__":
    main()
