"""Random numbers: the functional forms of the in-place fillers, the factories over them, and dropout.

What a draw consumes is part of the contract (an offset step is four 32-bit words): one word per number, two for float64, and
for integers two where the range has more than 2^20 values; a normal consumes like a uniform, rounded up to pairs. `randperm`
takes two words per entry. Factories draw exactly as the filler PyTorch composes them of (`rand` as `uniform`, `randn` as
`normal`, `randint` as `random.from`), so eager and compiled programs agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax

from .dtypes import to_jax
from .promotion import Number, cast, default_float, is_complex, is_floating, is_integral, opmath
from .registry import lowering
from .rng import Rng

_NARROW_SPAN = 1 << 20
"""Up to so many values one 32-bit word decides; the most frequent value is then at most 2^-12 more likely than the rarest."""


def _wide(dtype: np.dtype) -> np.dtype:
    """The dtype a distribution is computed in: float64 for float64 and integers (their results go beyond 2^24), else float32."""
    return np.dtype(np.float64) if dtype == np.float64 or is_integral(dtype) else np.dtype(np.float32)


def uniform_between(rng: Rng, shape: Sequence[int], dtype: np.dtype, low: Array, high: Array) -> Array:
    """Uniform in [low, high); a number that rounds to `high` becomes `low`. `low`, `high` are 0-d in `opmath(dtype)`."""
    work = opmath(dtype)
    value = cast(rng.uniform(shape, dtype).astype(work) * (high - low) + low, dtype)
    return jnp.where(value >= cast(high, dtype), cast(low, dtype), value)


def standard_normal(rng: Rng, shape: Sequence[int], dtype: np.dtype) -> Array:
    """Standard normal in `opmath(dtype)`; complex has variance 1/2 in each part."""
    if is_complex(dtype):
        part = np.finfo(dtype).dtype
        pair = rng.normal((2, *shape), part) * part.type(math.sqrt(0.5))
        return lax.complex(pair[0], pair[1])
    return rng.normal(shape, opmath(dtype))


def integers_from(rng: Rng, shape: Sequence[int], low: int, span: int) -> Array:
    """Uniform integers `low + [0, span)` in int64, 0 < span <= 2^64."""
    if span <= _NARROW_SPAN:
        drawn = (rng.bits(shape).astype(np.uint64) * np.uint64(span)) >> np.uint64(32)
    else:
        drawn = rng.bits(shape, 64)
        if span < 1 << 64:
            drawn = drawn % np.uint64(span)
    return lax.bitcast_convert_type(drawn, np.int64) + np.int64(low)


def _largest_random(dtype: np.dtype) -> int:
    """The largest number `random_()` gives without a bound: 2^digits of a float (all integers up to it are exact), the maximum of an integer."""
    if is_floating(dtype):
        return 2 ** (int(jnp.finfo(dtype).nmant) + 1)  # type: ignore[no-untyped-call, no-any-return]
    return 1 if dtype == np.bool_ else int(np.iinfo(dtype).max)


@lowering("uniform")
def uniform(self: Array, low: Number, high: Number, *, rng: Rng) -> Array:
    """Uniform in [low, high); complex in each part."""
    dtype = np.dtype(self.dtype)
    if is_complex(dtype):
        part = np.finfo(dtype).dtype
        pair = uniform_between(rng, (2, *self.shape), part, low.to(part), high.to(part))
        return lax.complex(pair[0], pair[1])
    return uniform_between(rng, self.shape, dtype, low.to(opmath(dtype)), high.to(opmath(dtype)))


@lowering("normal_functional")
def normal(self: Array, mean: Number, std: Number, *, rng: Rng) -> Array:
    """`mean + std * z`, computed in float32 for 16-bit floats."""
    z = standard_normal(rng, self.shape, np.dtype(self.dtype))
    return cast(z * std.to(z.dtype) + mean.to(z.dtype), self.dtype)


@lowering("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor")
def normal_of(mean: Array | Number, std: Array | Number, *, rng: Rng) -> Array:
    """One normal number for each pair of the broadcast `mean` and `std`."""
    dtype = np.dtype((mean if not isinstance(mean, Number) else std).dtype)
    shape = jnp.broadcast_shapes(*(v.shape for v in (mean, std) if not isinstance(v, Number)))
    z = standard_normal(rng, shape, dtype)
    scale, shift = (v.to(z.dtype) if isinstance(v, Number) else cast(v, z.dtype) for v in (std, mean))
    return cast(z * scale + shift, dtype)


@lowering("normal.float_float")
def normal_float(mean: Number, std: Number, size: list[int], *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return normal(_like(size, dtype), mean, std, rng=rng)


def _true_with(rng: Rng, probability: Array) -> Array:
    return rng.uniform(probability.shape, np.dtype(probability.dtype)) < probability


@lowering("bernoulli")
def bernoulli(self: Array, *, rng: Rng) -> Array:
    """1 with the probability that the element states."""
    return cast(_true_with(rng, cast(self, opmath(self.dtype))), self.dtype)


@lowering("bernoulli.p")
def bernoulli_p(self: Array, p: Number, *, rng: Rng) -> Array:
    work = np.dtype(np.float64) if self.dtype == np.float64 else np.dtype(np.float32)
    return cast(_true_with(rng, jnp.broadcast_to(p.to(work), self.shape)), self.dtype)


@lowering("bernoulli.Tensor")
def bernoulli_tensor(self: Array, p: Array, *, rng: Rng) -> Array:
    """1 with probability `p`, broadcast to the shape of `self`."""
    return cast(_true_with(rng, jnp.broadcast_to(cast(p, opmath(p.dtype)), self.shape)), self.dtype)


@lowering("random")
def random(self: Array, *, rng: Rng) -> Array:
    """Uniform over 0 .. the largest number of the dtype; over 0 .. 2^digits for floats."""
    return _random_between(self, 0, None, rng)


@lowering("random.from")
def random_from(self: Array, low: int, high: int | None, *, rng: Rng) -> Array:
    """Uniform integers in [low, high), up to the dtype's largest if `high` is None."""
    return _random_between(self, low, high, rng)


