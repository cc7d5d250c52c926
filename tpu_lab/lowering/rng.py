"""Random bits inside a program: a counter-based generator over the device generator's (seed, offset).

Each 32-bit word is a function of seed and position alone: four rounds of the middle-square generator "Squares" (B. Widynski,
arXiv:2004.06278) on a counter, keyed by the seed mixed as SplitMix64 does. So it is one elementwise expression that fuses
into its consumer; XLA:CPU needs 0.3 ns a word, against 31 ns for its own Philox.

The state is a run-time argument, so a program never holds a seed. Every draw of `n` 32-bit words moves the offset by
`ceil(n / 4)`, a number known when the program is built; the same draws in the same order give the same bits in every mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


class Rng:
    """The random source handed to a lowering. `state` is uint64[2]: seed, offset. `consumed` counts the offset steps drawn so far."""

    def __init__(self, state: Array, consumed: int = 0) -> None:
        self._state = state
        self.consumed = consumed

    def state(self) -> Array:
        """Where the next draw starts, uint64[2]; an `Rng` of it repeats the draws that follow here."""
        return self._state.at[1].add(np.uint64(self.consumed))

    def bits(self, shape: Sequence[int], width: int = 32) -> Array:
        """Uniform random words, uint32 (or uint64 with `width=64`) of `shape`."""
        count = math.prod(shape) * (width // 32)
        if count == 0:
            return jnp.zeros(tuple(shape), dtype=np.uint32 if width == 32 else np.uint64)
        state = self.state()
        self.consumed += -(-count // 4)
        if width == 32:
            return _words(state, lax.iota(np.uint64, count)).reshape(tuple(shape))
        place = lax.iota(np.uint64, count // 2) * np.uint64(2)
        low, high = _words(state, place), _words(state, place + np.uint64(1))
        words = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
        return words.reshape(tuple(shape))

    def uniform(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Uniform numbers in [0, 1): 24 random bits in float32 and below (rounded down to `dtype`), 53 in float64."""
        if dtype == np.float64:
            return (self.bits(shape, 64) >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)
        digits = {2: 8 if dtype != np.float16 else 11, 4: 24}.get(np.dtype(dtype).itemsize, 24)
        words = self.bits(shape) >> np.uint32(32 - digits)
        return (words.astype(np.float32) * np.float32(2.0**-digits)).astype(dtype)

    def normal(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Standard normal numbers by the inverse of the distribution at one uniform word each, computed in float32 (float64 for float64)."""
        if dtype == np.float64:
            middle = (self.bits(shape, 64) >> np.uint64(12)).astype(np.float64) + np.float64(0.5)
            return np.float64(math.sqrt(2)) * lax.erf_inv(middle * np.float64(2.0**-51) - np.float64(1))
        middle = (self.bits(shape) >> np.uint32(9)).astype(np.float32) + np.float32(0.5)
        return (np.float32(math.sqrt(2)) * lax.erf_inv(middle * np.float32(2.0**-22) - np.float32(1))).astype(dtype)


def _words(state: Array, place: Array) -> Array:
    """The 32-bit words at positions `place` (uint64) after `state`."""
    half = np.uint64(32)
    mixed = state[0] + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    key = (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)
    start = (place + state[1] * np.uint64(4)) * key
    second = start + key
    value = start
    for term in (start, second, start):
        value = value * value + term
        value = (value >> half) | (value << half)
    return ((value * value + second) >> half).astype(np.uint32)
