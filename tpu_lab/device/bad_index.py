"""Which index of a failed call was out of range, in the CPU's words. Read only after the failure; nothing is recorded or waited for by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import tensors
from .host import alias_on_host, host_view

_ALONG = frozenset({"gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "index_select", "index_add", "index_add_"})
"""Operators whose arguments begin with `self, dim, index`."""
_BY_DIMENSION = frozenset({"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"})
"""Operators whose arguments begin with `self, indices`, one index for each leading dimension or none."""

_MASKS = (torch.bool, torch.uint8)
"""An index of these stands for several dimensions."""


def words_for(name: str, args: Any) -> str:
    """`index 7 is out of bounds for dimension 0 with size 3` for a call of the operator `name` (`index.Tensor`); empty where none is found."""
    for tensor, dim, index in _indices(name.partition(".")[0], args):
        size = tensor.shape[dim] if tensor.dim() else 1
        values = _values(index)
        if values is None:
            continue
        wrong = values[(values < -size) | (values >= size)]
        if wrong.numel():
            return f"index {int(wrong[0])} is out of bounds for dimension {dim % max(tensor.dim(), 1)} with size {size}"
    return ""


def _indices(base: str, args: Any) -> Iterator[tuple[torch.Tensor, int, torch.Tensor]]:
    """Tensor, dimension and index of each look-up of a call."""
    if base == "embedding" and len(args) >= 2:
        yield args[0], 0, args[1]
    elif base in _ALONG and len(args) >= 3:
        yield args[0], args[1], args[2]
    elif base in _BY_DIMENSION and len(args) >= 2 and not any(index is not None and index.dtype in _MASKS for index in args[1]):
        yield from ((args[0], dim, index) for dim, index in enumerate(args[1]) if index is not None)


def _values(index: torch.Tensor) -> torch.Tensor | None:
    """The index's values on the host, if they are there already: neither deferred nor of another device."""
    if index.device.type == "cpu":
        return index.reshape(-1)
    if index.device.type != "tpu":
        return None
    buffer = tensors.buffer_of(index)
    if buffer.array is None:
        return None
    return host_view(index, alias_on_host(buffer.array, buffer.layout.torch_dtype)).reshape(-1)
