"""Calls torch's CPU kernels refuse and its meta kernels let pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .against_cpu import assert_agree, assert_error

NOTHING_TO_REDUCE: dict[str, Callable[[torch.Tensor], Any]] = {
    **{name: lambda x, name=name: getattr(x, name)() for name in ("max", "min", "amax", "amin", "argmax", "argmin", "aminmax")},
    **{f"{name} of dim 0": lambda x, name=name: getattr(x, name)(0) for name in ("max", "min", "amax", "amin", "argmax", "argmin", "median", "mode")},
    "kthvalue of dim 0": lambda x: x.kthvalue(1, 0),
}


@pytest.mark.parametrize("name", NOTHING_TO_REDUCE)
def test_reductions_over_nothing(name: str) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        NOTHING_TO_REDUCE[name](torch.zeros(0, 3))
    with pytest.raises(type(expected.value)) as actual:
        NOTHING_TO_REDUCE[name](torch.zeros(0, 3, device="tpu"))
    assert str(actual.value) == str(expected.value)


def test_reductions_over_nothing_that_have_a_value() -> None:
    def reduce(device: str) -> Any:
        x = torch.zeros(0, 3, device=device)
        return x.sum(), x.sum(0), x.prod(0), x.mean(), x.all(), x.any(0), x.max(1), x.median(), x.argmax(1), x.sort(0), x.cumsum(0), x.logsumexp(0)

    assert_agree(reduce)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (300, torch.uint8),
        (-1, torch.uint8),
        (2.7, torch.uint8),
        (300.5, torch.uint8),
        (1e5, torch.float16),
        (float("inf"), torch.float16),
        (1e39, torch.bfloat16),
        (1e39, torch.float32),
        (2**31, torch.int32),
        (float("nan"), torch.int32),
        (7, torch.bool),
        (1j, torch.float32),
    ],
)
def test_numbers_outside_the_dtype(value: Any, dtype: torch.dtype) -> None:
    for write in (
        lambda device: torch.zeros(2, dtype=dtype, device=device).fill_(value),
        lambda device: torch.zeros(2, dtype=dtype, device=device).masked_fill(torch.tensor([True, False], device=device), value),
        lambda device: torch.full((2,), value, dtype=dtype, device=device),
        lambda device: torch.zeros(2, dtype=dtype, device=device).new_full((2,), value),
    ):
        try:
            write("cpu")
        except RuntimeError as expected:
            with pytest.raises(RuntimeError, match=str(expected)):
                write("tpu")
        else:
            assert_agree(write)


MIXED: dict[str, Callable[[str], Any]] = {
    "mm": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, dtype=torch.float64, device=d)),
    "matmul with integers": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, dtype=torch.long, device=d),
    "linear": lambda d: torch.nn.functional.linear(torch.ones(2, 2, device=d), torch.ones(2, 2, dtype=torch.float16, device=d)),
    "addmm": lambda d: torch.addmm(torch.ones(2, dtype=torch.float64, device=d), torch.ones(2, 2, device=d), torch.ones(2, 2, device=d)),
    "bmm": lambda d: torch.bmm(torch.ones(1, 2, 2, device=d), torch.ones(1, 2, 2, dtype=torch.float16, device=d)),
    "mv": lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, dtype=torch.float64, device=d),
    "dot": lambda d: torch.dot(torch.ones(2, device=d), torch.ones(2, dtype=torch.float64, device=d)),
    "conv2d": lambda d: torch.nn.functional.conv2d(torch.ones(1, 1, 2, 2, device=d), torch.ones(1, 1, 2, 2, dtype=torch.float16, device=d)),
    "index_copy_": lambda d: torch.ones(2, device=d).index_copy_(0, torch.tensor([0], device=d), torch.ones(1, dtype=torch.float64, device=d)),
    "index_put_": lambda d: torch.ones(2, device=d).index_put_((torch.tensor([0], device=d),), torch.ones(1, dtype=torch.float64, device=d)),
    "scatter_": lambda d: torch.ones(2, device=d).scatter_(0, torch.tensor([0], device=d), torch.ones(1, dtype=torch.float64, device=d)),
    "masked_fill_": lambda d: torch.ones(3, device=d).masked_fill_(torch.ones(3, device=d), 1),
    "gather": lambda d: torch.ones(2, device=d).gather(0, torch.ones(2, device=d)),
}


@pytest.mark.parametrize("name", MIXED)
def test_dtypes_that_do_not_go_together(name: str) -> None:
    assert_error(MIXED[name], RuntimeError)
