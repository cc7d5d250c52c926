"""Where factory functions put tensors inside a magic cell.

`with torch.device("tpu")` moves every factory call of the process's thread, also those inside PyTorch that mean the CPU: a
shuffling DataLoader draws its order with a CPU generator, an optimizer keeps its step count on the host. Here only calls
of the notebook's own code are moved, and those `torch.nn` makes on its behalf (parameters of modules). Code in other files
means what it says there: it was written, and is seeded and tested, without a magic above it.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar, Token
from types import FrameType, TracebackType
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device._torch_internals import DeviceContext

_NOT_STRIDED = ("sparse", "nested", "quantized")
_FACTORIES = frozenset(f for f in internals.factories() if not any(word in f.__name__ for word in _NOT_STRIDED))
"""PyTorch's own list, without layouts that a storage-backed device cannot hold."""
FACTORY_NAMES = frozenset(f.__name__ for f in _FACTORIES)

_ASKED_FOR = ("torch.nn.", "torch.distributions.", "torch.signal.")
"""Parts of PyTorch that make tensors on behalf of their caller."""

_inside: ContextVar[DefaultDevice | None] = ContextVar("tpu_lab_default_device", default=None)
"""Set in the cell's own context: another asyncio task that runs while the cell awaits is not in the cell."""


class DefaultDevice(DeviceContext):
    """A context in which factory calls of the code of `module` (a notebook's) that name no device make their tensor on `device`.

    A `with torch.device(...)` inside wins, `torch.set_default_device` inside lasts beyond it, as without the context.
    So are the parts of a module that this code constructs, wherever its class was written. Not moved: calls in other files, calls
    from PyTorch's own Python code except torch.nn, anything a DataLoader calls, a generator of another
    device, `out=`, pinned memory, other threads and forked processes. The legacy constructors (`torch.Tensor(3)`) and
    `torch.from_numpy` stay on the CPU, as with PyTorch's own default device.
    """

    def __init__(self, device: str, module: str = "__main__") -> None:
        self._module = module
        where = torch.device(device)
        super().__init__(torch.device(device, 0) if where.type not in ("cpu", "meta") else where)
        self._process = os.getpid()
        self._token: Token[DefaultDevice | None] | None = None

    def __enter__(self) -> DefaultDevice:
        super().__enter__()  # type: ignore[no-untyped-call]
        self._token = _inside.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._token is not None:
            _inside.reset(self._token)
            self._token = None
        stack = internals.function_modes()
        if stack and stack[0] is self:
            super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]
        elif stack and isinstance(stack[0], DeviceContext):
            self._leave_from_below(stack[0])

    def _leave_from_below(self, above: DeviceContext) -> None:
        """The cell set a default device of its own that stays: takes this one out of the chain it would go back to."""
        while isinstance(above.prev_mode, DeviceContext) and above.prev_mode is not self:
            above = above.prev_mode
        if above.prev_mode is self:
            above.prev_mode = self.prev_mode
            above.old_device = self.old_device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        # Dynamo traces this method; it must not see frames and context variables. What it traces is the cell's own code.
        if (func in _FACTORIES or func is torch.normal) and kwargs.get("device") is None:
            if torch.compiler.is_compiling():
                if func is not torch.normal and kwargs.get("generator") is None and kwargs.get("out") is None:
                    kwargs = {**kwargs, "device": self.device}
            elif self._moves(func, args, kwargs):
                kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)

    def _moves(self, func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != self.device.type:
            return False
        if kwargs.get("out") is not None or kwargs.get("pin_memory"):
            return False
        if func is torch.normal and any(isinstance(a, torch.Tensor) for a in (*args, kwargs.get("mean"), kwargs.get("std"))):
            return False
        return _inside.get() is self and os.getpid() == self._process and _asked_by_user(sys._getframe(2), self._module)


def _asked_by_user(frame: FrameType | None, module: str) -> bool:
    """Whether a factory call in this frame was written in `module` (the notebook), or makes a part of a module constructed there."""
    while frame is not None and frame.f_globals.get("__name__") == "torch.overrides":
        frame = frame.f_back
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_ASKED_FOR):
        frame = frame.f_back
    if frame is None:
        return False
    name = frame.f_globals.get("__name__")
    if name != module and (str(name).partition(".")[0] in ("torch", "tpu_lab") or not _within_constructor(frame, module)):
        return False
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("torch.utils.data"):
            # with workers this code runs in another process, on the CPU; without workers it must do the same
            return False
        if name.startswith("tpu_lab.notebook"):
            return True
        frame = frame.f_back
    return True


def _within_constructor(frame: FrameType, module: str) -> bool:
    """Whether this frame works for the constructor of a `torch.nn.Module` that code of `module` calls: `Net()` of an imported `Net`.

    A module must not end up half here, half there, so it does not matter through which of its methods it makes its parts.
    """
    at: FrameType | None = frame
    while at is not None and not str(at.f_globals.get("__name__", "")).startswith("tpu_lab.notebook"):
        caller = at.f_back
        if at.f_code.co_name == "__init__" and caller is not None and caller.f_globals.get("__name__") == module:
            made = at.f_locals.get(at.f_code.co_varnames[0])
            if isinstance(made, torch.nn.Module):
                return True
        at = caller
    return False
