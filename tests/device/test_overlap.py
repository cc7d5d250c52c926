"""Writes over shared memory: what is refused is what torch refuses, and what is not has the CPU's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .against_cpu import assert_agree, assert_error

PARTLY: dict[str, Callable[[torch.Tensor], Any]] = {
    "add_": lambda a: a[1:].add_(a[:-1]),
    "copy_": lambda a: a[1:].copy_(a[:-1]),
    "out=": lambda a: torch.add(a[:-1], 1, out=a[1:]),
    "its own transpose": lambda a: a[:9].view(3, 3).add_(a[:9].view(3, 3).t()),
    "one of its elements": lambda a: a.mul_(a[3]),
    "clamp_": lambda a: a[:4].clamp_(a[1:5]),
    "addcmul_": lambda a: a[:4].addcmul_(a[1:5], a[1:5]),
    "where out=": lambda a: torch.where(a[:4] > 0, a[1:5], a[2:6], out=a[:4]),
    "cat out=": lambda a: torch.cat([a[1:5]], out=a[:4]),
    "cumsum out=": lambda a: torch.cumsum(a[1:5], 0, out=a[:4]),
    "index_add_ of itself": lambda a: a.index_add_(0, torch.arange(12, device=a.device), a),
    "scatter_ of itself": lambda a: a.scatter_(0, torch.arange(12, device=a.device), a),
    "index_copy_": lambda a: a[1:5].index_copy_(0, torch.arange(3, device=a.device), a[:3]),
    "gather out=": lambda a: torch.gather(a[1:5], 0, torch.arange(3, device=a.device), out=a[:3]),
    "take out=": lambda a: torch.take(a[1:5], torch.arange(3, device=a.device), out=a[:3]),
}


@pytest.mark.parametrize("name", PARTLY)
def test_an_operand_that_is_partly_the_target_is_refused(name: str) -> None:
    assert_error(lambda device: PARTLY[name](torch.arange(12.0, device=device)), RuntimeError, "some elements of the input tensor and the written-to")


EXPANDED: dict[str, Callable[[torch.Tensor], Any]] = {
    "add_": lambda a: a.add_(1),
    "copy_": lambda a: a.copy_(torch.ones(3, device=a.device)),
    "relu_": lambda a: a.relu_(),
    "normal_": lambda a: a.normal_(),
    "cumsum_": lambda a: a.cumsum_(0),
    "index_add_": lambda a: a.index_add_(0, torch.tensor([0], device=a.device), torch.ones(1, 3, device=a.device)),
    "scatter_": lambda a: a.scatter_(0, torch.zeros(2, 3, dtype=torch.long, device=a.device), 1.0),
    "add out=": lambda a: torch.add(torch.ones(4, 3, device=a.device), 1, out=a),
    "mm out=": lambda a: torch.mm(torch.ones(4, 2, device=a.device), torch.ones(2, 3, device=a.device), out=a),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_a_write_through_an_expanded_tensor_is_refused(name: str) -> None:
    assert_error(
        lambda device: EXPANDED[name](torch.zeros(1, 3, device=device).expand(4, 3)), RuntimeError, "more than one element of the written-to"
    )


def test_fills_may_go_through_an_expanded_tensor() -> None:
    def fill(device: str) -> Any:
        rows = [torch.ones(1, 3, device=device).expand(4, 3) for _ in range(3)]
        rows[0].fill_(5)
        rows[1].zero_()
        torch.full((4, 3), 7.0, out=rows[2])
        return rows

    assert_agree(fill)


@pytest.mark.parametrize("write", [lambda a: a.masked_fill_(a > 0, 2), lambda a: a.index_fill_(0, torch.tensor([0], device="tpu"), 2)])
def test_partial_fills_of_an_expanded_tensor_are_refused(write: Callable[[torch.Tensor], Any]) -> None:
    """torch calls them deprecated; which position of an element counts would be left to chance."""
    with pytest.raises(RuntimeError, match="more than one element of the written-to"):
        write(torch.ones(1, 3, device="tpu").expand(4, 3))


def test_operands_that_are_all_or_none_of_the_target() -> None:
    def write(device: str) -> Any:
        a = torch.arange(12.0, device=device)
        torch.add(a, a, out=a)
        a.mul_(a)
        a[:4].add_(a[8:])
        a[::2].copy_(a[1::2])
        torch.sub(a[:4], a[4:8], out=a[8:])
        a[:4].copy_(a[:4].flip(0))
        a.view(3, 4).sub_(a.view(3, 4))
        return a

    assert_agree(write)


def test_a_product_written_over_its_factor_is_the_product() -> None:
    """torch leaves this undefined; here all operands are read first."""
    a = torch.arange(9.0, device="tpu").reshape(3, 3)
    product = a @ a
    torch.mm(a, a, out=a)
    assert torch.equal(a, product)
