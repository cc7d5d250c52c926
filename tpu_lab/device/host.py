"""Between CPU tensors and flat device arrays: the only place where bytes cross. A transfer copies; an alias never leaves this package."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import torch

from ..lowering.dtypes import to_jax
from ..xla import _jax_internals as jax_internals
from . import _torch_internals as internals

_CARRIER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NUMPY_KNOWS = frozenset(
    {
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    }
)

with warnings.catch_warnings():
    # torch warns once per process about a read-only numpy array; ours are read-only on purpose and stay inside this package
    warnings.simplefilter("ignore")
    _read_only = np.zeros(1, np.uint8)
    _read_only.flags.writeable = False
    torch.from_numpy(_read_only)


def host_to_numpy(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """The logical contents of a CPU tensor as a numpy array of the dtype jax uses; shares memory where the layout allows."""
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype in _NUMPY_KNOWS:
        return value.numpy()
    return value.view(_CARRIER[value.dtype.itemsize]).numpy().view(to_jax(value.dtype))


def flat_from_host(value: torch.Tensor) -> jax.Array:
    """A flat device array with a copy of a CPU tensor's elements in row-major order."""
    host = host_to_numpy(value)
    flat = np.array(host, order="C", copy=True).reshape(-1)
    return jax_internals.put(flat, copy=False)


def own(flat: torch.Tensor) -> jax.Array:
    """A flat device array from a dense 1-d CPU tensor that nobody else holds: takes over its memory where jax can use it."""
    return jax_internals.put(host_to_numpy(flat), copy=False)


def alias_on_host(array: jax.Array, dtype: torch.dtype) -> torch.Tensor:
    """A 1-d CPU tensor over the memory of a flat device array (waits for it). For reading only, and only inside this package."""
    host = np.asarray(array)
    if dtype in _NUMPY_KNOWS:
        return torch.from_numpy(host)
    carrier = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[host.dtype.itemsize]
    return torch.from_numpy(host.view(carrier)).view(dtype)


def host_view(tensor: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
    """The view of a flat CPU tensor that lies in it as `tensor` lies in its storage."""
    if flat.dtype == tensor.dtype:
        view = torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())
    else:  # not `flat.view(dtype)`, which wants the whole storage to be a multiple of the item
        view = torch.empty(0, dtype=tensor.dtype).set_(flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
    if tensor.is_conj():
        view = internals.conjugate_view(view)
    return internals.negative_view(view) if tensor.is_neg() else view
