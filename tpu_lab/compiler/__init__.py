"""`torch.compile(backend="tpu")`: Dynamo's graphs, split by AOTAutograd into forward and backward, each one XLA program."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before jax is imported: with libtpu installed it would look for a TPU
