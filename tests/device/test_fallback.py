"""Operators without a lowering: a decomposition as one program, else the CPU, with everything written back; or an error, by policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tpu_lab.device import events

from .against_cpu import assert_agree
from .test_models import Fallbacks


@pytest.fixture(scope="module")
def mine() -> Iterator[Any]:
    """Operators of a user's own, with CPU kernels only."""
    library = torch.library.Library("tpu_lab_test", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.define("count_(Tensor(a!) x, Tensor y) -> Tensor(a!)")
    library.define("both(Tensor x, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("count_", lambda x, y: x.add_(y.sum()), "CPU")

    def both(x: torch.Tensor, *, low: torch.Tensor, high: torch.Tensor) -> Any:
        low.copy_(x.min())
        high.resize_(2).copy_(x.max())
        return low, high

    library.impl("both", both, "CPU")
    yield torch.ops.tpu_lab_test
    library._destroy()


def test_results_come_back_and_are_recorded(mine: Any) -> None:
    seen = Fallbacks()
    with events.observe(seen):
        assert_agree(lambda device: mine.twice(torch.arange(6.0, device=device).reshape(2, 3).t()))
    assert len(seen.names) == 1 and seen.names[0].startswith("tpu_lab_test.twice.default: ")


def test_what_is_written_is_written_back_through_views_and_aliases(mine: Any) -> None:
    def write(device: str) -> Any:
        x = torch.arange(6.0, device=device)
        given = mine.count_(x[1::2], x)
        low, high = torch.zeros(2, device=device), torch.zeros(0, device=device)
        mine.both(x, low=low[1:], high=high)
        conjugate = torch.tensor([1 + 2j], device=device)
        mine.count_(conjugate.conj(), torch.tensor([1j], device=device))
        return x, given, low, high, conjugate, given.storage_offset()

    assert_agree(write)


def test_the_policy_error_makes_an_exception_of_it(mine: Any) -> None:
    torch.tpu.cpu_fallback = "error"  # type: ignore[attr-defined]
    try:
        with pytest.raises(NotImplementedError, match=r"tpu_lab_test\.twice\.default has no lowering .*torch\.tpu\.cpu_fallback = 'allow'"):
            mine.twice(torch.ones(2, device="tpu"))
        assert torch.logdet(torch.eye(2, device="tpu") * 2).item() > 1, "a decomposition is no fallback"
    finally:
        torch.tpu.cpu_fallback = "allow"  # type: ignore[attr-defined]


def test_decomposed_operators_run_as_one_program_without_a_fallback() -> None:
    seen = Fallbacks()
    with events.observe(seen):
        assert_agree(lambda device: torch.logdet(torch.tensor([[2.0, 1], [1, 3]], device=device)), rtol=1e-5, atol=1e-6)
        assert_agree(lambda device: torch.special.zeta(torch.tensor([2.0, 3], device=device), 2.0), rtol=1e-5, atol=1e-6)
    assert seen.names == []
