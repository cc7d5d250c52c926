"""On what a run was made. Versions and sizes only: no names of people, hosts or folders, no environment variables."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib import metadata

PACKAGES = ("tpu-lab", "torch", "jax", "jaxlib", "libtpu", "torch-tpu", "transformers")


@dataclass(frozen=True, slots=True)
class Version:
    """An installed package."""

    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Versions and the machine."""

    python: str = ""
    system: str = ""
    """`Linux`, `Darwin` or `Windows`."""
    machine: str = ""
    """`x86_64`, `arm64`."""
    cores: int = 0
    """Cores this process may use."""
    versions: tuple[Version, ...] = ()

    @classmethod
    def here(cls) -> Environment:
        """Of this process. Imports none of the packages."""
        found = []
        for package in PACKAGES:
            try:
                found.append(Version(package, metadata.version(package)))
            except metadata.PackageNotFoundError:
                continue
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
        return cls(platform.python_version(), platform.system(), platform.machine(), cores, tuple(found))
