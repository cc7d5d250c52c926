"""A forked child has its parent's memory but not the threads that XLA would wait for: there every use of the device raises.

Nothing is asked on the way of an operator. In the child all doors are shut at once: there is no room for results, every
read finds a check that raises, and neither transfers nor compiles are there any more.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, NoReturn

in_child = False
"""True in a forked child of a process that had loaded the device."""


def raise_in_child() -> None:
    """Raises RuntimeError in a forked child."""
    if in_child:
        _refuse()


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(
        "Cannot re-initialize tpu in forked subprocess. To use tpu with multiprocessing, you must use the 'spawn' start method "
        "(torch.multiprocessing.set_start_method('spawn')), or keep tensors of the device out of the child."
    )


def close_in_children() -> None:
    """From now on forked children are refused. jax's own warning at each fork (DataLoader workers!) would say the same, and is left away."""
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
    os.register_at_fork(after_in_child=_close)


def _close() -> None:
    global in_child
    from ..xla import _jax_internals
    from . import checks, events, memory

    in_child = True
    events.observer = None
    memory.ledger.limit = -1
    checks.defer(None, "", "")
    _jax_internals.put = _jax_internals.lower = _refuse
