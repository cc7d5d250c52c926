"""Copies: within the device (one program), to it and from it (a snapshot, never an alias), and single numbers to Python."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from ..lowering.dtypes import to_jax
from ..xla import _jax_internals as jax_internals
from . import checks, deferral, events, memory, strict, tensors
from .events import OpProgram, TensorType
from .host import alias_on_host, flat_from_host, host_to_numpy, host_view
from .plan import plan_for
from .tensors import array_of, buffer_of, contiguous_stride, layout_of

_COPY = plan_for(torch.ops.aten.copy_.default)


def is_whole(tensor: torch.Tensor) -> bool:
    """True if a tensor is all of its storage in row-major order."""
    buffer = buffer_of(tensor)
    return (
        tensor.dtype == buffer.layout.torch_dtype
        and tensor.numel() == buffer.layout.count
        and tensor.storage_offset() == 0
        and tensor.is_contiguous()
        and not (tensor.is_conj() or tensor.is_neg())
    )


def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`aten.copy_` with the device on either side: casts, broadcasts, honours every layout. Raises RuntimeError for shapes that do not broadcast."""
    if self is src:
        return self
    if src.device.type == "tpu":
        if self.device.type == "tpu":
            return strict.run(_COPY, (self, src, non_blocking), {})  # type: ignore[no-any-return]
        return _from_device(self, src)
    return _to_device(self, src)


def to_copy(
    self: torch.Tensor,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """`aten._to_copy` with the device on either side: `.to(...)`, `.cpu()`, `.float()`. Raises NotImplementedError for a layout other than strided.

    A copy to the CPU is done when this returns, also with `non_blocking` (torch's own composite would ask for pinned memory).
    """
    if layout not in (None, torch.strided):
        raise NotImplementedError(f"layout {layout} does not exist on the device tpu; only torch.strided does. Use .cpu() before the conversion.")
    wanted = memory_format or torch.preserve_format
    if device is None or device.type == "tpu":
        result = torch.empty_like(self, dtype=dtype, device=device, memory_format=wanted)
        return copy_(result, self)
    start = time.perf_counter_ns()
    host = on_host(self)
    target = torch.empty_like(host, dtype=dtype, device=device, memory_format=wanted)
    target.copy_(host)
    if events.observer is not None:
        events.observer.sync("cpu", self.numel() * self.element_size(), start, time.perf_counter_ns())
    return target


def copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """`aten._copy_from`: the same with the arguments the other way round."""
    return copy_(dst, self, non_blocking)


def copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """`aten._copy_from_and_resize`: gives `dst` the size of `self` first."""
    if dst.shape != self.shape:
        dst.resize_(self.shape)
    return copy_(dst, self)


def _to_device(self: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    start = time.perf_counter_ns()
    host = src.detach()
    if host.device.type != "cpu":
        host = host.cpu()
    host = host.to(self.dtype).expand(self.shape)
    nbytes = host.numel() * host.element_size()
    whole = is_whole(self)
    if not whole:
        memory.make_room(nbytes, "aten.copy_")
    if whole:
        tensors.replace(buffer_of(self), flat_from_host(host))
    else:
        staged = tensors.wrap(flat_from_host(host), tuple(self.shape), self.dtype)
        strict.run(_COPY, (self, staged, False), {})
    _record("aten.copy_", src, self, start)
    return self


def _from_device(self: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    start = time.perf_counter_ns()
    self.copy_(on_host(src))
    if events.observer is not None:
        events.observer.sync("cpu", src.numel() * src.element_size(), start, time.perf_counter_ns())
    return self


def _record(name: str, source: torch.Tensor, target: torch.Tensor, start: int) -> None:
    if events.observer is None:
        return
    there, here = (TensorType(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in (source, target))
    buffer = buffer_of(target)
    events.observer.op(OpProgram(name, "copy", (here, there), (here,)), start, time.perf_counter_ns(), [buffer], [buffer])


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor that shows a device tensor's memory (size, strides, offset, conj and neg bits alike): to read from, inside this package only.

    Waits for the device and raises IndexError for a pending bad index.
    """
    buffer = buffer_of(tensor)
    deferral.before_read("cpu", (buffer,))
    checks.settle()
    return host_view(tensor, alias_on_host(array_of(buffer), buffer.layout.torch_dtype))


def local_scalar(self: torch.Tensor) -> Any:
    """`tensor.item()`: waits for the device; raises IndexError for a pending bad index."""
    observer = events.observer
    start = time.perf_counter_ns() if observer is not None else 0
    buffer = buffer_of(self)
    deferral.before_read("item", (buffer,))
    checks.settle()
    array = array_of(buffer)
    if self.dtype is buffer.layout.torch_dtype and not self.is_conj() and not self.is_neg():
        value = np.asarray(array)[self.storage_offset()].item()
        if value.__class__ is not float and self.dtype.is_floating_point:
            value = float(value)
    else:
        value = host_view(self, alias_on_host(array, buffer.layout.torch_dtype)).item()
    if observer is not None:
        observer.sync("item", self.element_size(), start, time.perf_counter_ns())
    return value


def to_device(host: torch.Tensor) -> torch.Tensor:
    """A new device tensor with a copy of a CPU tensor: same size, row-major or the same dense strides, same dtype."""
    size, stride = tuple(host.shape), host.stride()
    host = host.detach()
    if stride == contiguous_stride(size) or host.is_conj() or host.is_neg():
        return tensors.wrap(flat_from_host(host), size, host.dtype)
    count = tensors.extent(size, stride)
    flat = np.zeros(count, to_jax(host.dtype))
    laid = torch.zeros(count, dtype=host.dtype)
    torch.as_strided(laid, size, stride).copy_(host)
    flat[:] = host_to_numpy(laid)
    return tensors.wrap(jax_internals.put(flat, copy=False), size, host.dtype, stride)


def layout(tensor: torch.Tensor) -> Any:
    """The storage layout behind a tensor."""
    return layout_of(buffer_of(tensor).layout.count, buffer_of(tensor).layout.torch_dtype)
