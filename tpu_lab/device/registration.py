"""The device enters torch: its name, hooks and guard at autoload (cheap), its kernels and jax at the first use."""

from __future__ import annotations

import os
import threading
from typing import Any

import torch
from torch._C import _acc

from . import interrupts

_lock = threading.RLock()
_entered = False
_loaded = False
_pid = os.getpid()


class _Hooks(_acc.PrivateUse1Hooks):  # type: ignore[misc]
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Guard(_acc.DeviceGuard):  # type: ignore[misc]
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


def enter(module: Any) -> None:
    """Makes `torch.device("tpu")` known, with `module` as `torch.tpu`. Does nothing the second time."""
    global _entered
    with _lock:
        if _entered:
            return
        torch.utils.rename_privateuse1_backend("tpu")
        torch.utils.generate_methods_for_privateuse1_backend()
        torch._register_device_module("tpu", module)
        _acc.register_python_privateuseone_hook(_Hooks())
        _acc.register_python_privateuseone_device_guard(_Guard())
        library = torch.library.Library("_", "IMPL")
        library.fallback(_first_use, "PrivateUse1")
        _kept.append(library)
        from . import patches

        patches.apply()
        _entered = True


_kept: list[Any] = []


def _first_use(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Serves every operator without a kernel; the first one loads the device."""
    if not _loaded:
        load()
        return op(*args, **kwargs)
    from .kernels import serve_other

    return serve_other(op, *args, **kwargs)


def load() -> None:
    """Imports jax and registers all kernels; the first operator on the device does it."""
    global _loaded, _pid
    with _lock, interrupts.held_back():
        if _loaded:
            return
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        try:
            from .kernels import register_all
        except ImportError as error:
            raise RuntimeError(
                f"the device tpu needs jax and jaxlib >= 0.10.2, < 0.11, and importing them failed: {error}. "
                f"Remedy: pip install 'jax==0.10.2' 'jaxlib==0.10.2', then restart Python."
            ) from error
        import torch.fx.experimental.symbolic_shapes  # noqa: F401  torch imports it within its first meta kernel; see held_back

        register_all()
        interrupts.deliver_lost_ones()
        _loaded, _pid = True, os.getpid()


def in_fork() -> bool:
    """True in a forked child of a process that had loaded the device."""
    return _loaded and os.getpid() != _pid


def raise_in_fork() -> None:
    """Raises RuntimeError: a forked child cannot use the device."""
    raise RuntimeError(
        "Cannot re-initialize tpu in forked subprocess. To use tpu with multiprocessing, you must use the 'spawn' start method "
        "(torch.multiprocessing.set_start_method('spawn')), or keep tensors of the device out of the child."
    )
