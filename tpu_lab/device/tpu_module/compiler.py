"""`torch.tpu.compiler`: options for XLA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .. import policies


@contextmanager
def custom_compiler_options(options: Mapping[str, str]) -> Iterator[None]:
    """XLA options for every program built inside the block; nested blocks merge. An option XLA does not know raises RuntimeError at the compile.

    `xla_optimization_level` and `xla_memory_fitting_level` take O0 to O3 as on TorchTPU; the second has no effect on XLA:CPU.
    """
    with policies.compiler_options(options):
        yield
