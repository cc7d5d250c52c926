"""Compiles a jax function for a target that need not be there and reads what its fusion passes did. Needs libtpu for TPU targets.

`ENVIRONMENT` must be set before jax is imported; `benchmarks.fusion.__main__` does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from tpu_lab.analysis.not_fused import with_not_fused
from tpu_lab.record.program import Program
from tpu_lab.record.targets import target_named
from tpu_lab.xla.extract import program_from_dump
from tpu_lab.xla.fusion_passes import CPU_PASSES, PASSES, Pass, State, read_passes
from tpu_lab.xla.fusion_replay import Replay, read_replay

from .programs import Example

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@dataclass(frozen=True)
class Compiled:
    """A program as it was compiled, with conclusions, the replay of its log, and the modules at both ends of fusion."""

    program: Program
    replay: Replay
    before: State
    final: State


def compile_example(example: Example, target: str, effort: str = "quick", options: dict[str, Any] | None = None) -> Compiled:
    """Compiles an example for a target (`v6e`, `cpu`) and reads it. Raises what jax raises, and DecodeError."""
    with tempfile.TemporaryDirectory(prefix="tpu-lab-fusion-") as name:
        folder = Path(name)
        _compile(example.function, example.arguments, target, {**_options(folder, target, effort), **(options or {})})
        replayed = read_replay(folder)
        passes = read_passes(folder)
        program = replace(program_from_dump(folder, target_named(target)), name=example.name, effort=effort, decisions=tuple(replayed.decisions))
        compiled = Compiled(with_not_fused(program), replayed, passes[0].before, _final(folder, passes))
        for state in (compiled.before, compiled.final):
            state.module  # noqa: B018  decoded while the folder is there
        return compiled


def _final(folder: Path, passes: Sequence[Pass]) -> State:
    found = sorted(folder.glob("*after_optimizations.hlo.pb"))
    return State(found[-1]) if found else passes[-1].after


def _options(folder: Path, target: str, effort: str) -> dict[str, Any]:
    tpu = target != "cpu"
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_as_proto": True,
        "xla_dump_hlo_pass_re": PASSES if tpu else CPU_PASSES,
        "xla_dump_fusion_visualization": tpu,
    }
    return {**options, "xla_optimization_level": "EFFORT_O0"} if tpu and effort == "quick" else options


def _compile(function: Callable[..., Any], arguments: Sequence[jax.ShapeDtypeStruct], target: str, options: dict[str, Any]) -> None:
    sharding = SingleDeviceSharding(_device(target)) if target != "cpu" else None
    placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in arguments]
    platform = "cpu" if target == "cpu" else "tpu"
    jax.jit(function).trace(*placed).lower(lowering_platforms=(platform,)).compile(compiler_options=options)


@cache
def _device(target: str) -> Any:
    topology = f"{target}:{target_named(target).topology}"
    return topologies.get_topology_desc(platform="tpu", topology_name=topology, chips_per_host_bounds=(1, 1, 1)).devices[0]
