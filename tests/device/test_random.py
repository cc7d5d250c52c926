"""Random numbers: seeds, generators, states; the same bits in every mode, and never baked into a program."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import events, program_cache

from .test_models import Fallbacks

DRAWS: dict[str, Callable[[Any], torch.Tensor]] = {
    "rand": lambda g: torch.rand(50, device="tpu", generator=g),
    "randn": lambda g: torch.randn(50, device="tpu", generator=g),
    "randint": lambda g: torch.randint(0, 100, (50,), device="tpu", generator=g),
    "randperm": lambda g: torch.randperm(50, device="tpu", generator=g),
    "normal": lambda g: torch.normal(torch.zeros(50, device="tpu"), 1.0, generator=g),
    "normal of numbers": lambda g: torch.normal(0.0, 1.0, (50,), device="tpu", generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((50,), 0.5, device="tpu"), generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(50, device="tpu"), 20, generator=g),
    "multinomial with replacement": lambda g: torch.multinomial(torch.ones(50, device="tpu"), 20, True, generator=g),
    "poisson": lambda g: torch.poisson(torch.full((50,), 4.0, device="tpu"), generator=g),
    "binomial": lambda g: torch.binomial(torch.full((50,), 10.0, device="tpu"), torch.full((50,), 0.5, device="tpu"), generator=g),
    "normal_": lambda g: torch.empty(50, device="tpu").normal_(generator=g),
    "uniform_": lambda g: torch.empty(50, device="tpu").uniform_(-1, 1, generator=g),
    "bernoulli_": lambda g: torch.empty(50, device="tpu").bernoulli_(0.5, generator=g),
    "exponential_": lambda g: torch.empty(50, device="tpu").exponential_(generator=g),
    "geometric_": lambda g: torch.empty(50, device="tpu").geometric_(0.2, generator=g),
    "cauchy_": lambda g: torch.empty(50, device="tpu").cauchy_(generator=g),
    "log_normal_": lambda g: torch.empty(50, device="tpu").log_normal_(generator=g),
    "random_": lambda g: torch.empty(50, device="tpu").random_(generator=g),
    "random_ to": lambda g: torch.empty(50, device="tpu").random_(10**6, generator=g),
    "kaiming_uniform_": lambda g: nn.init.kaiming_uniform_(torch.empty(8, 8, device="tpu"), generator=g),
    "trunc_normal_": lambda g: nn.init.trunc_normal_(torch.empty(50, device="tpu"), generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_random_operator_draws_from_the_generator_it_is_given(name: str) -> None:
    draw = DRAWS[name]
    generator = torch.Generator(device="tpu")
    first = draw(generator.manual_seed(7)).cpu()
    second = draw(generator).cpu()
    assert torch.equal(draw(generator.manual_seed(7)).cpu(), first) and not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(draw(generator).cpu(), second), "the default generator does not disturb it"
    torch.manual_seed(7)
    assert torch.equal(draw(None).cpu(), first), "the default generator with the same seed draws the same"


def test_seeding() -> None:
    torch.manual_seed(5)
    one = torch.randn(5, device="tpu").cpu()
    for seed in (torch.manual_seed, torch.tpu.manual_seed, torch.tpu.manual_seed_all):  # type: ignore[attr-defined]
        seed(5)
        assert torch.equal(torch.randn(5, device="tpu").cpu(), one) and torch.tpu.initial_seed() == 5  # type: ignore[attr-defined]
    assert torch.seed() == torch.tpu.initial_seed() and torch.tpu.seed() == torch.tpu.initial_seed()  # type: ignore[attr-defined]


def test_states() -> None:
    torch.manual_seed(1)
    state = torch.tpu.get_rng_state()  # type: ignore[attr-defined]
    first = torch.rand(3, device="tpu").cpu()

    def again() -> torch.Tensor:
        return torch.rand(3, device="tpu").cpu()

    torch.tpu.set_rng_state(state)  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        assert torch.equal(again(), first)
        torch.manual_seed(99)
        torch.rand(2, device="tpu")
    assert torch.equal(again(), first)
    with torch.random.fork_rng(device_type="tpu"):
        after = torch.rand(3, device="tpu").cpu()
    assert torch.equal(again(), after)
    torch.tpu.set_rng_state_all([state])  # type: ignore[attr-defined]
    assert torch.equal(again(), first) and torch.equal(torch.tpu.get_rng_state_all()[0], torch.tpu.get_rng_state())  # type: ignore[attr-defined]
    for bad in (torch.zeros(3, dtype=torch.uint8), torch.zeros(16), 5):
        with pytest.raises((TypeError, RuntimeError)):
            torch.tpu.set_rng_state(bad)  # type: ignore[attr-defined]


def test_generators_are_objects_like_torchs() -> None:
    generator = torch.Generator(device="tpu")
    assert isinstance(generator, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
    assert generator.device == torch.device("tpu:0") and torch.Generator().device.type == "cpu"
    assert generator.manual_seed(3) is generator and generator.initial_seed() == 3
    state = generator.get_state()
    first = torch.rand(3, device="tpu", generator=generator).cpu()
    for twin in (generator.set_state(state).clone_state(), pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert torch.equal(torch.rand(3, device="tpu", generator=twin).cpu(), first)
    assert torch.equal(torch.rand(3, device="tpu", generator=generator).cpu(), first), "its twins left it alone"
    with pytest.raises(RuntimeError, match="Expected a 'tpu' device type for generator but found 'cpu'"):
        torch.rand(3, device="tpu", generator=torch.Generator())


def test_seeds_are_not_part_of_programs() -> None:
    def draw(seed: int) -> None:
        torch.manual_seed(seed)
        F.dropout(torch.ones(10, device="tpu"), 0.3)
        torch.rand(4, device="tpu")
        torch.rand(4, device="tpu", generator=torch.Generator(device="tpu").manual_seed(seed))

    draw(0)
    before = program_cache.compilations
    for seed in range(10):
        draw(seed)
    assert program_cache.compilations == before


def test_the_same_bits_in_eager_recorded_blocking_and_compiled() -> None:
    def draw(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.rand_like(x),
            F.dropout(x, 0.5),
            torch.randint(0, 1000, (5,), device=x.device),
            torch.bernoulli(x * 0 + 0.5),
            torch.empty_like(x).uniform_(),
            torch.randperm(6, device=x.device),
            torch.randn(4, device=x.device),  # normals: within 2 ulp
        )

    x = torch.ones(8, device="tpu")
    compiled = torch.compile(draw, backend="tpu")

    def outcome(function: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]) -> tuple[list[torch.Tensor], torch.Tensor]:
        torch.manual_seed(3)
        return [t.cpu() for t in function(x)], torch.tpu.get_rng_state()  # type: ignore[attr-defined]

    eager, after = outcome(draw)
    with events.observe(Fallbacks()):
        recorded = outcome(draw)
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):  # type: ignore[attr-defined]
        blocking = outcome(draw)
    for drawn, state in (recorded, blocking, outcome(compiled), outcome(compiled)):
        assert torch.equal(state, after)
        assert all(torch.equal(a, b) for a, b in zip(drawn[:-1], eager[:-1], strict=True))
        torch.testing.assert_close(drawn[-1], eager[-1], rtol=3e-7, atol=0)


def test_distributions_sample_on_the_device() -> None:
    made = torch.distributions
    zero, one = torch.zeros(2, device="tpu"), torch.ones(2, device="tpu")
    for distribution in (
        made.Normal(zero, one),
        made.Beta(one, one),
        made.Gamma(one, one),
        made.Dirichlet(one),
        made.Poisson(one),
        made.Bernoulli(one / 2),
        made.Categorical(one),
        made.MultivariateNormal(zero, torch.eye(2, device="tpu")),
    ):
        sample = distribution.sample((3,))
        assert sample.device.type == "tpu" and distribution.log_prob(sample).isfinite().all()
