"""`out=` and in-place forms: any view as the target, casts, resizes, several targets."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from .against_cpu import assert_agree, assert_error, geometry


def test_out_into_views() -> None:
    def write(device: str) -> Any:
        a = torch.zeros(4, 4, device=device)
        torch.add(torch.ones(2, 4, device=device), 1, out=a[::2])
        torch.mul(torch.ones(4, 2, device=device), 3, out=a[:, 1::2])
        b = torch.zeros(3, 2, device=device)
        given = torch.mm(torch.ones(2, 4, device=device), torch.ones(4, 3, device=device), out=b.t())
        c = torch.zeros(10, device=device)
        torch.sum(torch.ones(2, 3, device=device), 1, out=c[4:6])
        torch.exp(c[4:6], out=c[8:])
        return a, b, geometry(given), c, a._version, b._version

    assert_agree(write)


def test_out_casts_and_refuses_to() -> None:
    def write(device: str) -> Any:
        wide = torch.zeros(3, dtype=torch.float64, device=device)
        torch.add(torch.ones(3, device=device), 1, out=wide)
        flags = torch.zeros(3, dtype=torch.uint8, device=device)
        torch.gt(wide, 1, out=flags)
        return wide, flags

    assert_agree(write)
    assert_error(
        lambda device: torch.add(torch.ones(3, device=device), 1, out=torch.zeros(3, dtype=torch.int32, device=device)),
        RuntimeError,
        "result type Float can't be cast to the desired output type Int",
    )


def test_out_resizes_an_empty_target_quietly_and_others_with_a_warning() -> None:
    def write(device: str) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            empty = torch.zeros(0, device=device)
            torch.add(torch.ones(3, 4, device=device), 1, out=empty)
            quiet = len(caught)
            other = torch.zeros(7, device=device)
            torch.add(torch.ones(3, 4, device=device), 1, out=other)
        return empty, geometry(empty), other, geometry(other), quiet, len(caught), "was resized" in str(caught[0].message)

    assert_agree(write)


def test_out_of_factories_takes_the_targets_dtype() -> None:
    def write(device: str) -> Any:
        found = [torch.empty(5, device=device), torch.empty(5, dtype=torch.int64, device=device), torch.empty(5, dtype=torch.float64, device=device)]
        torch.linspace(0, 2, 5, out=found[0])
        torch.arange(5, out=found[1])
        torch.logspace(0, 1, 5, out=found[2])
        found += [torch.zeros(2, 2, device=device), torch.ones(2, dtype=torch.int32, device=device)]
        torch.eye(2, out=found[3])
        torch.zeros(2, out=found[4])
        return found

    assert_agree(write)


def test_several_targets() -> None:
    def write(device: str) -> Any:
        values, places = torch.zeros(3, device=device), torch.zeros(3, dtype=torch.long, device=device)
        given = torch.max(torch.arange(12.0, device=device).reshape(3, 4), 1, out=(values, places))
        sorted_, order = torch.empty(0, device=device), torch.empty(0, dtype=torch.long, device=device)
        torch.sort(torch.tensor([3.0, 1, 2], device=device), out=(sorted_, order))
        return values, places, given.values is values, sorted_, order

    assert_agree(write)


def test_in_place_keeps_the_dtype_or_refuses() -> None:
    assert_agree(lambda device: torch.ones(3, dtype=torch.float16, device=device).add_(torch.ones(3, dtype=torch.float64, device=device)))
    assert_error(lambda device: torch.ones(3, dtype=torch.int64, device=device).add_(1.5), RuntimeError)
    assert_error(lambda device: torch.ones(3, device=device).add_(torch.ones(2, 3, device=device)), RuntimeError)


def test_in_place_returns_its_object_and_counts_versions() -> None:
    def write(device: str) -> Any:
        a = torch.zeros(4, device=device)
        same = [a.add_(1) is a, a.clamp_(0, 1) is a, torch.add(a, 1, out=a) is a, a.copy_(a) is a, a.zero_() is a]
        a[0] = 3
        return same, a._version

    assert_agree(write)


def test_out_that_needs_a_gradient_is_refused() -> None:
    assert_error(
        lambda device: torch.add(torch.ones(2, device=device), 1, out=torch.zeros(2, device=device, requires_grad=True)),
        RuntimeError,
        "don't support automatic differentiation",
    )


def test_masked_and_indexed_assignment() -> None:
    def write(device: str) -> Any:
        a = torch.zeros(4, 5, device=device)
        a[0] = 1
        a[:, 1] = torch.arange(4.0, device=device)
        a[1:3, 2:4] = torch.tensor(7.0)
        a[a == 7] = 3
        a[torch.tensor([0, 3], device=device), torch.tensor([4, 4], device=device)] = 9
        a[-1, ::2] = torch.tensor([1.0, 2, 3], device=device)
        a[[1, 2]] = a[[2, 1]]
        a[torch.tensor([True, False, False, True], device=device)] = 0.5
        a[2] = torch.arange(5)
        a[torch.tensor([0, 3])] += 1
        a[:, torch.tensor([0, 1], device=device)] *= 2
        a[1, 1] = torch.tensor(8, device=device)
        return a

    assert_agree(write)


def test_out_decides_the_dtype_of_a_running_sum() -> None:
    def write(device: str) -> Any:
        x = torch.tensor([1.5, 2.5, 3.0], device=device)
        return [
            function(x, 0, out=torch.zeros(shape, dtype=torch.int64, device=device))
            for function, shape in ((torch.cumsum, 3), (torch.cumprod, 3), (torch.sum, ()), (torch.prod, ()))
        ]

    assert_agree(write)


def test_out_that_is_resized_gets_the_strides_of_the_cpu() -> None:
    def strides(device: str) -> Any:
        x = (torch.arange(9.0, device=device).reshape(3, 3) + torch.eye(3, device=device) * 9).t()
        targets = [torch.empty(0, device=device) for _ in range(3)]
        torch.add(x, 1, out=targets[0])
        torch.linalg.inv(x, out=targets[1])
        torch.exp(x[:, :2], out=targets[2])
        kept = torch.empty(3, device=device)[::2].resize_(2)
        return [t.stride() for t in (*targets, kept)], targets

    assert_agree(strides)


def test_out_of_the_wrong_dtype() -> None:
    def x(device: str) -> torch.Tensor:
        return torch.arange(4, device=device)

    assert_error(lambda d: torch.isin(x(d), x(d), out=torch.zeros(4, device=d)), RuntimeError)
    assert_error(lambda d: torch.multinomial(x(d).float(), 2, out=torch.zeros(2, device=d)), RuntimeError)
    assert_error(lambda d: torch.nonzero(x(d), out=torch.zeros(3, 1, device=d)), RuntimeError)
    assert_error(lambda d: torch.cat([x(d).float(), x(d).float()], out=torch.zeros(8, dtype=torch.int64, device=d)), TypeError)


def test_out_beside_what_an_operator_updates() -> None:
    def normalize(device: str) -> Any:
        x = torch.arange(12.0, device=device).reshape(2, 3, 2)
        running = torch.zeros(3, device=device), torch.ones(3, device=device)
        out = [torch.empty(0, device=device), torch.empty(3, device=device), torch.empty(3, device=device)]
        torch.native_batch_norm(x, None, None, *running, True, 0.5, 0.1, out=tuple(out))
        return out, running

    assert_agree(normalize)


def test_copies_that_read_the_storage() -> None:
    def read(device: str) -> Any:
        x = torch.arange(12.0, device=device).reshape(3, 4)[:, 1::2]
        return (
            torch.as_strided_copy(x, (3, 2), (2, 1)),
            torch.as_strided_copy(x, (2,), (3,), 2),
            torch.as_strided_scatter(x, torch.full((2,), -1.0, device=device), (2,), (4,)),
            torch.as_strided_scatter(x, torch.full((2,), -1.0, device=device), (2,), (4,), 3),
        )

    assert_agree(read)
