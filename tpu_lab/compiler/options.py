"""What `torch.compile(backend="tpu", mode=..., options=...)` accepts.

`mode` takes PyTorch's spellings; none changes the program, because what they choose between (CUDA graphs, Triton autotuning) does not
exist here: XLA always picks one program, and a run is one call already. `options` is a dict of the fields of `Options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import OptionError, one_of

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")


@dataclass(frozen=True)
class Options:
    """Options of one compiled function."""

    memory_budget: float = 1.0
    """Share of the activations that training may keep for backward, 0 to 1; the rest is computed again (PyTorch's partitioner)."""
    xla: Mapping[str, Any] = field(default_factory=dict)
    """XLA options by name, as `torch.tpu.compiler.custom_compiler_options` takes them."""
    buckets: Any = None
    """Sizes to pad a changing first dimension to: `power_of_two`, or a list of sizes. Only graphs whose rows are proven apart are padded."""


def read(mode: Any, options: Any) -> Options:
    """The options of a call. Raises OptionError for a mode or option that is not accepted."""
    if mode is not None and mode not in MODES:
        raise OptionError(f"torch.compile(backend='tpu') with mode={mode!r}", accepted=one_of(MODES))
    given = dict(options or {})
    known = [one.name for one in fields(Options)]
    for name in given:
        if name not in known:
            raise OptionError(f"torch.compile(backend='tpu') with the option {name!r}", accepted=one_of(known))
    found = Options(**given)
    budget = found.memory_budget
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 <= budget <= 1:
        raise OptionError(f"torch.compile(backend='tpu') with memory_budget={budget!r}", accepted="a number from 0 to 1")
    if not isinstance(found.xla, Mapping) or not all(isinstance(name, str) for name in found.xla):
        raise OptionError(f"torch.compile(backend='tpu') with xla={found.xla!r}", accepted="a dict of XLA options by name")
    if not _are_buckets(found.buckets):
        raise OptionError(f"torch.compile(backend='tpu') with buckets={found.buckets!r}", accepted="'power_of_two', or a list of sizes from 1")
    return found


def _are_buckets(given: Any) -> bool:
    if given is None or given == "power_of_two":
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(type(size) is int and size >= 1 for size in given)


def bucket(size: int, buckets: Any) -> int:
    """The size to pad to; the size itself where no bucket is large enough."""
    if buckets == "power_of_two":
        return 1 << max(size - 1, 0).bit_length()
    return min((one for one in buckets if one >= size), default=size)
