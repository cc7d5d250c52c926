"""A bad index is an IndexError, at the latest when the host reads something; the device works on afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tpu_lab  # noqa: F401  registers the device

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
    with pytest.raises(IndexError, match="index out of range"):
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


def test_the_error_comes_at_the_next_read_of_anything() -> None:
    torch.arange(5.0, device="tpu")[torch.tensor([7], device="tpu")]
    other = torch.ones(2, device="tpu") + 1
    with pytest.raises(IndexError):
        other.cpu()
    assert other.tolist() == [2, 2]
