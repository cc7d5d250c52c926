"""Dtypes: promotion, casts, exact 64-bit numbers, wrapping, NaN rules."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .against_cpu import assert_agree, assert_error

ALL = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_casts_from_every_dtype(dtype: torch.dtype) -> None:
    numbers = torch.tensor([[0.0, 1.0, 2.7], [100.4, 3.0, 255.0]])
    if dtype not in (torch.bool, torch.uint8):
        numbers[0] *= -1

    def cast(device: str) -> Any:
        x = numbers.to(dtype).to(device)
        targets = [d for d in ALL if d != torch.uint8 or not (dtype.is_floating_point or dtype.is_complex)]  # negative to uint8 is undefined in C
        into = torch.zeros(4, 6, dtype=torch.float64, device=device)
        into[::2, 1::2].copy_(x.real if dtype.is_complex else x)
        return [x.to(target) for target in targets], into

    assert_agree(cast)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_promotion_of_tensors_0_dim_tensors_and_numbers(dtype: torch.dtype) -> None:
    def promote(device: str) -> Any:
        x = torch.ones(2, dtype=dtype, device=device)
        others = [
            d for d in (torch.uint8, torch.int64, torch.bfloat16, torch.float64, torch.complex64) if not (d.is_complex and dtype is torch.float16)
        ]
        return [
            [(x * torch.ones(1, dtype=d, device=device)).dtype for d in others],
            [(x * torch.ones((), dtype=d, device=device)).dtype for d in others],
            [(x * torch.ones((), dtype=d)).dtype for d in others],
            [(x * n).dtype for n in (True, 2, 2.5)],
            [(x.new_ones(()) * n).dtype for n in (True, 2, 2.5)],
        ]

    assert_agree(promote)


def test_64_bit_integers_are_exact() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([2**62, 2**53 + 1, -(2**63)], device=device)
        return a + 1, a * 3, a // 7, a % 1000, a.sum(), a.max(), a.double(), a > 2**53, a.tolist(), a[1].item()

    assert_agree(compute)


def test_64_bit_floats_are_exact() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([1e300, 1 + 2**-50], dtype=torch.float64, device=device)
        return a * 2, a.sqrt(), a.sum(), a.log(), a.mean(), a @ a, a - 1, a.tolist(), a[1].item(), a.clone().mul_(1 + 2**-52)

    assert_agree(compute, rtol=1e-15, atol=0)


def test_integers_wrap() -> None:
    def compute(device: str) -> Any:
        byte = torch.tensor([255], dtype=torch.uint8, device=device)
        big = torch.tensor([2**31 - 1], dtype=torch.int32, device=device)
        return big + 1, big * 2, byte + 1, byte * byte, -byte, torch.tensor([-128], dtype=torch.int8, device=device).abs(), byte + 300

    assert_agree(compute)


def test_divisions() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([7, -7, 0], device=device)
        return a / 2, a // 2, a % 3, a / 0, torch.div(a, 2, rounding_mode="trunc"), torch.fmod(a, 3), torch.remainder(a, -3), a.float() // -2.5

    assert_agree(compute)


def test_nan() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([1.0, float("nan"), -2.0, float("inf")], device=device)
        zero = torch.zeros(4, device=device)
        return [
            [a.max(), a.min(), a.argmax(), a.sum(), a.nansum(), a.median(), a.nanmedian(), torch.fmax(a, zero), torch.maximum(a, zero)],
            [a.sort(), a.topk(2), a.clamp(0, 1), a.relu(), a.isnan(), a != a, a.sign(), torch.nan_to_num(a), a.round(), a > 0],
        ]

    assert_agree(compute)


def test_numbers_of_0_dim_cpu_tensors() -> None:
    def compute(device: str) -> Any:
        a = torch.arange(5.0, device=device)
        two = torch.tensor(2, dtype=torch.float64)
        mixed = [a * two, two * a, a + torch.tensor(1), torch.where(a > 2, a, torch.tensor(0.0)), torch.add(a, two, alpha=2), torch.pow(a, two)]
        return mixed, a.masked_fill(a > 2, torch.tensor(9)), a.div_(two), a.fill_(torch.tensor(3)), a.lerp(a, torch.tensor(0.5))

    assert_agree(compute)


def test_tensors_of_two_devices_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2, device="tpu") + torch.ones(2)


def test_dtypes_the_device_does_not_have_are_named() -> None:
    for make in (lambda: torch.ones(3, dtype=torch.complex32, device="tpu"), lambda: torch.empty(3, dtype=torch.complex32, device="tpu")):
        with pytest.raises(TypeError, match=r"complex32 does not exist on the device tpu; accepted are .*float64"):
            make()
    with pytest.raises(RuntimeError, match="complex32 does not exist"):
        torch.ones(3, dtype=torch.float16, device="tpu") * 1j


def test_the_default_dtype_counts() -> None:
    def compute(device: str) -> Any:
        before = torch.ones(2, dtype=torch.int64, device=device) / 2
        torch.set_default_dtype(torch.float64)
        try:
            after = torch.ones(2, dtype=torch.int64, device=device) / 2
            made = torch.zeros(2, device=device)
        finally:
            torch.set_default_dtype(torch.float32)
        return before.dtype, after.dtype, made.dtype, (torch.ones(2, dtype=torch.int64, device=device) / 2).dtype

    assert_agree(compute)


def test_comparisons_refuse_what_torch_refuses() -> None:
    assert_error(lambda device: torch.tensor([1j], device=device) < 1, RuntimeError)
    assert_error(lambda device: -torch.ones(2, dtype=torch.bool, device=device), RuntimeError, "Negation")
    assert_error(lambda device: torch.ones(2, dtype=torch.int64, device=device).mean(), RuntimeError, "could not infer output dtype")


@pytest.mark.parametrize("source", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("target", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_numbers_beyond_the_range_of_float8(source: torch.dtype, target: torch.dtype) -> None:
    values = torch.tensor([1000.0, -1e9, float("inf"), -float("inf"), float("nan"), 464, 480, -240, 57344, 61440, 0.3], dtype=source)
    assert_agree(lambda device: values.to(device).to(target).to(torch.float32))
