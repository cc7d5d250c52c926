"""`torch.tpu`: what the device offers by name. CUDA's names and TorchTPU's; none of them needs a TPU and none raises for asking."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from . import modes
from .modes import EagerMode, set_eager_mode

__all__ = ["EagerMode", "set_eager_mode"]


def is_available() -> bool:
    """True: the device always exists, on XLA:CPU where there is no TPU."""
    return True


def device_count() -> int:
    """1: a process sees one device, `tpu:0`."""
    return 1


def current_device() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """True once the first tensor of the device was made."""
    from . import registration

    return registration._loaded


def _is_in_bad_fork() -> bool:
    from . import registration

    return registration.in_fork()


def manual_seed_all(seed: int) -> None:
    """Seeds the device's generator; `torch.manual_seed` calls it."""
    from . import seeds

    seeds.default.reseed(int(seed))


manual_seed = manual_seed_all


def initial_seed() -> int:
    """The seed of the device's generator."""
    from . import seeds

    return seeds.default.seed


def get_rng_state(device: Any = "tpu") -> torch.Tensor:
    """The state of the device's generator: a CPU uint8 tensor of 16 bytes."""
    from . import seeds

    return seeds.default.to_bytes()


def set_rng_state(new_state: torch.Tensor, device: Any = "tpu") -> None:
    """Puts a state back that `get_rng_state` gave. Raises TypeError or RuntimeError for anything else."""
    from . import seeds

    seeds.default.from_bytes(new_state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes `torch.autocast("tpu")` accepts."""
    return [torch.bfloat16, torch.float16]


def set_memory_limit(nbytes: int) -> None:
    """Sets the device's capacity in bytes; see `tpu_lab.device.memory.set_memory_limit`."""
    from . import memory

    memory.set_memory_limit(nbytes)


class _TpuModule(types.ModuleType):
    @property
    def eager_mode(self) -> EagerMode:
        """How operators run in this process (get and set)."""
        return modes.current()

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode) -> None:
        modes.set_process_mode(mode)


sys.modules[__name__].__class__ = _TpuModule
