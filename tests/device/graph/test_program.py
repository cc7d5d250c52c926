"""Compiled functions and the memory of their tensors: aliases among outputs, writes to inputs, numbers among outputs. Goldens: eager, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tpu_lab.device.fastpath import quick_kernels
from tpu_lab.device.plan import plan_for


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def assert_same(function: Callable[[Any, str], Any], target: Callable[..., Any], dynamic: bool | None = None) -> None:
    """`function` uses a callable on the tensors of a device; compiled there it has to give what the plain one gives on the CPU."""
    expected = function(target, "cpu")
    torch.testing.assert_close(function(torch.compile(target, backend="tpu", dynamic=dynamic), "tpu"), expected, check_device=False)


def test_outputs_that_are_views_of_one_another_share_memory() -> None:
    def target(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y[0], y.t(), y + 1

    def use(f: Any, device: str) -> list[torch.Tensor]:
        y, row, turned, other = f(torch.ones(2, 3, device=device))
        row.add_(1)
        turned[2].mul_(10)
        return [y, row, turned, other]

    assert_same(use, target)


def test_views_among_outputs_share_memory_with_sizes_that_change() -> None:
    def target(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y[0], y.t(), y[1:, :2], y + 1

    def use(f: Any, device: str) -> list[Any]:
        found: list[Any] = []
        for size in (2, 5, 3):
            y, row, turned, part, other = f(torch.arange(size * 3.0, device=device).view(size, 3))
            row.add_(1)
            turned[2].mul_(10)
            part.sub_(7)
            found += [y, row, turned, part, other, [t.stride() for t in (y, row, turned, part, other)]]
        return found

    assert_same(use, target, dynamic=True)


def test_results_keep_their_memory_layout_with_sizes_that_change() -> None:
    def use(f: Any, device: str) -> list[Any]:
        results = [f(torch.ones(size, 4, device=device)) for size in (3, 5)]
        return [*results, [r.stride() for r in results]]

    assert_same(use, lambda x: x.t().contiguous().t() * 2, dynamic=True)


def test_views_of_a_tensor_that_is_no_output_share_memory() -> None:
    def use(f: Any, device: str) -> list[torch.Tensor]:
        parts = f(torch.arange(6.0, device=device))
        parts[0][:, 1].zero_()
        return list(parts)

    assert_same(use, lambda x: (x + 1).view(2, 3).split(2, 1))


def test_an_input_shifted_within_itself() -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        x[1:] = x[:-1].clone()
        return x.sum()

    def use(f: Any, device: str) -> list[torch.Tensor]:
        x = torch.arange(4.0, device=device)
        return [f(x), x]

    assert_same(use, target)


def test_inputs_that_overlap_and_one_is_written() -> None:
    def target(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * y

    def use(f: Any, device: str) -> list[torch.Tensor]:
        x = torch.ones(4, device=device)
        return [f(x[:3], x[1:]), f(x[:2], x[2:]), x]

    assert_same(use, target)


def test_a_size_among_the_outputs_stays_a_number() -> None:
    def target(x: torch.Tensor) -> Any:
        y = x[x > 0]
        return y.sum(), y.shape[0]

    def use(f: Any, device: str) -> list[Any]:
        results = [f(torch.tensor(values, device=device)) for values in ([1.0, -1, 2], [1.0, 1, 2], [-1.0, -1, 2])]
        assert all(type(size) is int for _, size in results)
        return [list(r) for r in results]

    assert_same(use, target)


def test_dynamo_keeps_out_of_quick_kernels() -> None:
    """It skips files by their place: a kernel written at run time has to seem to lie in the package."""
    kernel, _ = quick_kernels(plan_for(torch.ops.aten.mm.default))
    skipped = torch._dynamo.trace_rules.check_file(kernel.__code__.co_filename)
    assert skipped.skipped, skipped.reason


ASSERTING = """
def target(x):
    torch._assert_async(x.sum() > 0, "the sum must be positive")
    assert x.amax() < 100, "too large"
    return x * 2
"""
"""As text: pytest rewrites the assertions of test files, and Dynamo would not know them again."""


def test_assertions_about_values_hold_in_a_compiled_function() -> None:
    scope: dict[str, Any] = {"torch": torch}
    exec(ASSERTING, scope)
    compiled = torch.compile(scope["target"], backend="tpu", fullgraph=True)
    x = torch.ones(3, device="tpu")
    torch.testing.assert_close(compiled(x).cpu(), torch.full((3,), 2.0))
    for wrong, message in ((-x, "the sum must be positive"), (x * 200, "too large")):
        with pytest.raises(RuntimeError, match=message):
            compiled(wrong).cpu()
    torch.testing.assert_close(compiled(x).cpu(), torch.full((3,), 2.0))
