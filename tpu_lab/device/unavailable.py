"""The device where it cannot be offered: the name `tpu` is known, and every use of it raises the reason and the remedy."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import torch
from torch.utils import backend_registration


class _Unavailable(types.ModuleType):
    """Stands as `torch.tpu`."""

    def __init__(self, state: Any) -> None:
        super().__init__("torch.tpu", "tpu_lab's device, which could not be registered")
        self.__dict__["_state"] = state

    def __getattr__(self, name: str) -> Any:
        if name in ("is_available", "device_count", "_is_in_bad_fork", "manual_seed_all"):
            return {"is_available": lambda: False, "device_count": lambda: 0, "_is_in_bad_fork": lambda: False, "manual_seed_all": lambda seed: None}[
                name
            ]
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(self.__dict__["_state"].reason)


_kept: list[Any] = []


def enter(state: Any) -> None:
    """Registers the name, unless it is taken. `state.reason` is what users read."""
    if torch._C._get_privateuse1_backend_name() == "privateuseone":
        backend_registration.rename_privateuse1_backend("tpu")
    if not hasattr(torch, "tpu"):
        torch._register_device_module("tpu", _Unavailable(state))

    def refuse(op: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(state.reason)

    with contextlib.suppress(Exception):  # without a guard `.to("tpu")` says less, but raises too

        class Guard(torch._C._acc.DeviceGuard):
            def type_(self) -> Any:
                return torch._C._autograd.DeviceType.PrivateUse1

        _kept.append(Guard())
        torch._C._acc.register_python_privateuseone_device_guard(_kept[-1])
    library: Any = torch.library.Library("_", "IMPL")
    library.fallback(refuse, "PrivateUse1")
    _kept.append(library)
