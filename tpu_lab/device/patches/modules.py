"""`module.to("tpu")` keeps its Parameter objects, as it does on cuda: ties, and an optimizer made before, stay valid.

torch replaces parameters when it cannot set `.data` across device types. Here the new contents are swapped into the old
object. Only moves between CPU and tpu take this way, and no global switch of torch is touched.
"""

from __future__ import annotations

import functools
import threading
import warnings
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
        outermost = not hasattr(_local, "replaced")
        if outermost:
            _local.replaced = {}
        try:
            return _move(self, fn, recurse) if _crosses(self, fn) else original(self, fn, recurse)
        finally:
            if outermost:
                del _local.replaced

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


def _move(module: Module, fn: Any, recurse: bool) -> Module:
    """`Module._apply` of a module whose parameters change between CPU and tpu."""
    if recurse:
        for child in module.children():
            child._apply(fn)
    for key, param in module._parameters.items():
        if param is not None:
            module._parameters[key] = _moved(param, fn)
    for key, value in module._buffers.items():
        if value is not None:
            module._buffers[key] = fn(value)
    return module


def _crosses(module: Module, fn: Any) -> bool:
    """True if `fn` moves some parameter of this module itself between CPU and tpu."""
    for param in module._parameters.values():
        if param is None or not isinstance(param, Parameter) or type(param.data) is not torch.Tensor:
            continue
        with torch.no_grad():
            probe = fn(torch.empty(0, dtype=param.dtype, device=param.device))
        if {probe.device.type, param.device.type} == {"cpu", "tpu"}:
            return True
    return False


def _moved(param: Parameter, fn: Any) -> Parameter:
    replaced: dict[int, tuple[Parameter, Parameter]] = _local.replaced
    if id(param) in replaced:
        return replaced[id(param)][1]
    with torch.no_grad():
        applied = fn(param)
        grad = param.grad
        if applied.device.type == param.device.type:
            param.data = applied
            if grad is not None and param.grad is not None:
                param.grad.data = fn(grad)
            return param
        moved_grad = fn(grad) if grad is not None else None
    param.grad = None
    fresh = Parameter(applied.detach(), param.requires_grad)
    hooks, accumulated = param._backward_hooks, param._post_accumulate_grad_hooks
    if internals.swap_contents(param, fresh):
        out = param
        out._backward_hooks, out._post_accumulate_grad_hooks = hooks, accumulated
    else:
        out = fresh
        replaced[id(param)] = (param, fresh)  # the old one is kept alive so that its id stays taken
        _warn_of_replacing()
    if moved_grad is not None:
        out.grad = moved_grad
    return out


def _warn_of_replacing() -> None:
    warnings.warn(
        "torch itself still refers to a parameter that is moved between cpu and tpu (autocast's cache does), so the module got a new Parameter "
        "object for it. An optimizer made before the move still has the old one: move the module outside of the autocast block.",
        stacklevel=2,
    )
