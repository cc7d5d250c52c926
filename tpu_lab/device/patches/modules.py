"""`module.to("tpu")` keeps its Parameter objects, as it does on cuda: ties, and an optimizer made before, stay valid.

torch replaces parameters when it cannot set `.data` across device types. Here the new contents are swapped into the old
object. Only moves between CPU and tpu take this way, and no global switch of torch is touched.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch
from torch.nn import Module, Parameter

from .. import _torch_internals as internals

_local = threading.local()


def apply() -> None:
    """Patches `torch.nn.Module._apply`."""
    original: Any = Module._apply

    @functools.wraps(original)
    def apply_to(self: Module, fn: Any, recurse: bool = True) -> Module:
        if not _crosses(self, fn):
            return original(self, fn, recurse)  # type: ignore[no-any-return]
        if recurse:
            for child in self.children():
                child._apply(fn)  # type: ignore[no-untyped-call]
        outermost = not hasattr(_local, "replaced")
        if outermost:
            _local.replaced = {}
        try:
            for key, param in self._parameters.items():
                if param is not None:
                    self._parameters[key] = _moved(param, fn)
        finally:
            if outermost:
                del _local.replaced
        for key, value in self._buffers.items():
            if value is not None:
                self._buffers[key] = fn(value)
        return self

    Module._apply = apply_to  # type: ignore[method-assign]
    from torch.nn import RNNBase

    flatten = RNNBase.flatten_parameters

    @functools.wraps(flatten)
    def flatten_parameters(self: RNNBase) -> None:
        weights = self._flat_weights
        if weights and isinstance(weights[0], torch.Tensor) and weights[0].device.type == "tpu":
            return
        flatten(self)

    RNNBase.flatten_parameters = flatten_parameters  # type: ignore[method-assign]


def _crosses(module: Module, fn: Any) -> bool:
    """True if `fn` moves some parameter of this module itself between CPU and tpu."""
    for param in module._parameters.values():
        if param is None or type(param) is not Parameter or internals.is_fake(param.data):
            continue
        with torch.no_grad():
            probe = fn(torch.empty(0, dtype=param.dtype, device=param.device))
        if {probe.device.type, param.device.type} == {"cpu", "tpu"}:
            return True
    return False


def _moved(param: Parameter, fn: Any) -> Parameter:
    replaced: dict[int, tuple[Parameter, Parameter]] = getattr(_local, "replaced", {})
    if id(param) in replaced:
        return replaced[id(param)][1]
    with torch.no_grad():
        applied = fn(param)
        if applied is param or applied.device.type == param.device.type:
            return param
        grad = param.grad
        moved_grad = fn(grad) if grad is not None else None
    param.grad = None
    fresh = Parameter(applied.detach(), param.requires_grad)
    out = param if internals.swap_contents(param, fresh) else fresh
    if out is fresh:
        replaced[id(param)] = (param, fresh)  # the old one is kept alive so that its id stays taken
    if moved_grad is not None:
        out.grad = moved_grad
    return out