@lowering("random.to")
def random_to(self: Array, high: int, *, rng: Rng) -> Array:
    return _random_between(self, 0, high, rng)


def _random_between(self: Array, low: int, high: int | None, rng: Rng) -> Array:
    dtype = np.dtype(self.dtype)
    span = (_largest_random(dtype) + 1 if high is None else high) - low
    value = integers_from(rng, self.shape, low, span)
    if not is_floating(dtype) or high is None:
        return cast(value, dtype)
    first, last = _floats_within(low, high, dtype)
    return jnp.clip(cast(value, dtype), first, last)


def _floats_within(low: int, high: int, dtype: np.dtype) -> tuple[Array, Array]:
    """The smallest number of `dtype` not below `low` and the largest below `high`: rounding must not leave the half-open range."""
    first, last = (np.asarray(v).astype(dtype) for v in (low, high - 1))
    if int(first) < low:
        first = np.nextafter(first, np.asarray(np.inf).astype(dtype))
    if int(last) >= high:
        last = np.nextafter(np.asarray(high).astype(dtype), np.asarray(-np.inf).astype(dtype))
    return jnp.asarray(first), jnp.asarray(last)


@lowering("exponential")
def exponential(self: Array, lambd: Number, *, rng: Rng) -> Array:
    """Exponential with rate `lambd`, never 0 (a following logarithm stays finite)."""
    work = _wide(np.dtype(self.dtype))
    return cast(_standard_exponential(rng, self.shape, work) / lambd.to(work), self.dtype)


def _standard_exponential(rng: Rng, shape: Sequence[int], work: np.dtype) -> Array:
    smallest = work.type(np.finfo(work).eps) / work.type(2)
    return jnp.maximum(-jnp.log1p(-rng.uniform(shape, work)), smallest)


@lowering("geometric")
def geometric(self: Array, p: Number, *, rng: Rng) -> Array:
    """The number of trials up to the first success, 1, 2, ...; by inversion."""
    work = _wide(np.dtype(self.dtype))
    trials = jnp.ceil(_standard_exponential(rng, self.shape, work) / -jnp.log1p(-p.to(work)))
    return cast(jnp.maximum(trials, work.type(1)), self.dtype)


@lowering("log_normal")
def log_normal(self: Array, mean: Number, std: Number, *, rng: Rng) -> Array:
    z = standard_normal(rng, self.shape, np.dtype(self.dtype))
    return cast(jnp.exp(z * std.to(z.dtype) + mean.to(z.dtype)), self.dtype)


@lowering("cauchy")
def cauchy(self: Array, median: Number, sigma: Number, *, rng: Rng) -> Array:
    work = _wide(np.dtype(self.dtype))
    angle = (rng.uniform(self.shape, work) - work.type(0.5)) * work.type(math.pi)
    return cast(median.to(work) + sigma.to(work) * jnp.tan(angle), self.dtype)


def _like(size: Sequence[int], dtype: torch.dtype | None) -> Array:
    """A placeholder that carries shape and dtype to a filler; XLA never materializes it."""
    return jnp.zeros(tuple(size), to_jax(dtype) if dtype is not None else default_float())


def _integer_dtype(dtype: torch.dtype | int | None) -> torch.dtype:
    """The dtype asked for; the schema's own default arrives as ATen's number for int64."""
    return dtype if isinstance(dtype, torch.dtype) else torch.int64


def _number(value: float) -> Number:
    return Number(jnp.asarray(value, np.float64))


