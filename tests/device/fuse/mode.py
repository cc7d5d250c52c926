"""Running code in the mode DEFER_AND_FUSE, with the tier that a test is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import tpu_lab  # noqa: F401  registers the device
from tpu_lab.device import modes
from tpu_lab.device.fuse import clusters, finish, governor, loops, pace


@contextmanager
def deferring(policy: str = "always") -> Iterator[None]:
    """`policy`: see `clusters.policy`. Nothing is known of any cluster at the start."""
    torch.ones(1, device="tpu")
    before, clusters.policy = clusters.policy, policy
    clusters.forget()
    try:
        with modes.set_eager_mode(modes.EagerMode.DEFER_AND_FUSE):
            finish.current.trace = finish.fresh()
            finish.current.limit = loops.GRAPH_LIMIT
            finish.current.patience = governor.Patience()
            finish.current.pace = pace.Pace()
            yield
    finally:
        clusters.policy = before
        finish.current.trace = finish.fresh()
