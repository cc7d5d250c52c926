"""Random bits inside a program: Philox 4x32-10 counted by the device generator's (seed, offset).

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
        blocks = -(-count // 4)
        state = self.state()
        self.consumed += blocks
        _, words = lax.rng_bit_generator(state, (blocks * 4,), dtype=np.uint32, algorithm=lax.RandomAlgorithm.RNG_PHILOX)
        words = words[:count]
        if width == 64:
            low, high = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
            words = low | (high << np.uint64(32))
        return words.reshape(tuple(shape))

    def uniform(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Uniform numbers in [0, 1): 24 random bits in float32 and below (rounded down to `dtype`), 53 in float64."""
        if dtype == np.float64:
            return (self.bits(shape, 64) >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)
        digits = {2: 8 if dtype != np.float16 else 11, 4: 24}.get(np.dtype(dtype).itemsize, 24)
        words = self.bits(shape) >> np.uint32(32 - digits)
        return (words.astype(np.float32) * np.float32(2.0**-digits)).astype(dtype)

    def normal(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Standard normal numbers by Box-Muller on two uniform words each, computed in float32 (float64 for float64)."""
        work = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        count = math.prod(shape)
        pairs = -(-count // 2)
        first, second = self.uniform((2, pairs), work)
        radius = jnp.sqrt(work.type(-2.0) * jnp.log1p(-first))
        angle = work.type(2.0 * math.pi) * second
        both = jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)])
        return both[:count].reshape(tuple(shape)).astype(dtype)
