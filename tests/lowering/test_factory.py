"""Tensors made from numbers against CPU torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.direct import check
from tests.lowering.replay import check_opinfo

SAMPLED = {
    "zeros": {"zeros"},
    "ones": {"ones"},
    "full": {"full"},
    "zeros_like": {"zeros_like"},
    "ones_like": {"ones_like"},
    "full_like": {"full_like"},
    "new_zeros": {"new_zeros"},
    "new_ones": {"new_ones"},
    "new_full": {"new_full"},
    "fill": {"fill.Scalar"},
    "scalar_tensor": {"scalar_tensor"},
    "arange": {"arange.start_step"},
    "linspace": {"linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor"},
    "logspace": {"logspace", "logspace.Tensor_Tensor", "logspace.Tensor_Scalar", "logspace.Scalar_Tensor"},
    "eye": {"eye", "eye.m"},
    "tril_indices": {"tril_indices"},
    "triu_indices": {"triu_indices"},
}


@pytest.mark.parametrize("name", SAMPLED)
def test_opinfo(name: str) -> None:
    checked = check_opinfo(name, (torch.float32, torch.int64), only=SAMPLED[name], limit=3, grad=False)
    assert checked.keys() == SAMPLED[name]


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((0, 10, 3), None),
        ((10, -1, -4), None),
        ((0.5, 3, 0.25), None),
        ((0.0, 1.0, 0.1), torch.float64),
        ((0, 5, 0.7), torch.bfloat16),
        ((1, 1, 1), None),
        ((0.9, 5.9, 1), torch.int64),
        ((2**40, 2**40 + 3, 1), None),
        ((0, 200, 50), torch.uint8),
        ((5, 0, -1), torch.float16),
    ],
)
def test_ranges(args: tuple[Any, ...], dtype: torch.dtype | None) -> None:
    check("arange.start_step", *args, dtype=dtype)


def test_range_overloads() -> None:
    check("arange", 7)
    check("arange", 3.5)
    check("arange", 4, dtype=torch.float32)
    check("arange.start", -2, 3)
    check("arange.start", 2**24 - 2.0, 2**24 + 6.0)


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 100])
def test_spacings(steps: int) -> None:
    check("linspace", -3.0, 5.0, steps)
    check("linspace", 693, 0, steps, dtype=torch.int64)
    check("linspace", -1.0, 1.0, steps, dtype=torch.float64)
    check("linspace", 0.0, 1.0, steps, dtype=torch.bfloat16, rtol=1e-2, atol=4e-3)
    check("linspace", 1 + 2j, -1 - 2j, steps, dtype=torch.complex64)
    check("logspace", 0, 3, steps)
    check("logspace", 0, 5, steps, 2.0, dtype=torch.int64)


@pytest.mark.parametrize("value", [True, 7, -2.5, 1 + 2j])
def test_fill_values_decide_the_dtype(value: Any) -> None:
    check("full", [2, 3], value)
    check("scalar_tensor", value, dtype=torch.complex64)
    check("full_like", torch.ones(2, dtype=torch.complex64), value)
    check("new_full", torch.ones(2, dtype=torch.complex64), [3], value)


def test_fills_keep_the_dtype_of_their_target() -> None:
    for dtype in (torch.int8, torch.bfloat16, torch.bool):
        target = torch.ones(2, 2).to(dtype)
        check("fill.Scalar", target, 3)
        check("fill.Tensor", target, torch.tensor(1.0))
        check("zero", target)
        check("zeros_like", target, dtype=torch.float64)
    check("new_ones", torch.ones(1, dtype=torch.int16), [0, 2])


def test_identities_and_triangles() -> None:
    check("eye", 3)
    check("eye.m", 2, 4, dtype=torch.bool)
    check("eye.m", 0, 2)
    for offset in (-2, 0, 3):
        check("tril_indices", 3, 4, offset)
        check("triu_indices", 4, 2, offset, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [None, torch.float64, torch.bfloat16])
def test_kaiser_window(dtype: torch.dtype | None) -> None:
    for length in (0, 1, 2, 7):
        for arguments in ((), (False,), (True, 3.5)):
            found, expected = (torch.kaiser_window(length, *arguments, dtype=dtype, device=device).cpu() for device in ("tpu", "cpu"))
            torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="floating"):
        torch.kaiser_window(3, dtype=torch.int64, device="tpu")
