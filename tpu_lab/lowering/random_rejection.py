"""Distributions that are sampled by rejection: Poisson, binomial, gamma, Dirichlet.

How many words a sample takes depends on the words, so these draw one 64-bit key (one offset step) and let `jax.random`
unfold it; results follow from the generator's state like all others. Results have the dtype of the first argument and are
computed in float32, in float64 for float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .promotion import cast, opmath
from .registry import lowering
from .rng import Rng


def _key(rng: Rng) -> Array:
    return jax.random.wrap_key_data(rng.bits((2,)), impl="threefry2x32")  # type: ignore[no-any-return]


@lowering("poisson")
def poisson(self: Array, *, rng: Rng) -> Array:
    """Poisson numbers with the rates `self`."""
    rates = cast(self, opmath(self.dtype))
    return cast(jax.random.poisson(_key(rng), rates, dtype=np.int64), self.dtype)


@lowering("binomial")
def binomial(count: Array, prob: Array, *, rng: Rng) -> Array:
    """Successes among `count` trials of probability `prob`, broadcast."""
    work = opmath(count.dtype)
    trials, chance = jnp.broadcast_arrays(cast(count, work), cast(prob, work))
    return cast(jax.random.binomial(_key(rng), trials, chance, dtype=work), count.dtype)


@lowering("_standard_gamma")
def standard_gamma(self: Array, *, rng: Rng) -> Array:
    """Gamma numbers of shape parameter `self`, scale 1; never 0, as PyTorch clamps them."""
    work = opmath(self.dtype)
    drawn = jax.random.gamma(_key(rng), cast(self, work), dtype=work)
    smallest = jnp.finfo(self.dtype).tiny  # type: ignore[no-untyped-call]
    return jnp.maximum(cast(drawn, self.dtype), jnp.asarray(smallest, self.dtype))


@lowering("_standard_gamma_grad")
def standard_gamma_grad(self: Array, output: Array) -> Array:
    """The derivative of a gamma sample `output` by its shape parameter `self`."""
    work = opmath(self.dtype)
    return cast(lax.random_gamma_grad(cast(self, work), cast(output, work)), self.dtype)


@lowering("_sample_dirichlet")
def sample_dirichlet(self: Array, *, rng: Rng) -> Array:
    """Points of the simplex with the concentrations `self` [*, k]; by logarithms, so that small concentrations do not underflow."""
    work = opmath(self.dtype)
    logs = jax.random.loggamma(_key(rng), cast(self, work), dtype=work)
    return cast(jax.nn.softmax(logs, axis=-1), self.dtype)
