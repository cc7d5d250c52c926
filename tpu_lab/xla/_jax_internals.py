"""Every private name of jax and jaxlib that tpu_lab touches, in one file, so that a jax upgrade can break only this one.

`tests/xla/test_jax_internals.py` exercises each name and fails by that name when a version changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import core
from jax._src.interpreters import pxla
from jax._src.lib import _jax  # type: ignore[attr-defined]

ShapedArray = core.ShapedArray
XlaRuntimeError = jax.errors.JaxRuntimeError
LoadedExecutable = _jax.LoadedExecutable

_device = jax.devices()[0]
_devices = [_device]
_sharding = jax.sharding.SingleDeviceSharding(_device)
_batched_device_put = _jax.batched_device_put
_zero_copy = _jax.HostBufferSemantics.ZERO_COPY


def device() -> jax.Device:
    """The one jax device behind `tpu:0`."""
    return _device


def put(host: np.ndarray[Any, Any], copy: bool) -> jax.Array:
    """A device array with the contents and exact dtype of a numpy array, whatever `jax_enable_x64` says.

    With `copy=False` the array may keep using the memory of `host`, which nobody may write to any more.
    """
    aval = ShapedArray(host.shape, host.dtype)
    return _batched_device_put(aval, _sharding, [host], _devices, True, copy, _zero_copy, True)  # type: ignore[no-any-return]


_handlers: dict[tuple[tuple[int, ...], np.dtype], Any] = {}


def result_handlers(avals: Sequence[Any]) -> list[Any]:
    """What turns raw execution results into jax arrays; one object per shape and dtype, shared by all programs."""
    found = []
    for aval in avals:
        key = (tuple(aval.shape), np.dtype(aval.dtype))
        handler = _handlers.get(key)
        if handler is None:
            if len(_handlers) > 100_000:
                _handlers.clear()
            handler = _handlers[key] = pxla.global_aval_to_result_handler(ShapedArray(*key), _sharding, True)
        found.append(handler)
    return found


def compile_flat(
    function: Callable[..., Any], avals: Sequence[Any], donate: Sequence[int], options: dict[str, Any] | None
) -> tuple[Any, list[Any], Any]:
    """Compiles a function of flat array arguments returning a flat sequence of arrays.

    Returns the loaded executable (call `execute_sharded(arrays).consume_with_handlers(handlers)`, which checks neither
    dtypes nor the 64-bit switch), its result handlers, and the `jax.stages.Compiled` for analyses. Arguments are all kept.
    """
    with jax.enable_x64(True):
        lowered = jax.jit(function, donate_argnums=tuple(donate), keep_unused=True).lower(*avals)
        compiled = lowered.compile(compiler_options=options)
    executable = compiled._executable.xla_executable  # type: ignore[attr-defined]
    return executable, result_handlers(jax.tree_util.tree_leaves(lowered.out_info)), compiled
