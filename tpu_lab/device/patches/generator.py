"""`torch.Generator(device="tpu")`: torch can only make C++ generators of devices it knows, so ours wraps a CPU one.

The wrapped generator's own seed is a number of ours, by which a kernel finds the device state behind it again.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import torch

from .. import _torch_internals as internals
from .. import seeds

_Base: Any = internals.Generator
_numbers = itertools.count(2**62 + 1)


class _InstanceOfAny(type):
    """Keeps `isinstance(torch.default_generator, torch.Generator)` true."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Base)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, _Base)

    def __call__(cls, device: Any = "cpu") -> Any:
        if torch.device(device).type != "tpu":
            return _Base(device)
        return TpuGenerator()


class Generator(metaclass=_InstanceOfAny):
    """`torch.Generator` of any device; `device="tpu"` makes a `TpuGenerator`."""

    __module__ = "torch"


class TpuGenerator(_Base):  # type: ignore[misc]
    """A generator of the device: a seed and an offset of its own."""

    def __new__(cls) -> TpuGenerator:
        return _Base.__new__(cls, device="cpu")  # type: ignore[no-any-return]

    def __init__(self) -> None:
        number = next(_numbers)
        self.tpu_state = seeds.register(self, number)
        weakref.finalize(self, seeds.unregister, number)

    @classmethod
    def default(cls) -> TpuGenerator:
        """The generator of the device itself, whose state `torch.manual_seed` sets."""
        generator = cls()
        seeds.unregister(_Base.initial_seed(generator))
        generator.tpu_state = seeds.default
        seeds.rename(generator, seeds.default)
        return generator

    @property
    def device(self) -> torch.device:
        """`tpu:0`."""
        return torch.device("tpu:0")

    def manual_seed(self, seed: int) -> TpuGenerator:
        """Starts the sequence of `seed`."""
        self.tpu_state.reseed(int(seed))
        return self

    def seed(self) -> int:
        """Seeds from the system's entropy; returns the seed."""
        self.tpu_state.reseed(seeds.fresh_seed())
        return self.tpu_state.seed

    def initial_seed(self) -> int:
        """The seed in force."""
        return self.tpu_state.seed

    def get_state(self) -> torch.Tensor:
        """Seed and offset, a CPU uint8 tensor of 16 bytes."""
        return self.tpu_state.to_bytes()

    def set_state(self, state: torch.Tensor) -> TpuGenerator:
        """Puts back what `get_state` gave."""
        self.tpu_state.from_bytes(state)
        return self

    def get_offset(self) -> int:
        """Steps drawn so far."""
        return self.tpu_state.offset

    def set_offset(self, offset: int) -> None:
        """Moves within the sequence."""
        self.tpu_state.offset = int(offset)

    def clone_state(self) -> TpuGenerator:
        """Another generator in the same state."""
        twin = TpuGenerator()
        twin.set_state(self.get_state())
        return twin

    def __reduce__(self) -> Any:
        return _rebuild, (self.get_state(),)


def _rebuild(state: torch.Tensor) -> TpuGenerator:
    return TpuGenerator().set_state(state)


def apply() -> None:
    """Replaces `torch.Generator`."""
    torch.Generator = Generator  # type: ignore[misc, assignment]
