"""Operators the device answers itself, without a program: questions about storages, data-dependent sizes, SDPA's choice."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from . import _torch_internals as internals
from . import events
from .fallback import run_on_cpu
from .graph.linalg_decompositions import DECOMPOSITIONS
from .tensors import buffer_of, give_size
from .transfer import on_host


def equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    """`torch.equal`: one host sync."""
    start = time.perf_counter_ns()
    left, right = (on_host(t) if t.device.type == "tpu" else t for t in (self, other))
    if self.device != other.device:
        raise RuntimeError(f"Cannot compare two tensors on different devices. Got: {self.device} and {other.device}")
    answer = torch.equal(left, right)
    if events.observer is not None:
        events.observer.sync("item", 1, start, time.perf_counter_ns())
    return answer


def is_set_to(self: torch.Tensor, tensor: torch.Tensor) -> bool:
    """`Tensor.is_set_to`: same storage, offset, size and strides."""
    same = buffer_of(self) is buffer_of(tensor) and self.storage_offset() == tensor.storage_offset()
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


def record_stream(self: torch.Tensor, stream: Any) -> None:
    """`Tensor.record_stream`: arrays live as long as somebody holds them, so there is nothing to do."""


def conj_physical_(self: torch.Tensor) -> torch.Tensor:
    """`Tensor.conj_physical_`: the conjugate written in place (torch's composite would ask for a kernel written in C++)."""
    return self.copy_(self.conj()) if self.is_complex() else self


def as_strided_copy(self: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    """`as_strided_copy`: reads the storage, of which a lowering would see only what the operand shows."""
    return self.as_strided(size, stride, storage_offset).clone(memory_format=torch.contiguous_format)


def as_strided_scatter(self: torch.Tensor, src: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    """`as_strided_scatter`: `src` written into a copy of the whole storage."""
    count = buffer_of(self).nbytes // self.element_size()
    storage = self.as_strided((count,), (1,), 0).clone()
    result = storage.as_strided(self.shape, self.stride(), self.storage_offset())
    result.as_strided(size, stride, self.storage_offset() if storage_offset is None else storage_offset).copy_(src)
    return result


def fused_sdp_choice(*args: Any, **kwargs: Any) -> int:
    """`_fused_sdp_choice`: the overrideable form, which is one lowering forward and one backward."""
    return int(torch.nn.attention.SDPBackend.OVERRIDEABLE.value)


def nested_from_mask_is_left_aligned(t: torch.Tensor, mask: torch.Tensor) -> bool:
    """`_nested_tensor_from_mask_left_aligned`: no, so that `nn.TransformerEncoder` keeps its padded tensors; nested ones the device cannot have."""
    return False


def data_dependent(op: Any) -> Callable[..., Any]:
    """A kernel for an operator whose result size depends on values: the host counts, which is one sync, recorded as such."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        result, crossing = run_on_cpu(op, args, kwargs)
        if events.observer is not None:
            events.observer.sync("data_dependent_size", crossing.bytes_out, start, time.perf_counter_ns())
        return result

    return kernel


def sized(op: Any) -> Callable[..., Any]:
    """A kernel for a composite of torch's that asks C++ for the byte count of storages, which it has to be told first."""
    composite = internals.call_composite(op)

    def kernel(self: torch.Tensor, other: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        give_size(self)
        give_size(other)
        return composite(self, other, *args, **kwargs)

    return kernel


DATA_DEPENDENT = (
    *("nonzero", "nonzero.out", "masked_select", "masked_select.out", "bincount", "repeat_interleave.Tensor"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"),
)
"""Overloads the host answers, because the size of a result depends on values."""
OWN_KERNELS: dict[str, Callable[..., Any]] = {
    "equal": equal,
    "is_set_to": is_set_to,
    "record_stream": record_stream,
    "conj_physical_": conj_physical_,
    "as_strided_copy": as_strided_copy,
    "as_strided_scatter": as_strided_scatter,
    "_fused_sdp_choice": fused_sdp_choice,
    "_nested_tensor_from_mask_left_aligned": nested_from_mask_is_left_aligned,
    "_has_same_storage_numel": sized(torch.ops.aten._has_same_storage_numel.default),
    "_new_zeros_with_same_feature_meta": sized(torch.ops.aten._new_zeros_with_same_feature_meta.default),
    **{
        name: data_dependent(getattr(getattr(torch.ops.aten, name.partition(".")[0]), name.partition(".")[2] or "default")) for name in DATA_DEPENDENT
    },
    **{op.name().removeprefix("aten::"): function for op, function in DECOMPOSITIONS.items()},
}
