"""Dtypes an operator is not for: the device refuses them with the exception of torch on the CPU, and takes all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .against_cpu import assert_error

REFUSED: list[Callable[[str], Any]] = [
    lambda d: F.gelu(torch.ones(3, dtype=torch.int64, device=d)),
    lambda d: torch.ones(3, dtype=torch.int64, device=d).softmax(0),
    lambda d: torch.ones(3, dtype=torch.bool, device=d).abs(),
    lambda d: torch.ones(3, dtype=torch.bool, device=d).median(),
    lambda d: torch.ones(2, 2, dtype=torch.bool, device=d) @ torch.ones(2, 2, dtype=torch.bool, device=d),
    lambda d: torch.ones(3, dtype=torch.uint8, device=d).var(),
    lambda d: F.elu(torch.ones(3, dtype=torch.int32, device=d)),
    lambda d: torch.ones(3, dtype=torch.complex64, device=d).sort(),
    lambda d: torch.ones(3, dtype=torch.complex64, device=d) < 2,
    lambda d: torch.ones(3, dtype=torch.complex64, device=d).clamp(0, 1),
    lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
    lambda d: torch.ones(3, device=d) << 1,
    lambda d: torch.ones(3, dtype=torch.bool, device=d) - torch.ones(3, device=d).bool(),
    lambda d: torch.ones(3, dtype=torch.int64, device=d).addcdiv(torch.ones(3, device=d).long(), torch.ones(3, device=d).long()),
    lambda d: F.cross_entropy(torch.ones(2, 3, device=d), torch.zeros(2, dtype=torch.int32, device=d)),
    lambda d: F.layer_norm(torch.ones(2, 3, device=d), (3,), torch.ones(3, dtype=torch.float64, device=d)),
    lambda d: torch.ones(3, device=d)[torch.ones(1, device=d)],
    lambda d: torch.ones(3, device=d)[torch.ones(1, dtype=torch.int16, device=d)],
    lambda d: torch.ones(3, 3, device=d).index_select(0, torch.zeros(1, 1, dtype=torch.int64, device=d)),
    lambda d: torch.ones(3, dtype=torch.uint8, device=d).__setitem__(0, 300),
    lambda d: torch.ones(3, device=d).__setitem__(0, 1j),
    lambda d: torch.linalg.cross(torch.ones(2, 3, device=d).long(), torch.ones(2, 3, device=d).long(), out=torch.ones(2, 3, device=d)),
    lambda d: torch.conj_physical(torch.ones(3, device=d).long(), out=torch.ones(3, device=d)),
    lambda d: torch.cummax(torch.ones(3, device=d).long(), 0, out=(torch.ones(3, device=d), torch.ones(3, device=d).long())),
]
TAKEN: list[Callable[[str], Any]] = [
    lambda d: F.gelu(torch.ones(3, dtype=torch.bfloat16, device=d)),
    lambda d: torch.ones(2, 2, dtype=torch.int64, device=d) @ torch.ones(2, 2, dtype=torch.int64, device=d),
    lambda d: torch.arange(3, dtype=torch.int32, device=d).sort(descending=True)[0],
    lambda d: torch.ones(3, dtype=torch.complex64, device=d).exp(),
    lambda d: torch.ones(3, dtype=torch.bool, device=d) + 1.5,
    lambda d: torch.arange(6.0, device=d).reshape(2, 3).topk(2)[0],
]


@pytest.mark.parametrize("call", REFUSED)
def test_refused_as_on_the_cpu(call: Callable[[str], Any]) -> None:
    with pytest.raises((RuntimeError, IndexError)) as on_cpu:
        call("cpu")
    with pytest.raises((RuntimeError, IndexError)) as on_tpu:
        call("tpu")
    assert type(on_tpu.value) is type(on_cpu.value)
    assert str(on_tpu.value).splitlines()[0] == str(on_cpu.value).splitlines()[0]


@pytest.mark.parametrize("call", TAKEN)
def test_taken_as_on_the_cpu(call: Callable[[str], Any]) -> None:
    torch.testing.assert_close(call("tpu").cpu(), call("cpu"))


def test_a_trial_draws_no_random_numbers() -> None:
    state = torch.default_generator.get_state()
    torch.bernoulli(torch.full((3, 5), 0.5, device="tpu"))
    assert torch.equal(torch.default_generator.get_state(), state)


def test_an_in_place_result_that_the_target_cannot_hold() -> None:
    assert_error(lambda device: torch.ones(3, dtype=torch.bool, device=device).mul_(0), RuntimeError, "can't be cast to the desired output type Bool")
    assert_error(lambda device: torch.ones(3, dtype=torch.int64, device=device).mul_(0.5), RuntimeError, "can't be cast")


@pytest.mark.parametrize("name", ["_foreach_ceil", "_foreach_sign", "_foreach_trunc"])
def test_lists_of_a_dtype_that_the_operator_does_not_take(name: str) -> None:
    assert_error(lambda device: getattr(torch, name)([torch.ones(3, dtype=torch.complex64, device=device)] * 2), RuntimeError)
    assert_error(lambda device: getattr(torch, name + "_")([torch.ones(3, dtype=torch.complex64, device=device)] * 2), RuntimeError)


def test_norms_of_whole_numbers() -> None:
    assert_error(lambda device: torch._foreach_norm([torch.ones(2, dtype=torch.int64, device=device)]), RuntimeError, "floating point or complex")
