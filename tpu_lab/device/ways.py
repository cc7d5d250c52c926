"""How the device would run each ATen overload that PyTorch's CPU has a kernel for: asked of the tables, without a call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import torch

from ..lowering import registry
from . import _torch_internals as internals
from .graph.decompose import can_decompose
from .kernels import DEVICE_KERNELS
from .own_ops import DATA_DEPENDENT
from .plan import functional_twin, is_composite, is_view, registry_name

Way = Literal["lowering", "decomposition", "view", "own", "host", "fallback"]
"""`lowering`, `decomposition`: one XLA program; `view`, `own`: no program of its own; `host`: the host answers, because a size
depends on values; `fallback`: the CPU fallback."""

_ELSEWHERE = re.compile(
    r"sparse|_coo_|_csr|_csc|_bsr|spdiags|sspaddmm|mkldnn|cudnn|miopen|fbgemm|nested|^_padded_dense_to_jagged"
    r"|^quantize|quantized|^dequantize|^q_|int_repr|^_test_|^_foobar$"
)
"""Overloads of layouts the device does not have (sparse, nested, quantized), of other vendors' libraries, and of PyTorch's own tests."""


def cpu_overloads() -> Iterator[Any]:
    """Every ATen overload with a CPU kernel, without those of sparse, nested and quantized tensors and of other vendors."""
    names = sorted({name.removeprefix("aten::") for name in internals.operator_names("aten")})
    for name in names:
        base, _, overload = name.partition(".")
        if not _ELSEWHERE.search(base) and internals.has_backend_kernel(f"aten::{name}", "CPU"):
            packet = getattr(torch.ops.aten, base, None)
            found = getattr(packet, overload or "default", None)
            if found is not None:
                yield found


def elsewhere(op: Any) -> bool:
    """True for an overload of layouts the device does not have, of another vendor's library, or of PyTorch's own tests."""
    return _ELSEWHERE.search(registry_name(op).partition(".")[0]) is not None


def way_of(op: Any) -> Way:
    """How an overload runs."""
    name = registry_name(op)
    twin, out = functional_twin(op)
    if name in DATA_DEPENDENT:
        return "host"
    if name in DEVICE_KERNELS or is_composite(op):
        return "own"
    if is_view(op):
        return "view"
    if twin is not None and registry.find(registry_name(twin)) is not None:
        return "lowering"
    return "decomposition" if can_decompose(op) or (out and twin is not None and can_decompose(twin)) else "fallback"
