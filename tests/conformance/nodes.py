"""What is checked: a node is one operator, module or optimizer in one variant with one dtype that PyTorch's CPU kernels support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"),
        *("complex64", "complex128"),
    )
}
NO_DTYPE = "any"
"""The dtype of a node whose samples choose their own."""
COMPILED_DTYPES = ("float32", "bfloat16", "int64", "bool")
"""Dtypes of the variants `compile` and `fuse`."""
FOREACH_DATABASES = ("foreach_unary_op_db", "foreach_binary_op_db", "foreach_pointwise_op_db", "foreach_reduce_op_db", "foreach_other_op_db")
VARIANTS = ("functional", "inplace", "out", "noncontiguous", "conj", "neg", "gradients", "gradgrad", "errors", "compile", "fuse")


@dataclass(frozen=True, order=True)
class Node:
    """One thing to check. `op` is an OpInfo's full name, `nn.…` of a module as `module:…`, of an optimizer as `optim:…`."""

    op: str
    variant: str
    dtype: str

    @property
    def key(self) -> str:
        """`op|variant|dtype`, the node's name in the journal."""
        return f"{self.op}|{self.variant}|{self.dtype}"

    @classmethod
    def of(cls, key: str) -> Node:
        """The node of a key."""
        return cls(*key.split("|"))


@cache
def operators() -> dict[str, Any]:
    """Every OpInfo by its full name: `op_db` and the foreach databases."""
    found = {op.full_name: op for op in invocations.op_db}
    for name in FOREACH_DATABASES:
        found |= {op.full_name: op for op in getattr(invocations, name)}
    return found


@cache
def modules() -> dict[str, Any]:
    """Every ModuleInfo by its node name."""
    return {f"module:{info.name}": info for info in module_db}


@cache
def optimizers() -> dict[str, Any]:
    """Every OptimizerInfo with dense gradients by its node name."""
    return {f"optim:{info.name}": info for info in optim_db if not info.only_supports_sparse_grads}


def all_nodes() -> Iterator[Node]:
    """Every node, variants of one operator together."""
    for name, op in operators().items():
        yield from _of_operator(name, op)
    for name, info in modules().items():
        for dtype in DTYPES:
            if DTYPES[dtype] in info.supported_dtypes("cpu"):
                yield Node(name, "functional", dtype)
                yield Node(name, "gradients", dtype)
                if dtype in COMPILED_DTYPES:
                    yield Node(name, "compile", dtype)
                    yield Node(name, "fuse", dtype)
    for name in optimizers():
        yield from (Node(name, "functional", dtype) for dtype in ("float32", "float64"))


def _of_operator(name: str, op: Any) -> Iterator[Node]:
    forward, backward = op.supported_dtypes("cpu"), op.supported_backward_dtypes("cpu")
    for dtype_name, dtype in DTYPES.items():
        if dtype not in forward:
            continue
        continuous = dtype.is_floating_point or dtype.is_complex
        differentiable = continuous and op.supports_autograd and dtype in backward
        wanted = {
            "functional": True,
            "inplace": op.get_inplace() is not None,
            "out": op.supports_out,
            "noncontiguous": True,
            "conj": dtype.is_complex and op.test_conjugated_samples,
            "neg": continuous and op.test_neg_view,
            "gradients": differentiable,
            "gradgrad": differentiable and op.supports_gradgrad,
            "compile": dtype_name in COMPILED_DTYPES,
            "fuse": dtype_name in COMPILED_DTYPES,
        }
        yield from (Node(name, variant, dtype_name) for variant, there in wanted.items() if there)
    if op.error_inputs_func is not None:
        yield Node(name, "errors", NO_DTYPE)
