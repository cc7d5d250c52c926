"""Padding a changing first dimension: only where rows are proven apart, and then with eager's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tpu_lab  # noqa: F401
from tests.compiler.test_backend import Graphs
from tpu_lab.compiler import events
from tpu_lab.compiler.options import bucket


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    torch.manual_seed(0)
    yield
    torch.compiler.reset()


def served(function: Callable[..., Any], make: Callable[[int], torch.Tensor], sizes: Iterable[int], buckets: Any = "power_of_two") -> events.Captured:
    """Runs a function compiled with padding for each size and plainly on the CPU, the results have to agree; returns its graph."""
    seen = Graphs()
    compiled = torch.compile(function, backend="tpu", dynamic=True, options={"buckets": buckets})
    ours = function
    if isinstance(function, nn.Module):
        import copy

        ours = copy.deepcopy(function)
        function.to("tpu")
    with events.observe(seen), torch.no_grad():
        for size in sizes:
            x = make(size)
            found, right = compiled(x.to("tpu")), ours(x)
            torch.testing.assert_close(found, right, check_device=False, rtol=1e-4, atol=1e-5)
    assert len(seen.made) == 1
    return seen.made[0]


def count(graph: events.Captured) -> int:
    return sum(program.program_count for program in graph.programs)


def flat(size: int) -> torch.Tensor:
    return torch.randn(size, 8)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.mix, self.norm, self.head = nn.Embedding(11, 8), nn.Linear(8, 24), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        q, k, v = self.mix(x).chunk(3, -1)
        return self.head(self.norm(x + torch.softmax(q @ k.mT / 3, -1) @ v)).mean(1)


APART: dict[str, tuple[Any, Callable[[int], torch.Tensor]]] = {
    "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), flat),
    "softmax": (lambda x: functional.softmax(x, -1).sum(1), flat),
    "reshaped": (lambda x: (x.view(x.shape[0], 2, 4).transpose(1, 2) * 2).amax(-1), flat),
    "size among results": (lambda x: (x + 1, x.shape[0]), flat),
    "convolution": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU()), lambda n: torch.randn(n, 2, 5, 4)),
}
TOGETHER: dict[str, tuple[Any, Callable[[int], torch.Tensor]]] = {
    "sum over rows": (lambda x: x.sum(0), flat),
    "mean of all": (lambda x: x - x.mean(), flat),
    "softmax over rows": (lambda x: x.softmax(0), flat),
    "product of rows": (lambda x: x @ x.mT, flat),
    "divided by the size": (lambda x: x / x.shape[0], flat),
    "rows shifted": (lambda x: x.roll(1, 0), flat),
    "rows in columns": (lambda x: x.reshape(2, -1), lambda n: torch.randn(2 * n, 8)),
    "numbered rows": (lambda x: x + torch.arange(x.shape[0], device=x.device)[:, None], flat),
    "sorted rows": (lambda x: x.sort(0).values, flat),
    "turned": (lambda x: x.t() * 2, flat),
}


@pytest.mark.parametrize("name", APART)
def test_rows_apart_are_padded_to_a_few_programs(name: str) -> None:
    function, make = APART[name]
    graph = served(function, make, (3, 4, 5, 7, 8, 9))
    assert graph.sizes == "padded" and count(graph) == 3  # 4, 8, 16


@pytest.mark.parametrize("name", TOGETHER)
def test_rows_that_meet_are_never_padded(name: str) -> None:
    function, make = TOGETHER[name]
    graph = served(function, make, (2, 3))
    assert graph.sizes == "exact" and count(graph) == 2


def test_buckets_of_the_user() -> None:
    graph = served(lambda x: x * 2, flat, (2, 3, 6, 9, 10), [4, 8])
    assert graph.sizes == "padded" and count(graph) == 4  # 4, 8, and 9, 10 beyond the last
    assert [bucket(n, "power_of_two") for n in (1, 2, 3, 8, 9)] == [1, 2, 4, 8, 16]


def test_an_attention_over_a_batch_is_right_whichever_way_it_goes() -> None:
    served(Attention(), lambda n: torch.randint(0, 11, (n, 5)), (2, 3, 5))


def test_views_and_integers_as_inputs() -> None:
    served(lambda x: x * 2 + 1, lambda n: torch.arange(n * 8).view(n, 8)[:, ::2].contiguous(), (2, 3))
    torch.compiler.reset()
    compiled = torch.compile(lambda x: x * 2, backend="tpu", dynamic=True, options={"buckets": "power_of_two"})
    whole = torch.arange(40.0).view(10, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(whole.to("tpu")[3:8]).cpu(), whole[3:8] * 2)
