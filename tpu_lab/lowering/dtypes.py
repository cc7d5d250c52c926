"""The dtypes of torch and what they are called in jax; the two sets that matter agree bit for bit."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

_PAIRS: tuple[tuple[torch.dtype, type], ...] = (
    (torch.bool, np.bool_),
    (torch.uint8, np.uint8),
    (torch.int8, np.int8),
    (torch.int16, np.int16),
    (torch.uint16, np.uint16),
    (torch.int32, np.int32),
    (torch.uint32, np.uint32),
    (torch.int64, np.int64),
    (torch.uint64, np.uint64),
    (torch.float16, np.float16),
    (torch.bfloat16, jnp.bfloat16.dtype.type),
    (torch.float32, np.float32),
    (torch.float64, np.float64),
    (torch.complex64, np.complex64),
    (torch.complex128, np.complex128),
    (torch.float8_e4m3fn, jnp.float8_e4m3fn.dtype.type),
    (torch.float8_e5m2, jnp.float8_e5m2.dtype.type),
    (torch.float8_e4m3fnuz, jnp.float8_e4m3fnuz.dtype.type),
    (torch.float8_e5m2fnuz, jnp.float8_e5m2fnuz.dtype.type),
    (torch.float8_e8m0fnu, jnp.float8_e8m0fnu.dtype.type),
)
TORCH_TO_JAX: dict[torch.dtype, np.dtype] = {t: np.dtype(j) for t, j in _PAIRS}
JAX_TO_TORCH: dict[np.dtype, torch.dtype] = {j: t for t, j in TORCH_TO_JAX.items()}
SUPPORTED = frozenset(TORCH_TO_JAX)


class NoSuchDtype(TypeError):
    """A dtype that torch has and the device has not."""


def to_jax(dtype: torch.dtype) -> np.dtype:
    """The numpy dtype that jax uses for `dtype`. Raises NoSuchDtype, a TypeError, for a dtype without one (quantized, complex32)."""
    try:
        return TORCH_TO_JAX[dtype]
    except KeyError:
        names = ", ".join(sorted(str(d).removeprefix("torch.") for d in SUPPORTED))
        raise NoSuchDtype(
            f"dtype {dtype} does not exist on the device tpu; accepted are {names}. Convert the tensor with .to(dtype) first."
        ) from None


def to_torch(dtype: np.dtype) -> torch.dtype:
    """The torch dtype of a jax array's dtype."""
    return JAX_TO_TORCH[np.dtype(dtype)]
