"""Storages of the device: byte counts, distinct stable addresses, copies, pickling. C++ knows them as empty storages."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.storage import TypedStorage, UntypedStorage

from .. import _torch_internals as internals

_Storage: Any = UntypedStorage
_raw_nbytes = UntypedStorage.nbytes
_addresses = itertools.count(1)
_PAGE = 1 << 32
"""Distance of two storages' stand-in addresses: beyond any storage, so that `data_ptr() + offset` never meets another one."""


def is_ours(storage: Any) -> bool:
    """True for a storage of the device."""
    return storage.device.type == "tpu"  # type: ignore[no-any-return]


def nbytes(self: Any) -> int:
    """Size in bytes."""
    if is_ours(self):
        buffer = getattr(self, "buffer", None)
        if buffer is not None:
            return buffer.nbytes  # type: ignore[no-any-return]
    return _raw_nbytes(self)


def data_ptr(self: Any) -> int:
    """A number unique to the storage, as an address would be; nothing can be read there."""
    found = getattr(self, "address", None)
    if found is None:
        if nbytes(self) == 0:
            return 0
        found = self.address = next(_addresses) * _PAGE
    return found


def tensor_data_ptr(self: torch.Tensor) -> int:
    """`storage().data_ptr()` plus the offset in bytes."""
    base = data_ptr(self.untyped_storage())
    return base + int(self.storage_offset()) * self.element_size() if base and self.numel() else 0


def as_bytes(self: Any) -> torch.Tensor:
    """A CPU uint8 tensor of its own with the storage's bytes (waits for the device)."""
    from .. import checks, deferral
    from ..host import alias_on_host
    from ..tensors import array_of

    buffer = getattr(self, "buffer", None)
    deferral.before_read("cpu", () if buffer is None else (buffer,))
    checks.settle()
    if buffer is None or not buffer.nbytes:
        return torch.empty(0, dtype=torch.uint8)
    return alias_on_host(array_of(buffer), buffer.layout.torch_dtype).view(torch.uint8).clone()


def from_bytes(raw: torch.Tensor) -> Any:
    """A new storage of the device with the bytes of a CPU uint8 tensor."""
    from .. import registration

    registration.load()
    from ..transfer import to_device

    return to_device(raw.reshape(-1)).untyped_storage()


def clone(self: Any) -> Any:
    """A storage with the same contents. The array is immutable, so both hold it until one of them is written to."""
    from .. import deferral, tensors

    buffer = self.buffer
    deferral.cut("unknown")  # both hold the array from now on
    twin = tensors.wrap(buffer.array, (buffer.layout.count,), buffer.layout.torch_dtype)
    tensors.give_size(twin)
    storage: Any = twin.untyped_storage()
    buffer.shared = storage.buffer.shared = buffer.array is not None
    return storage


