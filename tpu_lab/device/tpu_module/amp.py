"""`torch.tpu.amp`: mixed precision."""

from __future__ import annotations

from typing import Any

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes `torch.autocast("tpu")` accepts."""
    return [torch.bfloat16, torch.float16, torch.float32]


class autocast(torch.amp.autocast_mode.autocast):
    """`torch.autocast("tpu", …)`, bfloat16 unless told otherwise."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("tpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("tpu", …)`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("tpu", **kwargs)
