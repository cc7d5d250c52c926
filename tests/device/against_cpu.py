"""Runs the same function on the CPU and on the device; the CPU's result is the golden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device


def assert_agree(function: Callable[[str], Any], rtol: float | None = None, atol: float | None = None) -> Any:
    """`function(device)` gives the same values, shapes and dtypes on both devices. Returns the device's."""
    torch.manual_seed(0)
    expected = function("cpu")
    torch.manual_seed(0)
    actual = function("tpu")
    _compare(actual, expected, "result", rtol, atol)
    return actual


def assert_error(function: Callable[[str], Any], kind: type[BaseException], match: str | None = None) -> str:
    """`function(device)` raises `kind` on both devices, with a message that `match`es on both. Returns the device's message."""
    for device in ("cpu", "tpu"):
        with pytest.raises(kind, match=match) as caught:
            function(device)
    return str(caught.value)


def geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Size, stride, offset and the storage's bytes."""
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.untyped_storage().nbytes()


def _compare(actual: Any, expected: Any, where: str, rtol: float | None, atol: float | None) -> None:
    if isinstance(expected, torch.Tensor):
        assert isinstance(actual, torch.Tensor), f"{where}: {actual!r} is no tensor"
        assert actual.dtype == expected.dtype and actual.shape == expected.shape, f"{where}: {actual.dtype}{list(actual.shape)}"
        torch.testing.assert_close(
            actual.detach().cpu(), expected.detach(), rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{where}: {text}"
        )
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys(), where
        for key in expected:
            _compare(actual[key], expected[key], f"{where}[{key!r}]", rtol, atol)
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), where
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            _compare(*pair, f"{where}[{i}]", rtol, atol)
    else:
        assert actual == expected or (actual != actual and expected != expected), f"{where}: {actual!r}, on the CPU {expected!r}"
