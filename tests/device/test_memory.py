"""The books of memory, and the refusal before anything is allocated beyond the limit."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device

MB = 1_000_000


@pytest.fixture
def base() -> int:
    """What is allocated before the test."""
    gc.collect()
    return torch.tpu.memory_allocated()  # type: ignore[attr-defined, no-any-return]


def held(base: int) -> int:
    return torch.tpu.memory_allocated() - base  # type: ignore[attr-defined, no-any-return]


def test_bytes_live_as_long_as_a_storage_does(base: int) -> None:
    x = torch.ones(1000, 1000, device="tpu")
    assert held(base) == 4 * MB
    view = x[1:].t()
    del x
    assert held(base) == 4 * MB
    del view
    assert held(base) == 0
    x = torch.empty(1000, 1000, device="tpu")
    assert held(base) == 4 * MB, "empty memory counts too"
    x.resize_(10)
    x.untyped_storage().resize_(40)
    assert held(base) == 40
    x.data = torch.zeros(2, device="tpu")
    assert held(base) == 8


def test_the_peak(base: int) -> None:
    x = torch.ones(1000, 1000, device="tpu")
    torch.tpu.reset_peak_memory_stats()  # type: ignore[attr-defined]
    assert torch.tpu.max_memory_allocated() - base == 4 * MB  # type: ignore[attr-defined]
    (x + 1).sum()
    x.add_(1)
    assert torch.tpu.max_memory_allocated() - base == pytest.approx(8 * MB, abs=8) and held(base) == 4 * MB  # type: ignore[attr-defined]


def test_frees_in_reference_cycles_count(base: int) -> None:
    cycle: list[Any] = [torch.ones(1000, 1000, device="tpu")]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert held(base) == 0


def test_graphs_give_their_memory_back(base: int) -> None:
    x = torch.ones(500, 500, device="tpu", requires_grad=True)
    for _ in range(3):
        (x * x).exp().sum().backward()
        x.grad = None
    assert held(base) == MB


def test_neither_first_calls_nor_errors_keep_their_operands(base: int) -> None:
    x = torch.ones(500, 500, device="tpu")
    gc.disable()
    try:
        for use in (torch.erfc, lambda t: t.cumsum(0), lambda t: torch.logdet(t[:3, :3]), lambda t: t[t > 3], lambda t: torch.add(t, 1, out=t)):
            use(x + 1)
            assert held(base) == MB
        for _ in range(2):
            with pytest.raises(RuntimeError):
                (x + 1) @ x[:3]
            assert held(base) == MB
    finally:
        gc.enable()


def test_all_the_ways_to_ask(base: int) -> None:
    x = torch.ones(1000, 1000, device="tpu")
    used = base + x.untyped_storage().nbytes()
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_reserved() == used  # type: ignore[attr-defined]
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == used and stats["allocated_bytes.all.peak"] == torch.accelerator.max_memory_allocated() >= used
    free, total = torch.tpu.mem_get_info()  # type: ignore[attr-defined]
    assert free == total - used and total == torch.tpu.get_memory_limit() and (free, total) == torch.accelerator.get_memory_info()  # type: ignore[attr-defined]
    summary = torch.tpu.memory_summary()  # type: ignore[attr-defined]
    assert "test_memory.py" in summary and "4 MB" in summary
    torch.tpu.empty_cache()  # type: ignore[attr-defined]
    torch.accelerator.empty_cache()


@pytest.fixture
def room(base: int) -> Iterator[torch.Tensor]:
    """A tensor of 4 MB, and room for 6 MB more."""
    before = torch.tpu.get_memory_limit()  # type: ignore[attr-defined]
    kept = torch.ones(1000, 1000, device="tpu")
    torch.tpu.set_memory_limit(base + 10 * MB)  # type: ignore[attr-defined]
    yield kept
    torch.tpu.set_memory_limit(before)  # type: ignore[attr-defined]


TOO_MUCH: dict[str, Callable[[torch.Tensor], Any]] = {
    "factory": lambda x: torch.ones(1000, 2000, device="tpu"),
    "empty": lambda x: torch.empty(1000, 2000, device="tpu"),
    "elementwise": lambda x: [x + i for i in range(3)],
    "cat": lambda x: torch.cat([x, x]),
    "transfer": lambda x: torch.ones(1000, 2000).to("tpu"),
    "resize": lambda x: torch.empty(0, device="tpu").resize_(2000, 1000),
    "product": lambda x: torch.mm(x[:, :1].expand(1000, 2), torch.ones(2, 3000, device="tpu")),
    "contiguous": lambda x: x[:1].expand(5000, 1000).contiguous(),
    "foreach": lambda x: torch._foreach_add([x, x, x], 1),
    "storage": lambda x: x.untyped_storage().resize_(20 * MB),
    "backward": lambda x: (x.requires_grad_() * 2).exp().sum().backward(),
    "compiled": lambda x: torch.compile(lambda t: (t.sin(), t.cos()), backend="tpu")(x),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_does_not_fit_is_refused_before_it_is_allocated(name: str, room: torch.Tensor) -> None:
    with pytest.raises(torch.OutOfMemoryError) as caught:
        TOO_MUCH[name](room)
    text = str(caught.value)
    assert "tpu out of memory" in text and "test_memory.py:" in text and "torch.tpu.set_memory_limit" in text
    del caught
    gc.collect()
    assert torch.tpu.memory_allocated() <= torch.tpu.get_memory_limit()  # type: ignore[attr-defined]
    assert (room.detach()[0] + 1).sum().item() == 2000, "the device works on"


def test_limits_that_are_none_are_refused() -> None:
    for bad in (0, -1, "8GB", 1.5):
        with pytest.raises(ValueError, match="memory limit"):
            torch.tpu.set_memory_limit(bad)  # type: ignore[attr-defined]
