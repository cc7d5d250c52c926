"""A CPU run that draws the device's random numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device.replay import replay_on_cpu

DRAWS: dict[str, Callable[[str], torch.Tensor]] = {
    "rand": lambda device: torch.rand(5, device=device),
    "randn": lambda device: torch.randn(2, 3, device=device),
    "randint": lambda device: torch.randint(100, (6,), device=device),
    "randperm": lambda device: torch.randperm(9, device=device),
    "rand_like": lambda device: torch.rand_like(torch.zeros(4, device=device)),
    "bernoulli": lambda device: torch.bernoulli(torch.full((8,), 0.5, device=device)),
    "in place": lambda device: torch.zeros(4, device=device).uniform_(),
    "in place on a view": lambda device: torch.zeros(2, 4, device=device)[1].normal_(),
    "dropout": lambda device: nn.functional.dropout(torch.ones(16, device=device)),
    "multinomial": lambda device: torch.multinomial(torch.ones(5, device=device), 3),
    "in sequence": lambda device: torch.rand(2, device=device) + torch.rand(2, device=device),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_numbers_are_the_device_s(draw: Callable[[str], torch.Tensor]) -> None:
    torch.manual_seed(3)
    expected = draw("tpu").cpu()
    torch.manual_seed(3)
    with replay_on_cpu():
        found = draw("cpu")
    assert found.device.type == "cpu" and torch.equal(found, expected)
    torch.manual_seed(3)
    assert not torch.equal(draw("cpu"), expected)


def test_a_write_in_place_gives_back_the_tensor_itself() -> None:
    x = torch.zeros(4)
    with replay_on_cpu():
        assert x.normal_() is x
    assert x.abs().sum() > 0


def test_a_generator_of_the_user_and_a_data_loader_keep_their_own_numbers() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(20))

    def draw() -> list[list[int]]:
        torch.manual_seed(1)
        mine = torch.randperm(10, generator=torch.Generator().manual_seed(4)).tolist()
        return [mine, [int(x) for (x,) in torch.utils.data.DataLoader(data, shuffle=True, batch_size=None)]]

    expected = draw()
    with replay_on_cpu():
        assert draw() == expected
