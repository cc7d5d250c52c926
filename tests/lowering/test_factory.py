"""Tensors made from numbers against CPU torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.direct import assert_same
from tests.lowering.replay import assert_opinfo

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
    checked = assert_opinfo(name, (torch.float32, torch.int64), only=SAMPLED[name], limit=3, grad=False)
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
    assert_same("arange.start_step", *args, dtype=dtype)


def test_range_overloads() -> None:
    assert_same("arange", 7)
    assert_same("arange", 3.5)
    assert_same("arange", 4, dtype=torch.float32)
    assert_same("arange.start", -2, 3)
    assert_same("arange.start", 2**24 - 2.0, 2**24 + 6.0)


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 100])
def test_spacings(steps: int) -> None:
    assert_same("linspace", -3.0, 5.0, steps)
    assert_same("linspace", 693, 0, steps, dtype=torch.int64)
    assert_same("linspace", -1.0, 1.0, steps, dtype=torch.float64)
    assert_same("linspace", 0.0, 1.0, steps, dtype=torch.bfloat16, rtol=1e-2, atol=4e-3)
    assert_same("linspace", 1 + 2j, -1 - 2j, steps, dtype=torch.complex64)
    assert_same("logspace", 0, 3, steps)
    assert_same("logspace", 0, 5, steps, 2.0, dtype=torch.int64)


@pytest.mark.parametrize("value", [True, 7, -2.5, 1 + 2j])
def test_fill_values_decide_the_dtype(value: Any) -> None:
    assert_same("full", [2, 3], value)
    assert_same("scalar_tensor", value, dtype=torch.complex64)
    assert_same("full_like", torch.ones(2, dtype=torch.complex64), value)
    assert_same("new_full", torch.ones(2, dtype=torch.complex64), [3], value)


def test_fills_keep_the_dtype_of_their_target() -> None:
    for dtype in (torch.int8, torch.bfloat16, torch.bool):
        target = torch.ones(2, 2).to(dtype)
        assert_same("fill.Scalar", target, 3)
        assert_same("fill.Tensor", target, torch.tensor(1.0))
        assert_same("zero", target)
        assert_same("zeros_like", target, dtype=torch.float64)
    assert_same("new_ones", torch.ones(1, dtype=torch.int16), [0, 2])


def test_identities_and_triangles() -> None:
    assert_same("eye", 3)
    assert_same("eye.m", 2, 4, dtype=torch.bool)
    assert_same("eye.m", 0, 2)
    for offset in (-2, 0, 3):
        assert_same("tril_indices", 3, 4, offset)
        assert_same("triu_indices", 4, 2, offset, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [None, torch.float64, torch.bfloat16])
def test_kaiser_window(dtype: torch.dtype | None) -> None:
    for length in (0, 1, 2, 7):
        for arguments in ((), (False,), (True, 3.5)):
            found, expected = (torch.kaiser_window(length, *arguments, dtype=dtype, device=device).cpu() for device in ("tpu", "cpu"))
            torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="floating"):
        torch.kaiser_window(3, dtype=torch.int64, device="tpu")
