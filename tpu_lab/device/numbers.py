"""Python numbers as run-time arguments: a value that comes again is put on the device once and then looked up.

A value that was never seen before goes into a `Slot`, a device array whose memory is written again once its program is done.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..xla import _jax_internals as jax_internals
from . import seeds

_LIMIT = 1024
"""How many values of a kind are kept. An array takes 3.5 kB; the numbers of a schedule never come again, those of a model are few."""
_NUMPY = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
_floats: dict[Any, jax.Array] = {}
_integers: dict[int, jax.Array] = {}
_others: dict[Any, jax.Array] = {}
float_array = _floats.get
"""The array of a float that came twice, or None; 0.0 and -0.0 are left to `number`."""
recent: list[Any] = [None] * 64
"""The float last put in a slot, by its hash: one that is found here has come again, and gets an array of its own."""
Slot = tuple[jax.Array, memoryview]
"""A float64 array of shape () and its memory (float64[1]), for a number of one call: a new value costs a write instead of a transfer of 3 µs.

The kernel that took it gives it back with `keep_slot` if the program that reads it is done (its result is ready), and drops it otherwise.
"""
_slots: list[Slot] = []
keep_slot = _slots.append
free_slot = _slots.pop
"""A slot whose memory may be written. Raises IndexError if there is none: `new_slot` makes one."""
new_slot = jax_internals.writable_scalar


def integer(value: int) -> jax.Array:
    """A Python int as an int64 array of shape (); used for storage offsets too. Wraps as torch does above 2**63."""
    found = _integers.get(value)
    if found is None:
        if len(_integers) > _LIMIT:
            _integers.clear()
        host = np.int64(value if -(2**63) <= value < 2**63 else (value + 2**63) % 2**64 - 2**63)
        found = _integers[value] = jax_internals.put_scalar(host)
    return found


def number(value: Any) -> jax.Array:
    """A Python bool, int, float or complex as an array of shape () of bool, int64, float64 or complex128."""
    if value.__class__ is float:
        found = _floats.get(value or str(value))  # 0.0 == -0.0, but they are different numbers
        if found is None:
            if len(_floats) > _LIMIT:
                _floats.clear()
            found = _floats[value or str(value)] = jax_internals.put_scalar(np.float64(value))
        return found
    if value.__class__ is int:
        return integer(value)
    dtype = _NUMPY.get(value.__class__)
    if dtype is None:
        value = _plain(value)
        dtype = _NUMPY[value.__class__]
    key = (dtype, repr(value))
    found = _others.get(key)
    if found is None:
        if len(_others) > _LIMIT:
            _others.clear()
        found = _others[key] = jax_internals.put_scalar(dtype(value))
    return found


def _plain(value: Any) -> Any:
    """A SymInt, SymFloat or numpy number as the Python number it stands for."""
    for kind in (bool, int, float, complex):
        if isinstance(value, kind):
            return kind(value)  # type: ignore[arg-type]
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "__index__"):
        return int(value)
    return float(value)


def random_state(generator: Any, steps: int) -> jax.Array:
    """(seed, offset) of a generator as the uint64[2] array a program receives; the generator moves on by `steps`."""
    seed, offset = seeds.state_of(generator).draw(steps)
    return jax_internals.put(np.array([seed, offset], np.uint64), copy=True)
