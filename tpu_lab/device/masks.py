"""Indexing by a mask: the positions are counted on the host (one sync), and the rest is ordinary indexing.

Writing one value through a mask needs no count: it is a `masked_fill`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_MASKS = (torch.bool, torch.uint8)
INDEXING = (
    "index.Tensor",
    "index.Tensor_out",
    "index_put_",
    "index_put",
    "index_put.out",
    "_index_put_impl_",
    "_unsafe_index.Tensor",
    "_unsafe_index_put",
)
"""Overloads that take a list of index tensors, masks among them."""


def without_masks(indices: Sequence[torch.Tensor | None], sizes: Sequence[int]) -> list[torch.Tensor | None]:
    """Index tensors in which each mask has become one int64 tensor for each dimension it covers.

    Raises IndexError for a mask whose shape does not match the dimensions it covers.
    """
    found: list[torch.Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            found.append(index)
            continue
        covered = tuple(sizes[len(found) : len(found) + index.ndim])
        if tuple(index.shape) != covered:
            at = next((i for i, (a, b) in enumerate(zip(index.shape, covered, strict=False)) if a != b), 0)
            raise IndexError(
                f"The shape of the mask {list(index.shape)} at index {at} does not match the shape of the indexed tensor {list(sizes)} "
                f"at index {len(found) + at}"
            )
        if index.ndim == 0:
            raise IndexError("a 0-dim mask is handled by torch before it reaches the device")
        found += [positions.contiguous() for positions in index.nonzero().unbind(1)]
    return found


def has_masks(indices: Sequence[torch.Tensor | None]) -> bool:
    """True if a bool or uint8 tensor is among the indices."""
    return any(i is not None and i.dtype in _MASKS for i in indices)


def kernel(overload: str, serve: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of an indexing overload that sees to masks, then calls `serve`."""
    writes = "put" in overload

    def indexing(self: torch.Tensor, indices: Sequence[torch.Tensor | None], *args: Any, **kwargs: Any) -> Any:
        if not has_masks(indices):
            return serve(self, _on_device(indices), *args, **kwargs)
        if writes and overload != "index_put.out" and _is_fill(self, indices, *args, **kwargs):
            filled = torch.ops.aten.masked_fill_.Tensor if overload.endswith("_") else torch.ops.aten.masked_fill.Tensor
            mask = indices[0]
            assert mask is not None
            value = args[0].to(self.dtype).reshape(())
            return filled(self, mask.bool().reshape(mask.shape + (1,) * (self.ndim - mask.ndim)), value)
        return serve(self, without_masks(_on_device(indices), self.shape), *args, **kwargs)

    return indexing


def _on_device(indices: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Index tensors on the CPU are moved, as CUDA does."""
    return [i if i is None or i.device.type == "tpu" else i.to("tpu") for i in indices]


def _is_fill(
    self: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False, *rest: Any, **kwargs: Any
) -> bool:
    mask = indices[0] if len(indices) == 1 else None
    return (
        mask is not None and mask.dtype in _MASKS and values.numel() == 1 and not accumulate and tuple(mask.shape) == tuple(self.shape[: mask.ndim])
    )
