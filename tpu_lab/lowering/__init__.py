"""What each ATen operator means in jax: pure functions array -> array, one file per family (see `registry`)."""

from __future__ import annotations

import pkgutil

_MACHINERY = frozenset({"dtypes", "missing", "promotion", "registry", "rng"})
FAMILIES = tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _MACHINERY))
"""The modules of this package that register lowerings."""
