"""`torch.compile` without `backend=` compiles graphs of the device with the backend `tpu`; `backend="inductor"` there says what to do.

PyTorch resolves both to the same Inductor wrapper before it has seen an input, so the wrapper is told which of the two it was, and
decides when the first graph comes. Graphs of other devices go to Inductor as before.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

from ...errors import OptionError
from .. import _torch_internals as internals

_asked = threading.local()


def apply() -> None:
    """Patches `torch.compile` and PyTorch's Inductor wrapper."""
    compile_: Any = torch.compile

    @functools.wraps(compile_)
    def compile_for_device(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda function: compile_for_device(function, **options)
        _asked.by_default = options.get("backend") is None
        _asked.mode, _asked.options = options.get("mode"), options.get("options")
        try:
            return compile_(model, **options)
        finally:
            del _asked.by_default, _asked.mode, _asked.options

    torch.compile = compile_for_device
    wrapper = internals.inductor_wrapper()
    init, call = wrapper.__init__, wrapper.__call__

    @functools.wraps(init)
    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.tpu_lab_asked = getattr(_asked, "by_default", False), getattr(_asked, "mode", None), bool(getattr(_asked, "options", None))

    @functools.wraps(call)
    def choose(self: Any, graph: Any, inputs: Any, **kwargs: Any) -> Any:
        if not _has_device_tensors(graph, inputs):
            return call(self, graph, inputs, **kwargs)
        by_default, mode, has_options = self.tpu_lab_asked
        if not by_default:
            raise OptionError("torch.compile(backend='inductor') with tensors on tpu", accepted="backend='tpu', or no backend=", remedy=_REMEDY)
        if has_options:
            raise OptionError(
                "torch.compile(options=...) of Inductor with tensors on tpu", accepted="backend='tpu' with its own options", remedy=_REMEDY
            )
        backend = internals.compile_backend("tpu")
        return backend(graph, inputs, **({"mode": mode} if mode else {}))

    wrapper.__init__, wrapper.__call__ = remember, choose


_REMEDY = "torch.compile(f, backend='tpu')"


def _has_device_tensors(graph: Any, inputs: Any) -> bool:
    """Whether an input, or a value made in the graph, is a tensor of the device."""
    values = list(inputs)
    if isinstance(graph, torch.fx.GraphModule):
        values += [node.meta.get("example_value", node.meta.get("val")) for node in graph.graph.nodes]
        values += [*graph.parameters(), *graph.buffers()]
    return any(isinstance(value, torch.Tensor) and value.device.type == "tpu" for value in values)
