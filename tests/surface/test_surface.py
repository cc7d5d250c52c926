"""The committed table of names is current, and nothing that integrations call is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surface.table import facts, is_here, render

PAGE = Path(__file__).parents[2] / "docs" / "surface.md"
LATER = ("torch.tpu.compiler.", "torch.tpu.distributed.", "torch.tpu.ops.", "torch.tpu.optimizers.", "torch.tpu.pallas.", "torch.tpu.profiler.")
"""Whole features of torch_tpu that have no counterpart here yet."""


def test_page_is_current() -> None:
    assert PAGE.read_text() == render(), "run `make surface`"


def test_lookup_tells_present_from_absent() -> None:
    assert is_here("torch.nn.Module.to")
    assert not is_here("torch.nn.Module.no_such_name.deeper")


NEEDED = [entry["name"] for entry in facts()["names"] if entry["torch_tpu"] in ("yes", "raises") and not entry["name"].startswith(LATER)]


@pytest.mark.parametrize(
    "name",
    [
        *NEEDED,
        *(
            f"torch.tpu.{name}"
            for name in ("memory_allocated", "max_memory_allocated", "empty_cache", "mem_get_info", "is_bf16_supported", "memory_stats")
        ),
    ],
)
def test_name_is_here(name: str) -> None:
    assert is_here(name)
