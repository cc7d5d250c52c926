"""`%tpu doctor`: what is installed, where the device runs, what is missing, each with the next step."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from ..xla import target_compile
from .lab import Lab

_OPTIONAL = (
    ("pandas", "run.to_pandas()", "pip install pandas"),
    ("transformers", "models of Hugging Face", "pip install 'transformers>=5.24'"),
    ("jupyterlab", "the JupyterLab extension", "pip install 'tpu-lab[lab]'"),
)


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` is empty where all is well."""

    topic: str
    state: str
    remedy: str = ""


def examine(lab: Lab) -> list[Finding]:
    """Looks at this process. Starts jax if nothing has yet; raises nothing."""
    findings: list[Finding] = []
    for part in (_versions, _device, _compiler, _memory, _jupyter, _missing):
        try:
            findings += part(lab)
        except Exception as error:  # a report that stops at the first fault does not help
            findings.append(Finding(part.__name__.strip("_"), f"could not be examined: {type(error).__name__}: {error}"))
    return findings


def text(findings: list[Finding]) -> str:
    """The report as lines of text."""
    width = max(len(f.topic) for f in findings)
    return "\n".join(
        f"{'!' if f.remedy else ' '} {f.topic:<{width}}  {f.state}" + (f"\n  {'':<{width}}  next: {f.remedy}" if f.remedy else "") for f in findings
    )


def _versions(lab: Lab) -> Iterator[Finding]:
    from .._autoload import version_note
    from ..record.environment import Environment

    here = Environment.here()
    yield Finding("python", f"{here.python} on {here.system} {here.machine}, {here.cores} cores")
    note = version_note()
    for version in here.versions:
        yield Finding(version.package, version.version, note if version.package == "torch" else "")


def _device(lab: Lab) -> Iterator[Finding]:
    from .._autoload import state

    if not lab.owns_device():
        yield Finding("device", f"tpu is not this package's device ({state.outcome})", state.reason)
        return
    import jax

    device = jax.devices()[0]
    where = "XLA:CPU on this machine, no TPU" if device.platform == "cpu" else f"{device.device_kind}, {len(jax.devices())} chips"
    yield Finding("device", f"tpu runs on {where}")


def _compiler(lab: Lab) -> Iterator[Finding]:
    from ..device import program_cache

    held, nbytes, dropped = program_cache.counts()
    yield Finding("programs", f"{held} held, {nbytes / 1e6:.0f} MB, {dropped} dropped")
    yield _disk()
    try:
        version = metadata.version("libtpu")
        yield Finding("TPU compiler", f"libtpu {version}: programs can be compiled for TPU generations", target_compile.version_note())
    except metadata.PackageNotFoundError:
        can = sys.platform == "linux" and os.uname().machine == "x86_64"
        yield Finding("TPU compiler", "libtpu is not installed", "pip install libtpu==0.0.42.1" if can else "")
    if os.environ.get("JAX_PLATFORMS", "") == "" and importlib.util.find_spec("libtpu") is not None:
        yield Finding(
            "JAX_PLATFORMS", "not set although libtpu is installed: jax looks for a TPU first", "set JAX_PLATFORMS=cpu before starting Jupyter"
        )


def _disk() -> Finding:
    """The compiled programs kept on disk, and what this process had of them."""
    from ..xla import cache_folder, executable_store

    if cache_folder.is_off():
        return Finding("programs on disk", "off (TPU_LAB_CACHE=0)")
    refused = executable_store.refusal()
    if refused:
        return Finding("programs on disk", "not used", refused)
    count, nbytes = cache_folder.size(executable_store.NAME)
    here = executable_store.counters
    told = f"{here.loaded} loaded here, which saved {here.saved_s:.1f} s; {here.kept} kept" + (
        f"; {here.damaged} damaged ones removed" if here.damaged else ""
    )
    return Finding("programs on disk", f"{count} in {cache_folder.base()}, {nbytes / 1e6:.1f} MB; {told}")


def _memory(lab: Lab) -> Iterator[Finding]:
    from ..device import memory

    stats = memory.stats()
    limit = f"limit {memory.get_memory_limit() / 1e9:.3g} GB"
    yield Finding("memory", f"{stats.allocated / 1e6:.3g} MB in use, peak {stats.peak / 1e6:.3g} MB, {limit}")


def _jupyter(lab: Lab) -> Iterator[Finding]:
    folder = os.path.join(sys.prefix, "share", "jupyter", "labextensions", "tpu-lab")
    if os.path.isdir(folder):
        yield Finding("JupyterLab", "extension installed")
    else:
        yield Finding(
            "JupyterLab",
            "extension not installed in this environment",
            "pip install tpu-lab in the environment that runs JupyterLab, then reload the page",
        )


def _missing(lab: Lab) -> Iterator[Finding]:
    for package, needed_for, remedy in _OPTIONAL:
        if importlib.util.find_spec(package) is None:
            yield Finding(package, f"not installed; needed for {needed_for}", remedy)
