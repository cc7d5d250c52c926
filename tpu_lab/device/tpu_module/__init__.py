"""`torch.tpu`: what the device offers by name.

The names are CUDA's and TorchTPU's. None of them needs a TPU, none raises for asking, and none loads jax before the device
is used.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .. import forks, modes
from ..modes import EagerMode, set_eager_mode
from . import amp, compiler, memory, random, streams
from .amp import get_amp_supported_dtype
from .cache import (
    _clear_cache,
    _get_cache_hits,
    _get_cache_misses,
    _get_cache_requests,
    _get_cache_stats,
    _hbm_usage_summary,
)
from .devices import (
    DeviceProperties,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from .memory import (
    empty_cache,
    get_memory_limit,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
    set_memory_limit,
)
from .precision import Precision, precision
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, current_stream, default_stream, set_stream, stream

__all__ = [
    "DeviceProperties",
    "EagerMode",
    "Event",
    "Precision",
    "Stream",
    "_clear_cache",
    "_get_cache_hits",
    "_get_cache_misses",
    "_get_cache_requests",
    "_get_cache_stats",
    "_hbm_usage_summary",
    "amp",
    "compiler",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_memory_limit",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "precision",
    "random",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_eager_mode",
    "set_memory_limit",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def _is_in_bad_fork() -> bool:
    return forks.in_child


class _TpuModule(types.ModuleType):
    """The module itself, for what is read and set by assignment."""

    @property
    def eager_mode(self) -> EagerMode:
        """How operators run: get gives the mode in force on this thread, set changes the process's.

        Raises TypeError for anything but an EagerMode.
        """
        return modes.current()

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode) -> None:
        modes.set_process_mode(mode)

    @property
    def _initialized(self) -> bool:
        """True: there is always a random state to be kept (activation checkpointing asks before it keeps one)."""
        return True

    @property
    def cpu_fallback(self) -> str:
        """What happens to an operator without a lowering: `allow` (it runs on the CPU and is recorded) or `error`."""
        from .. import policies

        return policies.cpu_fallback

    @cpu_fallback.setter
    def cpu_fallback(self, policy: str) -> None:
        from .. import policies

        policies.set_cpu_fallback(policy)

    @property
    def allow_excess_precision(self) -> bool:
        """Whether XLA may keep more precision than a dtype has between operators of one program. Setting it drops compiled programs."""
        from .. import policies

        return policies.allow_excess_precision

    @allow_excess_precision.setter
    def allow_excess_precision(self, allowed: bool) -> None:
        from .. import policies

        policies.set_allow_excess_precision(allowed)


sys.modules[__name__].__class__ = _TpuModule


def __getattr__(name: str) -> Any:
    accepted = ", ".join(n for n in __all__ if not n.startswith("_"))
    raise AttributeError(f"module 'torch.tpu' has no attribute {name!r}; it has {accepted}")
