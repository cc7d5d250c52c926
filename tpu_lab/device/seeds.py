"""Random state of the device: a seed and an offset per generator, as CUDA's Philox generators have.

A program never holds a seed: it receives (seed, offset) as two uint64 and the device moves the offset by the steps the
program draws. So the same calls give the same bits in every mode, and saving the state means saving 16 bytes.
"""

from __future__ import annotations

import secrets
import threading
from typing import Any

import torch

from . import _torch_internals as internals

_MASK = 2**64 - 1


class DeviceState:
    """Seed and offset of one generator, in steps of four 32-bit words."""

    __slots__ = ("lock", "offset", "seed")

    def __init__(self, seed: int = 67280421310721) -> None:
        self.seed = seed
        self.offset = 0
        self.lock = threading.Lock()

    def draw(self, steps: int) -> tuple[int, int]:
        """Takes `steps` from the sequence; returns the seed and where they begin."""
        with self.lock:
            offset = self.offset
            self.offset = (offset + steps) & _MASK
            return self.seed, offset

    def reseed(self, seed: int) -> None:
        """Starts the sequence of `seed` (taken modulo 2**64)."""
        with self.lock:
            self.seed, self.offset = seed & _MASK, 0

    def to_bytes(self) -> torch.Tensor:
        """The state as a CPU uint8 tensor of 16 bytes: seed, offset, little endian."""
        return torch.frombuffer(bytearray(self.seed.to_bytes(8, "little") + self.offset.to_bytes(8, "little")), dtype=torch.uint8).clone()

    def from_bytes(self, state: torch.Tensor) -> None:
        """Takes a state that `to_bytes` gave. Raises TypeError or RuntimeError for anything else, as torch does."""
        if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8 or state.device.type != "cpu":
            raise TypeError("expected a torch.ByteTensor on the CPU, as get_rng_state() returns it")
        raw = bytes(state.reshape(-1).tolist())
        if len(raw) != 16:
            raise RuntimeError(f"RNG state is wrong size: got {len(raw)} bytes, a tpu generator's state has 16 (seed, offset)")
        with self.lock:
            self.seed, self.offset = int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")


default = DeviceState()
"""The state that `torch.manual_seed` seeds and operators without `generator=` draw from."""
_states: dict[bytes, DeviceState] = {}


def fresh_seed() -> int:
    """A seed from the system's entropy, 53 bits as `torch.seed` draws."""
    return secrets.randbits(53)


def state_of(generator: Any) -> DeviceState:
    """The device state behind what an operator received as `generator=`."""
    if generator is None:
        return default
    found = getattr(generator, "tpu_state", None)
    if found is None:
        found = _states.get(_token(generator))
    if found is None:
        raise RuntimeError(
            f"Expected a 'tpu' device type for generator but found '{generator.device.type}'. Make one with torch.Generator(device='tpu')."
        )
    return found


def _token(generator: Any) -> bytes:
    """What identifies the C++ generator behind a Python wrapper: a tpu generator wraps a CPU one whose own seed is its number."""
    return int(internals.Generator.initial_seed(generator)).to_bytes(8, "little", signed=False)


def register(generator: Any, number: int) -> DeviceState:
    """Gives a wrapped C++ generator (seeded with `number`) a device state of its own."""
    internals.Generator.manual_seed(generator, number)
    state = _states[_token(generator)] = DeviceState()
    return state


def rename(generator: Any, state: DeviceState) -> None:
    """Lets a wrapped C++ generator stand for an existing state."""
    _states[_token(generator)] = state


def unregister(number: int) -> None:
    """Forgets a generator that died."""
    _states.pop(number.to_bytes(8, "little"), None)


def save() -> list[tuple[DeviceState, int, int]]:
    """Every generator's seed and offset."""
    return [(state, state.seed, state.offset) for state in {id(s): s for s in (default, *_states.values())}.values()]


def put_back(saved: list[tuple[DeviceState, int, int]]) -> None:
    """Puts back what `save` gave."""
    for state, seed, offset in saved:
        state.seed, state.offset = seed, offset
