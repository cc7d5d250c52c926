"""Compiling StableHLO for a target and reading what came out. Runs in the worker process, where libtpu is loaded."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..record.program import Note, Program
from ..record.targets import Target
from .extract import program_from_dump, with_cost
from .fusion_passes import CPU_PASSES, PASSES
from .fusion_replay import with_decisions
from .fusion_words import environment

LIBTPU = "0.0.42.1"
"""The version whose dumps and options this package is made for: the one `jax[tpu]` 0.10.2 pins."""
QUIET = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v6e-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Environment under which libtpu writes nothing, asks no metadata server and takes no lock. Set before it loads; names no limit on targets."""
STEPS_BYTES = 3_600
"""Bytes of StableHLO up to which each step of the fusion passes is logged (about 15 operators of PyTorch). XLA draws a picture for each: a
second for an MLP with layer norm, minutes for a transformer layer. Of larger programs only the rejections are read, which cost nothing."""
_UNFUSED = {
    True: "tpu_fusion,tpu_multi_output_fusion",
    False: "fusion,fusion-wrapper,dot-library-rewriter",
}
"""The passes that `eager` leaves out, on TPU targets and on XLA:CPU."""


@dataclass(frozen=True)
class Job:
    """One compile: StableHLO bytecode, for what, and how."""

    bytecode: bytes
    target: Target
    mode: str = "compile"
    effort: str = "full"
    options: tuple[tuple[str, str], ...] = ()
    """Further compiler options, as XLA names them."""


@dataclass(frozen=True)
class Compiled:
    """How a compile ended. `optimal_s` is the compiler's own lower bound in seconds, as it counts it; 0: not told."""

    outcome: str
    message: str
    seconds: float
    optimal_s: float = 0.0


def compiler_version(target: Target) -> str:
    """`libtpu 0.0.42.1`, or for XLA:CPU `jaxlib 0.10.2`. Raises PackageNotFoundError where it is not installed."""
    package = "libtpu" if target.is_tpu else "jaxlib"
    return f"{package} {metadata.version(package)}"


def installed() -> str:
    """The version of libtpu; empty where it is not installed."""
    try:
        return metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        return ""


def version_note() -> str:
    """One line if libtpu is another version than the one this package reads; else empty."""
    version = installed()
    if version in ("", LIBTPU):
        return ""
    return f"libtpu {version} is installed, tpu_lab is tested with {LIBTPU}; if facts are missing: pip install 'libtpu=={LIBTPU}'"


def dump_options(folder: Path, job: Job) -> dict[str, Any]:
    """The options of a compile that dumps what `extract` reads, and of a small program every step of its fusion passes."""
    options: dict[str, Any] = {"xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": "NOPE"}
    if job.mode != "eager" and len(job.bytecode) <= STEPS_BYTES:
        options["xla_dump_hlo_pass_re"] = PASSES if job.target.is_tpu else CPU_PASSES
        options["xla_dump_fusion_visualization"] = True
    if job.target.is_tpu and job.mode == "eager":  # separate operations keep nothing in VMEM between them
        options["xla_optimization_level"] = "EFFORT_O0"
    if job.mode == "eager":
        options["xla_disable_hlo_passes"] = _UNFUSED[job.target.is_tpu]
    return {**options, **dict(job.options)}


def compile_into(folder: Path, job: Job) -> Compiled:
    """Compiles a job, dumping into a folder. What does not fit, or what the target refuses, is an outcome and no exception."""
    from . import _jax_internals as internals

    start = time.perf_counter()
    try:
        executable = internals.compile_stablehlo(job.bytecode, _devices(job.target), dump_options(folder, job))
        found = executable.cost_analysis()
        analysis = found[0] if isinstance(found, list) else found
        return Compiled("ok", "", time.perf_counter() - start, float(analysis.get("optimal_seconds", 0.0)))
    except internals.XlaRuntimeError as error:
        message = str(error).strip().splitlines()[0]
        outcome = "out_of_memory" if "RESOURCE_EXHAUSTED" in message else "refused"
        return Compiled(outcome, message, time.perf_counter() - start)


def is_placed(folder: Path) -> bool:
    """True once all that comes before code generation is dumped: the optimized module and where its buffers lie."""
    return any(folder.glob("*after_optimizations_after_buffer_assignment.hlo.pb"))  # the last of these files to be written


def read(folder: Path, job: Job, compiled: Compiled) -> Program:
    """The program in a dump folder. Raises DecodeError if the dump has another form than the one known."""
    if compiled.outcome == "refused":  # it leaves no dump
        program = Program(target=job.target, notes=(Note("unsupported", compiled.message),))
    else:
        program = program_from_dump(folder, job.target, generated=job.effort == "full")
    program = replace(
        program,
        mode=job.mode,
        effort=job.effort,
        compiler=compiler_version(job.target),
        outcome=compiled.outcome,
        message=compiled.message,
        compile_s=compiled.seconds,
    )
    program = with_decisions(program, folder)
    return with_cost(program, compiled.optimal_s) if job.effort == "full" else program


_ready: dict[str, list[Any]] = {}


def _devices(target: Target) -> list[Any]:
    from . import _jax_internals as internals

    if not target.is_tpu:
        return [internals.device()]
    key = f"{target.name}:{target.topology}"
    if key not in _ready:
        single = set(target.topology.split("x")) == {"1"}
        _ready[key] = internals.topology_devices(key, (1, 1, 1) if single else None)
    devices = _ready[key]
    return devices[:1] if set(target.topology.split("x")) == {"1"} else devices


def quiet_environment() -> dict[str, str]:
    """The environment of the worker process: this process's, with `QUIET`."""
    return {**os.environ, **QUIET, **environment(os.environ.get("LIBTPU_INIT_ARGS", "")), "TPU_LAB_AUTOLOAD": "0"}
