"""Switches of the device that a user sets by name, checked here: CPU fallback, excess precision, compiler options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

cpu_fallback = "allow"
allow_excess_precision = False
matmul_precision = "default"
"""`torch.tpu.precision`: counts where a program is compiled for a TPU; XLA:CPU multiplies float32 in full."""
options: dict[str, str] = {}
"""XLA options for programs built now (`torch.tpu.compiler.custom_compiler_options`)."""
_LEVELS = {"O0": 0, "O1": 1, "O2": 2, "O3": 3}


def set_cpu_fallback(policy: str) -> None:
    """Sets `torch.tpu.cpu_fallback`. Raises ValueError unless `allow` or `error`."""
    global cpu_fallback
    if policy not in ("allow", "error"):
        raise ValueError(f"cpu_fallback: got {policy!r}, accepted are 'allow' (run on the CPU, recorded) and 'error' (raise NotImplementedError)")
    cpu_fallback = policy


def _drop_programs() -> None:
    from . import registration

    if registration._loaded:
        from . import program_cache

        program_cache.clear()


def set_allow_excess_precision(allowed: bool) -> None:
    """Sets `torch.tpu.allow_excess_precision`; compiled programs are dropped. Raises TypeError unless bool."""
    global allow_excess_precision
    if not isinstance(allowed, bool):
        raise TypeError(f"allow_excess_precision: got {allowed!r}, accepted are True and False")
    if allowed != allow_excess_precision:
        allow_excess_precision = allowed
        _drop_programs()


@contextmanager
def compiler_options(more: Mapping[str, str]) -> Iterator[None]:
    """Adds XLA options for the programs built inside the block. Raises TypeError unless names and values are str."""
    global options
    for name, value in more.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"custom_compiler_options: got {name!r}: {value!r}, accepted is a dict of str to str")
    before = options
    options = {**options, **more}
    _drop_programs()
    try:
        yield
    finally:
        options = before
        _drop_programs()


def for_xla() -> dict[str, object]:
    """The options as XLA takes them."""
    found: dict[str, object] = {}
    for name, value in options.items():
        if name == "xla_optimization_level":
            found["xla_backend_optimization_level"] = _LEVELS.get(value, value)
        elif name != "xla_memory_fitting_level":
            found[name] = {"true": True, "false": False}.get(value.lower(), value)
    if allow_excess_precision:
        found["xla_allow_excess_precision"] = True
    return found
