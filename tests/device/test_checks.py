"""A refused value is an error of the CPU's type, at the latest when the host reads something; the device works on afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import checks
from tpu_lab.device.modes import EagerMode, set_eager_mode
from tpu_lab.lowering.bounds import Complaint

from .against_cpu import assert_agree, assert_error

INDEXING: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "x[i]": lambda x, i: x[i],
    "x[i] = ": lambda x, i: x.clone().index_put_((i,), torch.tensor(1.0, device="tpu")),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i),
    "take": lambda x, i: x.take(i),
    "scatter_": lambda x, i: x.clone().scatter_(0, i, 1.0),
    "index_add_": lambda x, i: x.clone().index_add_(0, i, x[:1]),
    "embedding": lambda x, i: F.embedding(i, x[:, None]),
    "cross_entropy": lambda x, i: F.cross_entropy(x[None], i),
    "backward of x[i]": lambda x, i: torch.autograd.grad(x.requires_grad_()[i].sum(), x)[0],
}
READING: dict[str, Callable[[torch.Tensor], Any]] = {
    "cpu": lambda r: r.cpu(),
    "item": lambda r: r.sum().item(),
    "print": repr,
    "tolist": lambda r: r.tolist(),
    "synchronize": lambda r: torch.accelerator.synchronize(),
    "if": lambda r: bool((r > 0).any()),
    "equal": lambda r: torch.equal(r, r.clone()),
    "nonzero": lambda r: r.nonzero(),
    "save": lambda r: r.untyped_storage().cpu(),
}


@pytest.mark.parametrize("name", INDEXING)
def test_every_operator_that_indexes(name: str) -> None:
    x = torch.arange(5.0, device="tpu")
    kind = RuntimeError if name in ("gather", "scatter_") else IndexError  # as on the CPU
    with pytest.raises(kind, match="index out of range"):
        INDEXING[name](x, torch.tensor([9], device="tpu")).cpu()
    assert INDEXING[name](torch.arange(5.0, device="tpu"), torch.tensor([2], device="tpu")).cpu().isfinite().all()


@pytest.mark.parametrize("name", READING)
def test_every_way_of_reading(name: str) -> None:
    wrong = torch.arange(5.0, device="tpu")[torch.tensor([1, 7], device="tpu")]
    with pytest.raises(IndexError, match="index out of range"):
        READING[name](wrong)
    READING[name](torch.arange(5.0, device="tpu")[torch.tensor([1, -1], device="tpu")])


def test_the_message_names_operator_and_line() -> None:
    wrong = torch.arange(5.0, device="tpu")[torch.tensor([7], device="tpu")]
    with pytest.raises(IndexError, match=r"aten\.index\.Tensor: index out of range \(called at .*test_checks\.py:\d+\)"):
        wrong.cpu()


def test_the_place_in_a_notebook_is_the_cell_s_line() -> None:
    for place in ("/tmp/ipykernel_17/333884656.py:3", "<ipython-input-2-26085948193c>:3"):
        assert "(called at cell line 3)" in str(checks.error_of(Complaint.INDEX, "aten.index.Tensor", place))


WORDED: dict[str, Callable[[str], Any]] = {
    "x[i]": lambda d: torch.ones(3, 4, device=d)[torch.tensor([0, 7], device=d)],
    "a negative one": lambda d: torch.ones(3, 4, device=d)[torch.tensor([0, -5], device=d)],
    "x[i] = ": lambda d: torch.ones(3, device=d).index_put_((torch.tensor([1, 4], device=d),), torch.tensor(1.0, device=d)),
    "gather": lambda d: torch.ones(3, 4, device=d).gather(1, torch.tensor([[5]], device=d)),
}


@pytest.mark.parametrize("name", WORDED)
def test_where_each_operator_is_waited_for_the_words_are_the_cpu_s(name: str) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        WORDED[name]("cpu")
    with set_eager_mode(EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING), pytest.raises(type(expected.value)) as actual:
        WORDED[name]("tpu")
    assert str(actual.value) == str(expected.value)
    with set_eager_mode(EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING), pytest.raises(IndexError, match=r"index 9 is .* dimension 1 with size 4"):
        torch.ones(3, 4, device="tpu")[:, torch.tensor([9], device="tpu")]  # the CPU says dimension 0 here
    assert "(in aten." in str(actual.value.__notes__)


def test_the_error_comes_at_the_next_read_of_anything() -> None:
    torch.arange(5.0, device="tpu")[torch.tensor([7], device="tpu")]
    other = torch.ones(2, device="tpu") + 1
    with pytest.raises(IndexError):
        other.cpu()
    assert other.tolist() == [2, 2]


WHOLE, ZERO = torch.tensor([7, -7]), torch.tensor([2, 0])
VALUES: dict[str, Callable[[str], Any]] = {
    "multinomial, negative": lambda d: torch.multinomial(torch.tensor([-1.0, 2.0], device=d), 1),
    "multinomial, NaN": lambda d: torch.multinomial(torch.tensor([torch.nan, 2.0], device=d), 1),
    "multinomial, all zero": lambda d: torch.multinomial(torch.zeros(3, device=d), 1),
    "bernoulli": lambda d: torch.bernoulli(torch.tensor([0.5, 2.0], device=d)),
    "bernoulli_": lambda d: torch.zeros(1, device=d).bernoulli_(torch.tensor([-0.5], device=d)),
    "poisson": lambda d: torch.poisson(torch.tensor([-1.0], device=d)),
    "normal": lambda d: torch.normal(torch.ones(2, device=d), -torch.ones(2, device=d)),
    "binary_cross_entropy, input": lambda d: F.binary_cross_entropy(torch.tensor([1.5], device=d), torch.ones(1, device=d)),
    "binary_cross_entropy, target": lambda d: F.binary_cross_entropy(torch.tensor([0.5], device=d), torch.tensor([2.0], device=d)),
    "//": lambda d: WHOLE.to(d) // ZERO.to(d),
    "%": lambda d: WHOLE.to(d) % ZERO.to(d),
    "fmod_": lambda d: WHOLE.to(d, copy=True).fmod_(ZERO.to(d)),
    "div, rounded": lambda d: torch.div(WHOLE.to(d), ZERO.to(d), rounding_mode="trunc"),
    "number // tensor": lambda d: 3 // ZERO.to(d),
    "tensor // number": lambda d: WHOLE.to(d) // 0,
    "cholesky": lambda d: torch.cholesky(-torch.eye(2, device=d)),
    "_assert_async": lambda d: torch._assert_async(torch.tensor(0, device=d)),
}
FINE: dict[str, Callable[[str], Any]] = {
    "multinomial": lambda d: torch.multinomial(torch.tensor([0.0, 2.0], device=d), 3, replacement=True),
    "bernoulli": lambda d: torch.bernoulli(torch.tensor([0.0, 1.0], device=d)),
    "binary_cross_entropy": lambda d: F.binary_cross_entropy(torch.tensor([0.0, 1.0], device=d), torch.tensor([1.0, 1.0], device=d)),
    "floating division": lambda d: torch.tensor([1.0, -1.0], device=d).remainder(torch.tensor([0.0, 2.0], device=d)),
    "true division": lambda d: WHOLE.to(d) / ZERO.to(d),
    "division by a number": lambda d: (WHOLE.to(d) // 2, WHOLE.to(d) % -2, 7 // torch.tensor([2, -2], device=d)),
    "bools": lambda d: torch.tensor([3], device=d) // torch.tensor([True], device=d),
    "_assert_async": lambda d: torch._assert_async(torch.tensor(2.5, device=d)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_the_cpu_refuses(name: str) -> None:
    with pytest.raises(RuntimeError) as expected:
        VALUES[name]("cpu")
    with pytest.raises(type(expected.value)):
        VALUES[name]("tpu")
        torch.accelerator.synchronize()


@pytest.mark.parametrize("name", FINE)
def test_values_the_cpu_takes(name: str) -> None:
    assert_agree(FINE[name])


def test_a_compiled_graph_checks_values_too() -> None:
    divide = torch.compile(lambda a, b: a // b + 1, backend="tpu")
    assert divide(WHOLE.to("tpu"), torch.tensor([2, 3], device="tpu")).tolist() == [4, -2]
    divide(WHOLE.to("tpu"), ZERO.to("tpu"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.accelerator.synchronize()
    invert = torch.compile(torch.linalg.inv, backend="tpu")
    assert invert(2 * torch.eye(2, device="tpu")).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    invert(torch.zeros(2, 2, device="tpu"))
    with pytest.raises(torch.linalg.LinAlgError):
        torch.accelerator.synchronize()


def test_numbers_of_random_operators() -> None:
    refused: list[Callable[[torch.Tensor], Any]] = [
        lambda x: x.cauchy_(0, -1),
        lambda x: x.exponential_(-1),
        lambda x: x.geometric_(1),
        lambda x: x.log_normal_(0, 0),
        lambda x: x.normal_(0, -1),
        lambda x: x.uniform_(3, 1),
        lambda x: x.bernoulli_(2.0),
        lambda x: x.random_(3, 1),
        lambda x: torch.normal(1.0, -1.0, (2,), device=x.device),
    ]
    for function in refused:
        assert_error(lambda device, function=function: function(torch.ones(3, device=device)), RuntimeError)
