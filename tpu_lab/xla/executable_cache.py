"""The executable of a module: loaded from disk where this machine compiled it before, else compiled and kept.

Measured on XLA:CPU with jaxlib 0.10.2 (benchmarks/warm.py): one operator compiles in 8 to 90 ms and loads in 0.3 to 1 ms; what is
loaded is the code that was compiled, so its results are the same bit for bit. jax's own compilation cache is neither used nor changed.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..record.environment import Environment
from . import _jax_internals as internals
from . import cache_folder
from . import executable_store as store

_CPU_LINES = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU implementer", "CPU architecture", "CPU part")


def executable_for(module: Any, chosen: Mapping[str, Any]) -> tuple[Any, str]:
    """The loaded executable of a module with these options of XLA, and where it is from: `disk` or `miss`. Raises what XLA raises."""
    options = internals.compile_options(dict(chosen) or None)
    key = _key(module, options, chosen)
    found = store.load(key) if key else None
    if found is not None:
        content, seconds = found
        try:
            executable = internals.load_executable(content, options)
        except internals.XlaRuntimeError:
            store.remove(key)
        else:
            store.loaded(seconds)
            return executable, "disk"
    start = time.perf_counter()
    executable = internals.compile_module(module, options)
    seconds = time.perf_counter() - start
    if key and seconds >= store.WORTH_S:
        made = internals.serialized(executable)
        if made is not None:
            store.save(key, made, seconds)
    return executable, "miss"


def _key(module: Any, options: Any, chosen: Mapping[str, Any]) -> str:
    """Under which name the executable is kept; empty where the cache is not used, and where XLA is to write dumps while it compiles."""
    dumps = "xla_dump" in os.environ.get("XLA_FLAGS", "") or any(name.startswith("xla_dump") for name in chosen)
    if dumps or cache_folder.is_off() or store.refusal():
        return ""
    return store.key(machine(), options.SerializeAsString(), internals.bytecode(module))


@cache
def machine() -> bytes:
    """All that the code of a program depends on beside the program and its options: versions, the CPU, the threads XLA may use."""
    here = Environment.here()
    versions = [f"{v.package} {v.version}" for v in here.versions if v.package in ("tpu-lab", "torch", "jax", "jaxlib")]
    threads = f"{here.cores} {os.environ.get('NPROC', '')}"
    parts = [*versions, threads, os.environ.get("XLA_FLAGS", ""), *cpu_features(), str(internals.topology_fingerprint())]
    return "\0".join(parts).encode()


def cpu_features() -> list[str]:
    """What tells this machine's CPU from others that run other code: what Linux says of its first core, else this machine's name.

    XLA itself loads code for instructions that the CPU does not have; it only writes a line to standard error.
    """
    described = [platform.machine(), platform.processor()]
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    except OSError:
        return [*described, platform.node()]
    return described + [line for line in first.splitlines() if line.split("\t")[0].split(":")[0].strip() in _CPU_LINES]
