"""Keeps Dynamo out of the device's own code and jax's, which it would otherwise trace after a graph break.

Dynamo is imported late (by the first `torch.compile`) and must not be imported for this: its table of skipped files is
extended as soon as its module is loaded.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_MODULE = "torch._dynamo.trace_rules"


def _skip_ours(trace_rules: Any) -> None:
    for name in ("tpu_lab", "jax", "jaxlib"):
        trace_rules.add(name)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds one module as others do, and acts once it is loaded."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of Dynamo's module with a loader that acts afterwards; None for every other module."""
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self.inner.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Loads the module, then extends its table."""
        self.inner.exec_module(module)
        _skip_ours(module)


def apply() -> None:
    """Extends Dynamo's table now, or when it is imported."""
    loaded = sys.modules.get(_MODULE)
    if loaded is not None:
        _skip_ours(loaded)
    else:
        sys.meta_path.insert(0, _AfterImport())
