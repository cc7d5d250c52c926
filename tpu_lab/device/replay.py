"""Random numbers of a CPU run drawn from the device's generator, so that both runs see the same ones (`%%tpu compare … cpu`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from ._torch_internals import TorchDispatchMode, pytree


class _DrawOnDevice(TorchDispatchMode):
    """Runs every random operator that would draw from the CPU's default generator on the device, and brings the result back."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None or _inside_data_loading():
            return func(*args, **kwargs)
        moved: list[tuple[torch.Tensor, torch.Tensor]] = []

        def out(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and value.device.type == "cpu":
                twin = value.to("tpu")
                moved.append((value, twin))
                return twin
            return torch.device("tpu") if isinstance(value, torch.device) else value

        def back(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            for original, twin in moved:
                if value is twin:
                    original.copy_(twin.cpu())
                    return original
            return value.cpu()

        if not any(isinstance(a, torch.Tensor) for a in args) and any(a.name == "device" for a in func._schema.arguments):
            kwargs = {**kwargs, "device": torch.device("tpu")}
        result = func(*pytree.tree_map(out, args), **pytree.tree_map(out, kwargs))
        return pytree.tree_map(back, result)


def _inside_data_loading() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if "/torch/utils/data/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


@contextmanager
def replay_on_cpu() -> Iterator[None]:
    """Inside the block random operators on CPU tensors draw the numbers the device would draw next; data loading keeps its own."""
    with _DrawOnDevice():  # type: ignore[no-untyped-call]
        yield
