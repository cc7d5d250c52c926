"""Keeps torch.compile's complaints out of a compiled cell: what cannot be compiled runs uncompiled, and the record says so."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..device import _torch_internals as internals

_LOGGERS = ("torch._dynamo", "torch._subclasses", "torch._logging", "torch._functorch", "torch.fx")


@contextmanager
def tolerant() -> Iterator[None]:
    """Inside, what Dynamo or a backend cannot compile, or would trace for too long, runs uncompiled, so that the user's own error comes
    out, and nothing is logged that the watch reports. A log level set by the user (`TORCH_LOGS`, or a logger's own level) stays as it is."""
    from ..compiler.trace_limit import limited  # imports Dynamo, which takes seconds

    changed = [
        logger for name in _LOGGERS if (logger := logging.getLogger(name)).getEffectiveLevel() == logging.WARNING and "TORCH_LOGS" not in os.environ
    ]
    before = [logger.level for logger in changed]
    for logger in changed:
        logger.setLevel(logging.CRITICAL)
    try:
        with internals.tolerate_compile_errors(), limited():
            yield
    finally:
        for logger, level in zip(changed, before, strict=True):
            logger.setLevel(level)
