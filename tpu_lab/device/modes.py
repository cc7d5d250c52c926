"""Eager modes: what happens between the call of an operator and its execution. Names and meaning are TorchTPU's."""

from __future__ import annotations

import enum
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class EagerMode(enum.Enum):
    """How operators are executed. `DEFER_AND_FUSE` is accepted once the deferred executor exists."""

    DEFER_NEVER = "DEFER_NEVER"
    DEFER_NEVER_AND_LAUNCH_BLOCKING = "DEFER_NEVER_AND_LAUNCH_BLOCKING"
    DEFER_AND_FUSE = "DEFER_AND_FUSE"


def _switched_on(*names: str) -> bool:
    return any(os.environ.get(n, "") not in ("", "0", "false", "False") for n in names)


def from_environment() -> EagerMode:
    """The mode the environment asks for (`TORCH_TPU_LAUNCH_BLOCKING`, `TORCH_TPU_DEFER_AND_FUSE` and their older names without `TORCH_`)."""
    if _switched_on("TORCH_TPU_LAUNCH_BLOCKING", "TPU_LAUNCH_BLOCKING"):
        return EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    if _switched_on("TORCH_TPU_DEFER_AND_FUSE", "TPU_DEFER_AND_FUSE"):
        warnings.warn(
            "TORCH_TPU_DEFER_AND_FUSE is set, but EagerMode.DEFER_AND_FUSE is not in this version of tpu_lab: operators run one by one. "
            "torch.compile(backend='tpu') fuses.",
            stacklevel=2,
        )
    return EagerMode.DEFER_NEVER


def _available(mode: object) -> EagerMode:
    if not isinstance(mode, EagerMode):
        names = ", ".join(f"EagerMode.{m.name}" for m in EagerMode)
        raise TypeError(f"eager mode: got {mode!r}, accepted are {names}")
    if mode is EagerMode.DEFER_AND_FUSE:
        raise NotImplementedError(
            "EagerMode.DEFER_AND_FUSE is not in this version of tpu_lab. Use EagerMode.DEFER_NEVER, "
            "or torch.compile(backend='tpu') for fused programs."
        )
    return mode


blocking = False
"""True while operators wait for their results (the hot path reads this)."""
_process = EagerMode.DEFER_NEVER
_local = threading.local()


def _apply() -> None:
    global blocking
    blocking = current() is EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING


def current() -> EagerMode:
    """The mode in force on this thread: the innermost `set_eager_mode` block, else the process's."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else _process


def set_process_mode(mode: EagerMode) -> None:
    """Sets the mode of the process. Raises TypeError for anything but an EagerMode."""
    global _process
    _process = _available(mode)
    _apply()


@contextmanager
def set_eager_mode(mode: EagerMode) -> Iterator[None]:
    """The mode inside a `with` block, on this thread; the innermost block wins."""
    stack = _local.__dict__.setdefault("stack", [])
    stack.append(_available(mode))
    _apply()
    try:
        yield
    finally:
        stack.pop()
        _apply()
