"""Random lowerings: ranges and moments against the distribution's own formulas, determinism, and what a draw consumes."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tpu_lab.lowering.dtypes import to_jax
from tpu_lab.lowering.promotion import Number
from tpu_lab.lowering.registry import find
from tpu_lab.lowering.rng import Rng

from .replay import to_array, to_tensor

COUNT = 40_000


def draw(name: str, *args: Any, seed: int = 1, offset: int = 0, **named: Any) -> tuple[Any, int]:
    """Results (arrays) and the offset steps consumed. Tensors and floats among the arguments become arrays and Numbers."""
    found = find(name)
    assert found is not None and found.random
    consumed = 0

    def given(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return to_array(value)
        return Number(jnp.asarray(value, jnp.float64)) if isinstance(value, float) else value

    def run(state: jax.Array) -> Any:
        nonlocal consumed
        rng = Rng(state)
        out = found.function(*map(given, args), **named, rng=rng)
        consumed = rng.consumed
        return out

    with jax.enable_x64(True):
        return jax.jit(run)(jnp.asarray([seed, offset], jnp.uint64)), consumed


def numbers(name: str, *args: Any, **named: Any) -> np.ndarray:
    out, _ = draw(name, *args, **named)
    return np.asarray(out).astype(np.float64)


def near(values: np.ndarray, mean: float, deviation: float) -> None:
    """Mean within 5 standard errors, standard deviation within 5 %."""
    assert abs(values.mean() - mean) < 5 * deviation / math.sqrt(values.size)
    assert abs(values.std() - deviation) < 0.05 * deviation


EMPTY = torch.zeros(COUNT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_uniform_is_half_open(dtype: torch.dtype) -> None:
    values = numbers("uniform", EMPTY.to(dtype), -1.0, 3.0)
    near(values, 1.0, 4 / math.sqrt(12))
    assert values.min() >= -1
    assert values.max() < 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_normal(dtype: torch.dtype) -> None:
    values = numbers("normal_functional", EMPTY.to(dtype), 2.0, 0.5)
    near(values, 2, 0.5)
    assert abs(((values - 2) ** 4).mean() / 0.5**4 - 3) < 0.3


def test_normal_of_tensors() -> None:
    mean, std = torch.arange(4.0), torch.tensor([[1.0], [0.0]]).expand(2, 4).contiguous()
    out, _ = draw("normal.Tensor_Tensor", mean, std)
    np.testing.assert_array_equal(np.asarray(out)[1], np.arange(4))
    assert draw("normal.Tensor_float", mean, 0.0)[0].shape == (4,)
    np.testing.assert_array_equal(numbers("normal.float_Tensor", 3.0, torch.zeros(5)), np.full(5, 3.0))


def test_complex_has_unit_variance() -> None:
    out, consumed = draw("randn", [COUNT], dtype=torch.complex64)
    values = np.asarray(out)
    assert values.dtype == np.complex64
    assert abs((np.abs(values) ** 2).mean() - 1) < 0.05
    assert abs((values.real**2).mean() - 0.5) < 0.03
    assert consumed == COUNT // 2


def test_bernoulli() -> None:
    for p in (0.0, 0.3, 1.0):
        values = numbers("bernoulli.p", EMPTY.to(torch.int64), p)
        assert abs(values.mean() - p) < 0.02
        assert set(values) <= {0.0, 1.0}
        assert abs(numbers("bernoulli", EMPTY + p).mean() - p) < 0.02
        assert abs(numbers("bernoulli.Tensor", EMPTY, torch.tensor(p)).mean() - p) < 0.02


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [
        (torch.bool, 1),
        (torch.uint8, 255),
        (torch.int8, 127),
        (torch.int16, 2**15 - 1),
        (torch.int32, 2**31 - 1),
        (torch.int64, 2**63 - 1),
        (torch.float16, 2**11),
        (torch.bfloat16, 2**8),
        (torch.float32, 2**24),
        (torch.float64, 2**53),
    ],
)
def test_random_covers_the_dtype(dtype: torch.dtype, largest: int) -> None:
    """The ranges that PyTorch documents for `random_` without bounds."""
    values = numbers("random", EMPTY.to(dtype))
    assert values.min() >= 0
    assert values.max() <= largest
    assert abs(values.mean() / largest - 0.5) < 0.02
    assert values.max() > 0.99 * largest


@pytest.mark.parametrize(("low", "high"), [(-5, 6), (0, 1), (-(2**40), 2**40), (-(2**63), None), (10, 3_000_000)])
def test_random_between(low: int, high: int | None) -> None:
    out, _ = draw("random.from", EMPTY.to(torch.int64), low, high)
    values = np.asarray(out)
    top = 2**63 if high is None else high
    assert values.min() >= low
    assert values.max() < top
    assert abs((values.astype(np.float64) - low).mean() / (top - low) - 0.5 + 0.5 / (top - low)) < 0.02


def test_every_value_of_a_small_range_is_as_frequent() -> None:
    counts = np.bincount(np.asarray(draw("random.to", EMPTY.to(torch.int32), 8)[0]), minlength=8)
    assert counts.size == 8
    assert ((counts - COUNT / 8) ** 2 / (COUNT / 8)).sum() < 30  # chi-square, 7 degrees of freedom


def test_a_rounded_integer_stays_in_its_range() -> None:
    values = numbers("random.from", EMPTY.to(torch.bfloat16), 257, 1001)
    assert values.min() >= 257
    assert values.max() < 1001


def test_exponential_geometric_and_their_kin() -> None:
    exponential = numbers("exponential", EMPTY, 2.0)
    near(exponential, 0.5, 0.5)
    assert exponential.min() > 0
    geometric = numbers("geometric", EMPTY.to(torch.int64), 0.25)
    near(geometric, 4, math.sqrt(0.75) / 0.25)
    assert geometric.min() == 1
    assert set(numbers("geometric", EMPTY, 1.0)) == {1.0}
    near(np.log(numbers("log_normal", EMPTY, 1.0, 0.5)), 1, 0.5)
    cauchy = numbers("cauchy", EMPTY, 1.0, 2.0)
    assert np.abs(np.quantile(cauchy, [0.25, 0.5, 0.75]) - [-1, 1, 3]).max() < 0.1


def test_poisson_binomial_gamma_dirichlet() -> None:
    near(numbers("poisson", EMPTY + 3.5), 3.5, math.sqrt(3.5))
    near(numbers("poisson", EMPTY + 60), 60, math.sqrt(60))
    binomial = numbers("binomial", EMPTY + 10, EMPTY + 0.3)
    near(binomial, 3, math.sqrt(10 * 0.3 * 0.7))
    assert binomial.max() <= 10
    near(numbers("_standard_gamma", EMPTY + 0.5), 0.5, math.sqrt(0.5))
    points = numbers("_sample_dirichlet", torch.tensor([1.0, 2.0, 5.0]).expand(5000, 3).contiguous())
    np.testing.assert_allclose(points.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(points.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.02)


def test_gamma_gradient() -> None:
    alpha, sample = torch.tensor([0.5, 1.0, 3.0, 20.0]), torch.tensor([0.3, 1.2, 2.0, 22.0])
    found = find("_standard_gamma_grad")
    assert found is not None
    out = jax.jit(found.function)(to_array(alpha), to_array(sample))
    torch.testing.assert_close(to_tensor(out, torch.float32), torch.ops.aten._standard_gamma_grad(alpha, sample), rtol=1e-3, atol=1e-4)


def test_multinomial() -> None:
    weights = torch.tensor([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    repeated = np.asarray(draw("multinomial", weights, 8000, True)[0])
    assert repeated.shape == (2, 8000)
    np.testing.assert_allclose(np.bincount(repeated[0], minlength=3) / 8000, [0.25, 0, 0.75], atol=0.03)
    assert set(repeated[1]) == {1}
    assert np.asarray(draw("multinomial", weights[0], 8000, True)[0]).shape == (8000,)
    single = np.asarray(draw("multinomial", weights[:1].expand(8000, 3).contiguous(), 1, False)[0])
    np.testing.assert_allclose(np.bincount(single[:, 0], minlength=3) / 8000, [0.25, 0, 0.75], atol=0.03)
    distinct = np.asarray(draw("multinomial", torch.ones(500, 4), 3, False)[0])
    assert all(len(set(row)) == 3 for row in distinct)


def test_permutation() -> None:
    for n in (0, 1, 1000):
        out, consumed = draw("randperm", n, dtype=None)
        assert out.dtype == np.int64
        assert sorted(np.asarray(out)) == list(range(n))
        assert consumed == -(-2 * n // 4)
    assert draw("randperm", 3, dtype=torch.int32)[0].dtype == np.int32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout(dtype: torch.dtype) -> None:
    (out, mask), _ = draw("native_dropout", (EMPTY + 2).to(dtype), 0.2, True)
    kept = np.asarray(mask)
    assert abs(kept.mean() - 0.8) < 0.02
    np.testing.assert_array_equal(np.asarray(out).astype(np.float32), np.where(kept, 2.5, 0))
    (same, whole), consumed = draw("native_dropout", EMPTY + 2, 0.2, False)
    assert np.asarray(whole).all()
    assert (np.asarray(same) == 2).all()
    assert consumed == 0
    (nothing, _), _ = draw("native_dropout", EMPTY + 2, 1.0, True)
    assert (np.asarray(nothing) == 0).all()
    (broken, _), _ = draw("native_dropout", torch.full((64,), float("nan")), 0.5, True)
    assert np.isnan(np.asarray(broken)).all()


def test_dropout_backward() -> None:
    grad, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
    found = find("native_dropout_backward")
    assert found is not None
    out = found.function(to_array(grad), to_array(mask), Number(jnp.asarray(1.25)))
    torch.testing.assert_close(to_tensor(out, torch.float32), torch.ops.aten.native_dropout_backward(grad, mask, 1.25))


@pytest.mark.parametrize(
    ("factory", "filler"),
    [
        (("rand", [7]), ("uniform", torch.zeros(7), 0.0, 1.0)),
        (("randn", [7]), ("normal_functional", torch.zeros(7), 0.0, 1.0)),
        (("randint", 9, [7]), ("random.from", torch.zeros(7, dtype=torch.int64), 0, 9)),
        (("randint.low", -4, 9, [7]), ("random.from", torch.zeros(7, dtype=torch.int64), -4, 9)),
        (("rand_like", torch.zeros(7)), ("uniform", torch.zeros(7), 0.0, 1.0)),
        (("randn_like", torch.zeros(7)), ("normal_functional", torch.zeros(7), 0.0, 1.0)),
        (("randint_like", torch.zeros(7), 9), ("random.from", torch.zeros(7), 0, 9)),
        (("randint_like.low_dtype", torch.zeros(7), 2, 9), ("random.from", torch.zeros(7), 2, 9)),
        (("normal.float_float", 1.0, 2.0, [7]), ("normal_functional", torch.zeros(7), 1.0, 2.0)),
    ],
)
def test_a_factory_draws_like_its_filler(factory: tuple[Any, ...], filler: tuple[Any, ...]) -> None:
    """Eager PyTorch composes the factory of `empty` and the filler; a compiled graph holds the factory."""
    made, steps = draw(*factory, dtype=None, seed=5, offset=3)
    filled, same_steps = draw(*filler, seed=5, offset=3)
    np.testing.assert_array_equal(np.asarray(made), np.asarray(filled))
    assert made.dtype == filled.dtype
    assert steps == same_steps


def test_dtype_argument() -> None:
    assert draw("rand", [3], dtype=torch.float64)[0].dtype == np.float64
    assert draw("rand_like", torch.zeros(3), dtype=torch.bfloat16)[0].dtype == to_jax(torch.bfloat16)
    assert draw("randint", 5, [3], dtype=torch.float32)[0].dtype == np.float32


@pytest.mark.parametrize(
    ("call", "steps"),
    [
        (("uniform", torch.zeros(10), 0.0, 1.0), 3),
        (("uniform", torch.zeros(10, dtype=torch.float64), 0.0, 1.0), 5),
        (("normal_functional", torch.zeros(9), 0.0, 1.0), 3),
        (("bernoulli.p", torch.zeros(10), 0.5), 3),
        (("random.from", torch.zeros(10, dtype=torch.int64), 0, 2**20), 3),
        (("random.from", torch.zeros(10, dtype=torch.int64), 0, 2**20 + 1), 5),
        (("poisson", torch.ones(10)), 1),
        (("native_dropout", torch.zeros(10), 0.5, True), 3),
        (("multinomial", torch.ones(2, 10), 1, False), 5),
        (("multinomial", torch.ones(2, 10), 4, True), 2),
        (("uniform", torch.zeros(0), 0.0, 1.0), 0),
    ],
)
def test_what_a_draw_consumes(call: tuple[Any, ...], steps: int) -> None:
    """The module's contract; the same state gives the same numbers, the next state others."""
    first, consumed = draw(*call)
    assert consumed == steps
    again, _ = draw(*call)
    moved, _ = draw(*call, offset=consumed)
    one, same, other = (np.asarray(o[0] if isinstance(o, tuple) else o) for o in (first, again, moved))
    np.testing.assert_array_equal(one, same)
    if call[0] in ("uniform", "normal_functional") and steps:
        assert not np.array_equal(one, other)
