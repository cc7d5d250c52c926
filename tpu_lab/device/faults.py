"""What the user sees when something fails below an operator: PyTorch's type, the operator, its shapes, and no inner frames."""

from __future__ import annotations

from typing import Any

import torch

from ..lowering.dtypes import NoSuchDtype
from ..xla import _jax_internals as jax_internals
from . import bad_index, checks, events

_PYTORCH_TYPES = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, torch.OutOfMemoryError)


def translate(error: BaseException, op: Any, args: Any) -> BaseException:
    """The exception to raise instead of `error`, without the frames it passed through inside the device.

    torch's own exceptions (from its meta kernels) pass; one of jax, XLA or a lowering becomes a RuntimeError (OutOfMemoryError
    where XLA ran out of memory) that names the operator and its operands.
    """
    translated = _translated(error, op, args)
    if events.observer is not None:
        events.observer.failed(str(op), translated)
    if events.on_error is not None:
        events.on_error(translated)
    return translated


def _translated(error: BaseException, op: Any, args: Any) -> BaseException:
    text = str(error)
    if isinstance(error, jax_internals.XlaRuntimeError):
        kind = torch.OutOfMemoryError if "RESOURCE_EXHAUSTED" in text else RuntimeError
        return kind(f"{op}({describe(args)}): XLA says: {text.splitlines()[0][:500]}")
    if isinstance(error, NoSuchDtype):
        # not a TypeError where operands are at fault: Python's operators would make "unsupported operand type(s)" of it
        refusal: type[Exception] = RuntimeError if any(isinstance(a, torch.Tensor) for a in args) else TypeError
        return refusal(f"{op}({describe(args)}): {error}")
    if isinstance(error, _PYTORCH_TYPES) and not _from_jax(error):
        if text.startswith(f"{op}: {checks.BAD_INDEX}"):
            words = bad_index.words_for(str(op).removeprefix("aten."), args)
            error = type(error)(words or text.removeprefix(f"{op}: "))
        error.add_note(f"(in {op}({describe(args)}) on the device tpu)")
        return error.with_traceback(None)
    return RuntimeError(f"{op}({describe(args)}): the lowering failed: {type(error).__name__}: {text[:500]}").with_traceback(None)


def of_deferred(error: BaseException, program: events.OpProgram, line: str) -> Exception:
    """The exception for a deferred call that failed when it ran at last; `line` is where it was recorded (`file:line`)."""
    text = str(error)
    kind = torch.OutOfMemoryError if "RESOURCE_EXHAUSTED" in text else RuntimeError
    operands = ", ".join(f"{one.dtype}{list(one.shape)}" for one in program.inputs)
    where = f", called at {checks.shown_line(line)}" if line else ""
    return kind(f"{program.op.removesuffix('.default')}({operands}){where}, deferred until now: XLA says: {text.splitlines()[0][:500]}")


def _from_jax(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    where = trace.tb_frame.f_code.co_filename
    return "/jax/" in where or "/jaxlib/" in where or "/tpu_lab/lowering/" in where


def describe(args: Any) -> str:
    """The operands of a call in few words: `float32[8, 8], 2.0`."""

    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):  # the text of a tensor would read it
            return f"[{', '.join(one(v) for v in value[:4])}{', …' if len(value) > 4 else ''}]"
        return repr(value)[:40]

    return ", ".join(one(a) for a in args)
