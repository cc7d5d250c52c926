"""Views: torch's own C++ CPU kernels make them (they only put another size, stride and offset over the same storage)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _torch_internals as internals
from . import events
from .factories import grow
from .tensors import adopt, buffer_of, contiguous_stride, extent, give_size, offset_of, retype

VIEW_KERNELS = ("as_strided", "as_strided_", "view", "_reshape_alias", "unfold", "view_as_real", "view_as_complex")
"""View operators with a kernel per backend; all others are composites over these."""


def view_kernel(overload: str) -> Callable[..., torch.Tensor]:
    """The device's kernel of a view operator."""
    kernel = internals.cpu_view_kernel(overload)
    keyset = internals.CPU

    def view(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        storage = self.untyped_storage()
        try:
            sized = storage.buffer.sized  # type: ignore[attr-defined]
        except AttributeError:
            sized = buffer_of(self).sized
        if not sized:
            give_size(self)
        try:
            return kernel(keyset, self, *args, **kwargs)
        except Exception as error:
            if events.on_error is not None:
                events.on_error(error)
            raise

    view.__name__ = overload
    return view


def set_source_tensor(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """`tensor.set_(other)`: both show the same memory afterwards."""
    return set_storage_offset(self, source.untyped_storage(), offset_of(source), tuple(source.shape), source.stride(), keep=source)


def set_source_storage(self: torch.Tensor, source: torch.UntypedStorage) -> torch.Tensor:
    """`tensor.set_(storage)`: all of the storage, one-dimensional."""
    count = source.nbytes() // self.element_size()
    return set_storage_offset(self, source, 0, (count,), (1,))


def set_storage_offset(
    self: torch.Tensor, source: torch.UntypedStorage, storage_offset: int, size: Any, stride: Any = (), keep: torch.Tensor | None = None
) -> torch.Tensor:
    """`tensor.set_(storage, offset, size, stride)`: a storage that is too small for it grows."""
    if keep is not None:
        give_size(keep)
    retype(source, self.dtype)
    steps = tuple(stride) or contiguous_stride(tuple(size))
    needed = (storage_offset + extent(tuple(size), steps)) * self.element_size() if 0 not in size else 0
    buffer = getattr(source, "buffer", None) or adopt(source, self.dtype)
    if needed > buffer.nbytes:
        grow(source, buffer, self.dtype, needed)
    internals.point_at(self, source, storage_offset, tuple(size), steps)
    return self


def set_empty(self: torch.Tensor) -> torch.Tensor:
    """`tensor.set_()`: an empty tensor over a new storage."""
    fresh = internals.create_empty_tensor((0,), self.dtype)
    internals.point_at(self, fresh.untyped_storage(), 0, (0,), (1,))
    return self
