"""Operators over lists of tensors give the CPU's values on their quick way too: the second and later calls of a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tpu_lab.device import list_kernels, program_cache, state
from tpu_lab.device.plan import plan_for

aten = torch.ops.aten


def assert_both(call: Callable[..., Any], *tensors: list[Tensor], times: int = 3) -> None:
    """Runs `call(*lists)` on copies on the CPU and on the device, several times in a row; compares results and lists."""
    cpu = [[t.clone() for t in one] for one in tensors]
    tpu = [[t.to("tpu") for t in one] for one in tensors]
    for _ in range(times):
        expected, found = call(*cpu), call(*tpu)
        torch.testing.assert_close(_host(found), expected)
        torch.testing.assert_close(_host(tpu), cpu)


def _host(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.cpu()
    return type(value)(_host(v) for v in value) if isinstance(value, (list, tuple)) else value


def some(count: int, *size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(count)
    return [torch.rand(*size, generator=generator) + 0.5 for _ in range(count)]


@pytest.mark.parametrize("op", [aten.cat.default, aten.stack.default, aten._foreach_sqrt.default, aten._foreach_add_.List, aten._foreach_mul_.Scalar])
def test_these_are_quick(op: Any) -> None:
    assert list_kernels.can_be_quick(plan_for(op))


@pytest.mark.parametrize("op", [aten.add.Tensor, aten.cat.out, aten._fused_adamw_.default, aten._foreach_copy.out])
def test_these_are_not(op: Any) -> None:
    assert not list_kernels.can_be_quick(plan_for(op))


def test_results() -> None:
    assert_both(lambda x: torch.cat(x), some(3, 2, 3))
    assert_both(lambda x: torch.cat(x, 1), some(3, 2, 3))
    assert_both(lambda x: torch.stack(x, -1), some(4, 2))
    assert_both(lambda x: torch._foreach_sqrt(x), some(5, 3))
    assert_both(lambda x: torch.cat([x[0], x[1].double(), x[2].int()]), some(3, 2))
    assert_both(lambda x: torch.cat([x[0].t(), x[1]]), some(2, 3, 3))


def test_in_place() -> None:
    assert_both(lambda x, y: torch._foreach_add_(x, y), some(5, 3), some(5, 3))
    assert_both(lambda x, y: torch._foreach_addcdiv_(x, y, [t + 1 for t in y], [0.5, 1, 2, 1.5, -1.0]), some(5, 3), some(5, 3))
    assert_both(lambda x, y: torch._foreach_lerp_(x, y, 0.25), some(5, 3), some(5, 3))


def test_numbers_are_arguments_of_one_program() -> None:
    for alpha in (2.5, -0.5, 1, 1.0, 3, 4):
        assert_both(lambda x, y, alpha=alpha: torch._foreach_add_(x, y, alpha=alpha), some(2, 3), some(2, 3))
    tensors = [t.to("tpu") for t in some(2, 3)]
    torch._foreach_mul_(tensors, 0.5)
    torch._foreach_mul_(tensors, 0.25)
    before = program_cache.compilations
    torch._foreach_mul_(tensors, 0.125)
    assert program_cache.compilations == before


def test_a_moving_offset_is_an_argument() -> None:
    flat = torch.arange(40.0)
    device = flat.to("tpu")
    for start in (0, 3, 7, 11, 3):
        expected = torch.cat([flat[start : start + 4], flat[:4] * 2])
        assert torch.equal(torch.cat([device[start : start + 4], device[:4] * 2]).cpu(), expected)


def test_aliases() -> None:
    x = torch.arange(6.0).to("tpu")
    for _ in range(3):
        assert torch.equal(torch.cat([x, x]).cpu(), torch.arange(6.0).repeat(2))
        assert torch.equal(torch.cat([x[:2], x[4:]]).cpu(), torch.tensor([0.0, 1, 4, 5]))


def test_in_place_with_aliases() -> None:
    assert_both(lambda x, y: torch._foreach_addcmul_(x, y, y, value=0.5), some(3, 4), some(3, 4))
    assert_both(lambda x, y: torch._foreach_addcmul_(x, y, [y[1], y[0], y[2]], value=0.5), some(3, 4), some(3, 4))
    assert_both(lambda x: torch._foreach_add_(x, x), some(3, 4))
    assert_both(lambda x, y: torch._foreach_add_(x, [y[0], y[0], x[2]], alpha=2), some(3, 4), some(3, 4))


def test_which_tensor_comes_again_belongs_to_the_program() -> None:
    a, b, c = (t.to("tpu") for t in some(3, 2))
    for _ in range(2):
        for order in ([a, b, a], [a, b, b], [a, b, c], [a, a, b], [a[:1], b, a[1:]]):
            assert torch.equal(torch.cat(order).cpu(), torch.cat([t.cpu() for t in order]))


def test_parameters_in_one_flat_buffer() -> None:
    def step(flat: list[Tensor], gradients: list[Tensor]) -> None:
        views = [flat[0][:4], flat[0][4:10].view(2, 3)]
        torch._foreach_add_(views, [gradients[0][:4], gradients[0][4:10].view(2, 3)], alpha=-0.1)

    assert_both(step, some(1, 10), some(1, 10))


def test_a_snapshot_is_kept() -> None:
    tensors = [t.to("tpu") for t in some(3, 4)]
    for _ in range(2):
        torch._foreach_mul_(tensors, 2.0)
    before = _host(tensors)
    journal = state.snapshot()
    torch._foreach_mul_(tensors, 2.0)
    torch.testing.assert_close(_host(tensors), [t * 2 for t in before])
    state.restore(journal)
    torch.testing.assert_close(_host(tensors), before)
    torch._foreach_mul_(tensors, 2.0)
    state.restore(journal)
    state.release(journal)
    torch.testing.assert_close(_host(tensors), before)


def test_a_tensor_of_the_cpu_is_refused() -> None:
    x = torch.ones(2).to("tpu")
    for _ in range(2):
        torch.cat([x, x + 1])
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([x, torch.ones(2)])


def test_memory_never_written_reads_as_zeros() -> None:
    for _ in range(3):
        assert torch.equal(torch.cat([torch.empty(2, device="tpu"), torch.ones(1).to("tpu")]).cpu(), torch.tensor([0.0, 0.0, 1.0]))
