"""Rows added to a tensor and taken away again. XLA:CPU's arrays are the host's memory, so no program is compiled for it."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...xla import _jax_internals as jax_internals
from .. import tensors


def with_rows(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """A copy of a tensor of the device with zeros after its first dimension, `rows` in all. Waits for its contents."""
    numel, rest = tensor.numel(), tuple(tensor.shape[1:])
    if not tensor.is_contiguous() or tensor.storage_offset() or tensor.is_conj() or tensor.is_neg():
        tensor = tensor.clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()
    held = np.asarray(tensors.array_of(tensors.buffer_of(tensor)))
    if held.size != numel:
        return with_rows(tensor.clone(memory_format=torch.contiguous_format), rows)
    padded = np.zeros(rows * math.prod(rest), held.dtype)
    padded[:numel] = held
    return tensors.wrap(jax_internals.put(padded, copy=False), (rows, *rest), tensor.dtype)
