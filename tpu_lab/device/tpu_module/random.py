"""`torch.tpu.random`: the device's generator."""

from __future__ import annotations

from typing import Any

import torch

from .. import seeds
from ..patches.generator import TpuGenerator
from .devices import index_of


def manual_seed(seed: int) -> None:
    """Starts the sequence of `seed` on the device; `torch.manual_seed` does so too."""
    seeds.default.reseed(int(seed))


manual_seed_all = manual_seed


def seed() -> int:
    """Seeds the device from the system's entropy; returns the seed."""
    seeds.default.reseed(seeds.fresh_seed())
    return seeds.default.seed


seed_all = seed


def initial_seed() -> int:
    """The seed in force."""
    return seeds.default.seed


def get_rng_state(device: Any = "tpu") -> torch.Tensor:
    """The state of the device's generator: a CPU uint8 tensor of 16 bytes (seed, offset)."""
    index_of(device)
    return seeds.default.to_bytes()


def set_rng_state(new_state: torch.Tensor, device: Any = "tpu") -> None:
    """Puts back a state that `get_rng_state` gave. Raises TypeError or RuntimeError for anything else."""
    index_of(device)
    seeds.default.from_bytes(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices: one."""
    return [get_rng_state()]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Puts back what `get_rng_state_all` gave."""
    for state in new_states:
        set_rng_state(state)


default_generators = (TpuGenerator.default(),)
"""The generator of each device."""
