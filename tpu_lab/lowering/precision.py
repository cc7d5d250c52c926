"""How exactly matmuls and convolutions multiply: one choice for all lowerings."""

from __future__ import annotations

import numpy as np
from jax import lax

from .promotion import is_complex, is_floating


def matmul_precision(dtype: np.dtype) -> lax.Precision:
    """The precision of products of `dtype`: full float32 where PyTorch on the CPU is (a TPU would else multiply in bfloat16)."""
    wide = is_complex(dtype) or (is_floating(dtype) and np.dtype(dtype).itemsize >= 4)
    return lax.Precision.HIGHEST if wide else lax.Precision.DEFAULT