def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy` of a storage: one copy per storage, so that views stay tied together."""
    memo = memo.setdefault("torch", {})  # type: ignore[call-overload]
    key = internals.storage_key(self)
    if key not in memo:
        memo[key] = clone(self)
    return memo[key]


def copy_(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """Takes over the bytes of another storage of the same size."""
    raw = as_bytes(source) if is_ours(source) else torch.empty(0, dtype=torch.uint8).set_(source)
    if raw.numel() != nbytes(self):
        raise RuntimeError(f"size mismatch: got a storage of {raw.numel()} bytes for one of {nbytes(self)} bytes")
    _write(self, raw)
    return self


def _write(self: Any, raw: torch.Tensor) -> None:
    from .. import tensors
    from ..host import flat_from_host

    buffer = self.buffer
    tensors.replace(buffer, flat_from_host(raw.view(buffer.layout.torch_dtype)))


def resize_(self: Any, size: int) -> Any:
    """Resizes to `size` bytes; the common part of the contents stays, new bytes are zero."""
    from .. import factories

    factories.grow(self, self.buffer, torch.uint8, size)
    return self


def to_cpu(self: Any) -> Any:
    """A CPU storage with the same bytes."""
    return as_bytes(self).untyped_storage()


def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """The storage on another device."""
    device = torch.device(device)
    if device.type == "tpu":
        if is_ours(self):
            return self
        return from_bytes(
            torch.empty(0, dtype=torch.uint8).set_(self) if self.device.type == "cpu" else torch.empty(0, dtype=torch.uint8).set_(self.cpu())
        )
    return to_cpu(self).to(device=device, non_blocking=non_blocking) if device.type != "cpu" else to_cpu(self)


def reduce(self: Any) -> Any:
    """Pickles a storage as its bytes; unpickling needs tpu_lab (`torch.save` does not: it writes plain CPU storages)."""
    return from_bytes, (as_bytes(self),)


def write_file(self: Any, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
    """Writes the bytes as `torch.save` did before it wrote zip files, and as pickles of tensors still hold them."""
    to_cpu(self)._write_file(file, is_real_file, save_size, element_size)


def set_from_file(self: Any, file: Any, offset: int | None, is_real_file: bool, element_size: int) -> Any:
    """Reads what `_write_file` wrote."""
    host: Any = UntypedStorage(nbytes(self))
    host._set_from_file(file, offset, is_real_file, element_size)
    return copy_(self, host)


def fill_(self: Any, value: int) -> Any:
    """Sets every byte."""
    raw = as_bytes(self)
    _write(self, raw.fill_(value))
    return self


def setitem(self: Any, at: Any, value: Any) -> None:
    """Sets one byte, or a slice of them."""
    raw = as_bytes(self)
    raw[at] = value
    _write(self, raw)


def byteswap(self: Any, item: int) -> None:
    """Turns the bytes of every item of so many bytes round."""
    host = to_cpu(self)
    host._byteswap(item)
    copy_(self, host)


def refuse_sharing(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError: another process cannot see the device's memory."""
    raise RuntimeError("a tensor of the device tpu cannot be shared with another process; send a copy on the CPU: tensor.cpu()")


def tolist(self: Any) -> list[int]:
    """The bytes as Python ints."""
    return as_bytes(self).tolist()


def getitem(self: Any, at: Any) -> Any:
    """One byte, or a CPU storage with the bytes of a slice."""
    raw = as_bytes(self)[at]
    return raw.item() if isinstance(at, int) else raw.untyped_storage()


def make(cls: Any, original: Callable[..., Any], *args: Any, device: Any = None, **kwargs: Any) -> Any:
    """`UntypedStorage(nbytes, device="tpu")` or of a sequence of bytes. torch's own constructor would ask an allocator the device does not have."""
    if device is None or torch.device(device).type != "tpu":
        return original(cls, *args, **kwargs) if device is None else original(cls, *args, device=device, **kwargs)
    host = original(cls, *args, **kwargs)
    raw = torch.empty(0, dtype=torch.uint8).set_(host)
    return from_bytes(raw.zero_() if args and isinstance(args[0], int) else raw)


def is_pinned(self: Any, device: Any = None) -> bool:
    """False: pinned memory is the host's."""
    return False


def _for_ours(name: str, ours: Callable[..., Any], cls: Any = UntypedStorage) -> None:
    """Puts `ours` before a method of a torch class, for objects of the device."""
    original = getattr(cls, name)
    typed = cls is TypedStorage  # to ask it for its device is deprecated

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_ours(self._untyped_storage if typed else self):
            return ours(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    setattr(cls, name, method)


def apply() -> None:
    """Patches `torch.UntypedStorage` and `Tensor.data_ptr`."""
    methods: dict[str, Callable[..., Any]] = {
        "nbytes": nbytes,
        "size": nbytes,
        "__len__": nbytes,
        "data_ptr": data_ptr,
        "clone": clone,
        "__deepcopy__": deepcopy,
        "copy_": copy_,
        "resize_": resize_,
        "cpu": to_cpu,
        "__reduce__": reduce,
        "_write_file": write_file,
        "_set_from_file": set_from_file,
        "_byteswap": byteswap,
        "_share_fd_cpu_": refuse_sharing,
        "_share_filename_cpu_": refuse_sharing,
        "fill_": fill_,
        "__setitem__": setitem,
        "tolist": tolist,
        "__getitem__": getitem,
        "is_pinned": is_pinned,
    }
    for name, ours in methods.items():
        _for_ours(name, ours)
    _for_ours("data_ptr", tensor_data_ptr, torch.Tensor)
    original_new = _Storage.__new__
    _Storage.__new__ = lambda cls, *args, **kwargs: make(cls, original_new, *args, **kwargs)
    original_to = UntypedStorage.to

    @functools.wraps(original_to)
    def storage_to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        if is_ours(self) or torch.device(device).type == "tpu":
            return to(self, device=device, non_blocking=non_blocking)
        return original_to(self, device=device, non_blocking=non_blocking)

    _Storage.to = storage_to
    _for_ours("_data_ptr", lambda self: data_ptr(self._untyped_storage), TypedStorage)