@lowering("rand", "rand.generator")
def rand(size: list[int], *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return uniform(_like(size, dtype), _number(0.0), _number(1.0), rng=rng)


@lowering("randn", "randn.generator")
def randn(size: list[int], *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return normal(_like(size, dtype), _number(0.0), _number(1.0), rng=rng)


@lowering("randint", "randint.generator")
def randint(high: int, size: list[int], *, dtype: torch.dtype | int | None, rng: Rng) -> Array:
    return _random_between(_like(size, _integer_dtype(dtype)), 0, high, rng)


@lowering("randint.low", "randint.low_generator")
def randint_low(low: int, high: int, size: list[int], *, dtype: torch.dtype | int | None, rng: Rng) -> Array:
    return _random_between(_like(size, _integer_dtype(dtype)), low, high, rng)


def _retyped(self: Array, dtype: torch.dtype | None) -> Array:
    return self if dtype is None else jnp.zeros(self.shape, to_jax(dtype))


@lowering("rand_like", "rand_like.generator")
def rand_like(self: Array, *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return uniform(_retyped(self, dtype), _number(0.0), _number(1.0), rng=rng)


@lowering("randn_like", "randn_like.generator")
def randn_like(self: Array, *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return normal(_retyped(self, dtype), _number(0.0), _number(1.0), rng=rng)


@lowering("randint_like", "randint_like.generator")
def randint_like(self: Array, high: int, *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return _random_between(_retyped(self, dtype), 0, high, rng)


@lowering("randint_like.low_dtype", "randint_like.low_generator_dtype")
def randint_like_low(self: Array, low: int, high: int, *, dtype: torch.dtype | None, rng: Rng) -> Array:
    return _random_between(_retyped(self, dtype), low, high, rng)


@lowering("randperm", "randperm.generator")
def randperm(n: int, *, dtype: torch.dtype | int | None, rng: Rng) -> Array:
    """A random permutation of 0 .. n-1: the order of n random 64-bit words."""
    numbers = jnp.arange(n, dtype=to_jax(_integer_dtype(dtype)))
    return lax.sort((rng.bits((n,), 64), numbers), num_keys=1)[1] if n else numbers


@lowering("multinomial")
def multinomial(self: Array, num_samples: int, replacement: bool, *, rng: Rng) -> Array:
    """Category numbers (int64) drawn by the weights of each row [n] or [rows, n].

    One sample, or none repeated: the largest of weight / exponential (a race of exponential clocks), one number drawn per
    category. Repeated: inversion of the cumulated weights, one number per sample.
    """
    weights = cast(self, opmath(self.dtype))
    work = np.dtype(weights.dtype)
    if num_samples == 1 or not replacement:
        race = weights / _standard_exponential(rng, weights.shape, work)
        if num_samples == 1:
            return jnp.argmax(race, axis=-1, keepdims=True).astype(np.int64)
        return lax.top_k(race, num_samples)[1].astype(np.int64)
    rows = weights.reshape(-1, weights.shape[-1])
    total = jnp.cumsum(rows, axis=-1)
    drawn = rng.uniform((rows.shape[0], num_samples), work) * total[:, -1:]
    found = jax.vmap(lambda edges, values: jnp.searchsorted(edges, values, side="right"))(total, drawn)
    # Rounding can put a draw on the last edge; it belongs to the last category that has a weight.
    last = rows.shape[1] - 1 - jnp.argmax(jnp.flip(rows, 1) > 0, axis=1, keepdims=True)
    return jnp.minimum(found, last).astype(np.int64).reshape(*weights.shape[:-1], num_samples)


@lowering("native_dropout")
def native_dropout(input: Array, p: Number, train: bool | None, *, rng: Rng) -> tuple[Array, Array]:
    """Keeps each element with probability 1 - p and scales it by 1 / (1 - p); the mask is bool. `train=False` keeps everything."""
    if train is False:
        return input, jnp.ones(input.shape, np.bool_)
    work = opmath(input.dtype)
    chance = np.dtype(np.float64) if input.dtype == np.float64 else np.dtype(np.float32)
    keep = 1 - p.to(np.dtype(np.float64))
    mask = _true_with(rng, jnp.broadcast_to(keep.astype(chance), input.shape))
    scale = jnp.where(keep == 0, 0.0, 1 / keep)
    return cast(_masked(cast(input, work), mask, cast(scale, work)), input.dtype), mask


def _masked(x: Array, mask: Array, scale: Array) -> Array:
    """`x * mask * scale`, NaN times 0 included: XLA turns a product with a mask into a selection of 0."""
    return jnp.where(mask, x * scale, x * x.dtype.type(0))


@lowering("native_dropout_backward")
def native_dropout_backward(grad_output: Array, mask: Array, scale: Number) -> Array:
    work = opmath(grad_output.dtype)
    return cast(_masked(cast(grad_output, work), cast(mask, np.dtype(np.bool_)), scale.to(work)), grad_output.dtype)
