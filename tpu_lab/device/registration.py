"""The device enters torch: its name, hooks and guard at autoload (cheap), its kernels and jax at the first use."""

from __future__ import annotations

import os
import threading
from typing import Any

from . import _torch_internals as internals
from . import forks, interrupts, modes

_lock = threading.RLock()
_entered = False
_loaded = False


class _Hooks(internals.Hooks):  # type: ignore[misc]
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Guard(internals.Guard):  # type: ignore[misc]
    def type_(self) -> Any:
        return internals.DEVICE_TYPE


def enter(module: Any) -> None:
    """Makes `torch.device("tpu")` known, with `module` as `torch.tpu`. Does nothing the second time."""
    global _entered
    with _lock:
        if _entered:
            return
        modes.set_process_mode(modes.from_environment())
        internals.enter_device("tpu", module, _Hooks(), _Guard())
        library = internals.library("_")
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


@internals.never_traced
def load() -> None:
    """Imports jax and registers all kernels; the first operator on the device does it."""
    global _loaded
    with _lock, interrupts.held_back():
        if _loaded:
            return
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        try:
            from ..xla import _jax_internals  # noqa: F401
        except Exception as error:  # a broken jax raises whatever it likes
            raise RuntimeError(
                f"the device tpu needs jax and jaxlib >= 0.10.2, < 0.11, and importing them failed: {type(error).__name__}: {error}. "
                f"Remedy: pip install 'jax==0.10.2' 'jaxlib==0.10.2', then restart Python."
            ) from error
        from .kernels import register_all

        internals.load_meta_kernels()  # see held_back
        register_all()
        interrupts.deliver_lost_ones()
        forks.close_in_children()
        _loaded = True
