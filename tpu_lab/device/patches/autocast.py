"""`torch.autocast("tpu")`: which operators run in the lower precision, in float32, or in the widest of their operands' dtypes.

The lists are those of CUDA's autocast (https://pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _torch_internals as internals
from .._torch_internals import pytree

LOWER = (
    "conv1d conv2d conv3d conv1d.padding conv2d.padding conv3d.padding conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution "
    "_convolution addmm addmv addr matmul einsum mm mv linear linalg_vecdot linalg_multi_dot addbmm baddbmm bmm chain_matmul "
    "_thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention prelu"
)
FULL = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus "
    "layer_norm native_layer_norm group_norm rms_norm norm.Scalar norm.ScalarOpt_dim frobenius_norm.dim nuclear_norm cosine_similarity "
    "poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss "
    "margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits "
    "dist pdist cdist renorm logsumexp prod prod.dim_int softmax.int log_softmax.int cumprod cumsum sum sum.dim_IntList upsample_nearest1d "
    "upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d linalg_vector_norm "
    "linalg_matrix_norm"
)
WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add cat stack"
_kept: list[Any] = []


def _cast(dtype: torch.dtype) -> Callable[[Any], Any]:
    def one(tensor: torch.Tensor) -> torch.Tensor:
        floating = tensor.is_floating_point() and tensor.dtype != torch.float64
        return tensor.to(dtype) if floating and tensor.device.type == "tpu" and tensor.dtype != dtype else tensor

    return lambda values: pytree.tree_map_only(torch.Tensor, one, values)


def _kernel(op: Any, choose: Callable[[tuple[Any, ...], dict[str, Any]], torch.dtype | None]) -> Callable[..., Any]:
    takes_dtype = any(a.name == "dtype" for a in op._schema.arguments)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with internals.without_autocast():
            dtype = choose(args, kwargs)
            if dtype is None or (takes_dtype and kwargs.get("dtype") is not None):
                return op(*args, **kwargs)
            cast = _cast(dtype)
            return op(*cast(args), **cast(kwargs))

    return kernel


def _lower(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype:
    return torch.get_autocast_dtype("tpu")


def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype:
    return torch.float32


def _widest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    found: list[torch.dtype] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point() and tensor.device.type == "tpu":
            found.append(tensor.dtype)
        return tensor

    pytree.tree_map_only(torch.Tensor, note, (args, kwargs))
    if not found or len(set(found)) == 1:
        return None
    return torch.float32 if torch.float32 in found else found[0]


def _banned(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
        "Use torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which are safe to autocast."
    )


def apply() -> None:
    """Registers the policies."""
    fallthrough = internals.library("_")
    fallthrough.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    library = internals.library("aten")
    _kept.extend([fallthrough, library])
    for names, choose in ((LOWER, _lower), (FULL, _full), (WIDEST, _widest)):
        for name in names.split():
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
            if op is not None:
                library.impl(name, _kernel(op, choose), "AutocastPrivateUse1")
    library.impl("binary_cross_entropy", _banned, "AutocastPrivateUse1")
