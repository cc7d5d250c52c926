"""How exactly the lowerings of neural networks compute: one choice for all of them."""

from __future__ import annotations

import numpy as np
from jax import Array, lax

from .promotion import cast, is_complex, is_floating, opmath


def matmul_precision(dtype: np.dtype) -> lax.Precision:
    """The precision of products of `dtype`: full float32 where PyTorch on the CPU is (a TPU would else multiply in bfloat16)."""
    wide = is_complex(dtype) or (is_floating(dtype) and np.dtype(dtype).itemsize >= 4)
    return lax.Precision.HIGHEST if wide else lax.Precision.DEFAULT


def widened(x: Array) -> Array:
    """x in the dtype it is computed in (`opmath`): 16- and 8-bit floats as float32."""
    return cast(x, opmath(x.dtype))
