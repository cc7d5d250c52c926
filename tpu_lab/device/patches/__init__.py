"""What has to be patched in torch for a device made in Python, one subject a file. Each patch acts on `tpu` tensors and storages only."""

from __future__ import annotations


def apply() -> None:
    """Applies every patch. Cheap (attributes are set, nothing is computed); jax is not imported."""
    from . import accelerator, autocast, compile, dynamo, exchange, generator, modules, storage

    for part in (storage, exchange, modules, generator, accelerator, autocast, dynamo, compile):
        part.apply()
