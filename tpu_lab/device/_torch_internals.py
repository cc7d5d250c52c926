"""Every private name of torch that tpu_lab touches, in one file, so that a torch upgrade can break only this one.

`tests/device/test_torch_internals.py` exercises each name and fails by that name when a version changes it. Two kinds of
places name torch's insides themselves: `_autoload.py` and `device/unavailable.py`, which must work where this file does not
import, and `compiler/`, whose names (`torch._dynamo.backends.common`, `device_interface`) PyTorch documents for backends.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch._logging import _internal
from torch._prims_common import wrappers
from torch.utils import _device, _pytree, backend_registration
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

_C: Any = torch._C
_Result = TypeVar("_Result")
DispatchKey: Any = _C.DispatchKey
DispatchKeySet: Any = _C.DispatchKeySet
META = DispatchKeySet(DispatchKey.Meta)
CPU = DispatchKeySet(DispatchKey.CPU)
AUTOCAST = DispatchKeySet(DispatchKey.AutocastPrivateUse1)

Hooks: Any = _C._acc.PrivateUse1Hooks
"""What C++ asks of an accelerator; a Python class derived from it answers."""
Guard: Any = _C._acc.DeviceGuard
"""What C++ asks when it changes devices."""
DEVICE_TYPE: Any = _C._autograd.DeviceType.PrivateUse1
Generator: Any = _C.Generator
"""The C++ generator, whatever `torch.Generator` is."""
pytree = _pytree
DeviceContext = _device.DeviceContext
"""What `with torch.device(...)` and `torch.set_default_device` enter."""
OpOverload = torch._ops.OpOverload
HigherOrderOperator = torch._ops.HigherOrderOperator

sequence_number: Callable[[], int] = _C._autograd._get_sequence_nr
"""The number that autograd gives this thread's next node."""
autograd_node: Callable[[], Any] = _C._current_autograd_node
"""The autograd node that runs in this thread; None outside a backward pass."""
trace_structured = _internal.trace_structured
"""Writes a record to the structured trace (`TORCH_TRACE`), if somebody keeps it."""
graph_task: Callable[[], int] = _C._current_graph_task_id
"""The number of the backward pass that runs in this thread; -1 outside one."""


def after_backward(callback: Callable[[], None]) -> None:
    """Has the backward pass that runs in this thread call `callback` when it ends."""
    torch.autograd.Variable._execution_engine.queue_callback(callback)


create_empty_tensor: Callable[[Any, torch.dtype], torch.Tensor] = _C._acc.create_empty_tensor
"""A dense tensor on tpu:0 whose storage says 0 bytes (see `tensors.give_size`)."""

conjugate_view: Callable[[torch.Tensor], torch.Tensor] = torch._conj
negative_view: Callable[[torch.Tensor], torch.Tensor] = torch._neg_view
resize_out: Callable[[torch.Tensor, Any], Any] = wrappers._maybe_resize_out
"""Gives an `out=` argument its size, with torch's warning if it holds something of another one."""


def enter_device(name: str, module: Any, hooks: Any, guard: Any) -> None:
    """Names the PrivateUse1 device, and gives C++ its hooks and guard."""
    backend_registration.rename_privateuse1_backend(name)
    backend_registration.generate_methods_for_privateuse1_backend()
    register_module(name, module)
    _C._acc.register_python_privateuseone_hook(hooks)
    _C._acc.register_python_privateuseone_device_guard(guard)


register_module: Callable[[str, Any], None] = torch._register_device_module


def library(namespace: str) -> Any:
    """A library to register kernels in; they live as long as it does."""
    return torch.library.Library(namespace, "IMPL")


def without_autocast() -> AbstractContextManager[None]:
    """Operators called inside are not touched by autocast again."""
    return _C._ExcludeDispatchKeyGuard(AUTOCAST)  # type: ignore[no-any-return]


def call_composite(op: Any) -> Callable[..., Any]:
    """An overload's kernel that is written in other operators (CompositeExplicitAutograd)."""
    return lambda *args, **kwargs: op._op_dk(DispatchKey.CompositeExplicitAutograd, *args, **kwargs)


def swap_contents(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Exchanges what two tensor objects are; False where torch refuses (C++ refers weakly to one of them, as autocast's cache does).

    A graph that still holds `one` would give its gradient to `other`; its backward raises RuntimeError instead.
    """
    if one.is_leaf and one.requires_grad and one._use_count() > 1:  # type: ignore[attr-defined]
        torch.autograd.graph.get_gradient_edge(one).node.register_prehook(_refuse_gradient)
    try:
        _C._swap_tensor_impl(one, other)
    except RuntimeError:
        return False
    return True


def _refuse_gradient(gradients: Any) -> Any:
    raise RuntimeError(
        "backward() of a graph that was made before its parameters moved to another device. Move the module before the forward pass, "
        "or after backward()."
    )


def storage_key(storage: Any) -> int:
    """What is the same for all Python objects of one C++ storage."""
    return storage._cdata  # type: ignore[no-any-return]


def load_meta_kernels() -> None:
    """Imports what torch itself imports within its first meta kernel."""
    import torch.fx.experimental.symbolic_shapes  # noqa: F401


def fake_mode() -> Any:
    """A mode whose tensors have a shape, a dtype and a device and no values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def is_fake(value: Any) -> bool:
    """True for a tensor of a fake mode."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def needs_values() -> tuple[type[Exception], ...]:
    """What an operator raises for fake tensors if its result, or the size of it, depends on values, or if PyTorch has no fake kernel of it."""
    from torch._subclasses import fake_tensor

    return (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException, fake_tensor.UnsupportedOperatorException)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's own table of decompositions in Python, by overload."""
    from torch import _decomp

    _decomp.core_aten_decompositions()  # loads the modules that register them
    return _decomp.global_decomposition_table["post_autograd"]


_set_storage = torch.ops.aten.set_.source_Storage_storage_offset.redispatch


def point_at(tensor: torch.Tensor, storage: Any, offset: int, size: Any, stride: Any) -> None:
    """`tensor.set_(storage, offset, size, stride)` by the meta kernel, which also grows the storage to the bytes needed."""
    _set_storage(META, tensor, storage, offset, size, stride)


def cpu_view_kernel(overload: str) -> Callable[..., torch.Tensor]:
    """The C++ CPU kernel of a view operator; it only makes another tensor over the same storage, so it serves any device."""
    packet, _, name = overload.partition(".")
    return getattr(getattr(torch.ops.aten, packet), name or "default").redispatch  # type: ignore[no-any-return]


_SCALAR_BYTE = torch.zeros((), dtype=torch.uint8)


def is_python_number(scalar: torch.Tensor) -> bool:
    """True if a 0-dim CPU tensor stands for a Python number of the user's (`x * 2.5`), which promotes more weakly than a tensor."""
    dtype = scalar.dtype
    if dtype == torch.bool:
        return False
    return torch.result_type(_SCALAR_BYTE, scalar) != torch.promote_types(torch.uint8, dtype)


def has_backend_kernel(name: str, key: str) -> bool:
    """True if operator `ns::op.overload` has a kernel registered for a dispatch key."""
    return _C._dispatch_has_kernel_for_dispatch_key(name, key)  # type: ignore[no-any-return]


def operator_names(namespace: str) -> list[str]:
    """`ns::op.overload` of every operator of a namespace that the dispatcher knows."""
    return [name for name in _C._dispatch_get_all_op_names() if name.startswith(f"{namespace}::")]


def is_dispatched(name: str) -> bool:
    """True for an operator of the dispatcher (TorchScript's number overloads are not)."""
    return _C._dispatch_has_kernel(name)  # type: ignore[no-any-return]


def factories() -> frozenset[Any]:
    """The functions that make tensors on the default device."""
    return frozenset(_device._device_constructors())


def make_state(optimizer: torch.optim.Optimizer) -> None:
    """Has an optimizer make the state that its first step makes, for parameters that have a gradient.

    Raises whatever an optimizer does that keeps its state another way than torch's own (`_init_group` with lists to fill).
    """
    fill = optimizer._init_group  # type: ignore[attr-defined]
    lists = len(inspect.signature(fill).parameters) - 1
    for group in optimizer.param_groups:
        fill(group, *([] for _ in range(lists)))


def function_modes() -> Sequence[Any]:
    """The function modes that are entered in this thread, innermost first."""
    return torch.overrides._get_current_function_mode_stack()  # type: ignore[no-any-return]


def never_traced(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Dynamo looks neither at the frames of this function nor at any frame below it, whoever's code that is. Costs nothing outside a compile."""
    code = getattr(function, "__code__", None)
    if code is not None:
        skip = _C._dynamo.eval_frame._FrameAction.SKIP
        _C._dynamo.eval_frame.set_code_exec_strategy(code, _C._dynamo.eval_frame._FrameExecStrategy(skip, skip))
    return function


def dynamo_is_loaded() -> bool:
    """True once something of this process compiles; `recompile_limit` and what follows import Dynamo, which takes a second."""
    return "torch._dynamo" in sys.modules


def compile_id() -> str:
    """Which compile of which function runs in this thread, `3/0`: the same for every attempt to trace it."""
    return str(torch._guards.CompileContext.current_compile_id())


def inductor_wrapper() -> Any:
    """The class of what `torch.compile` makes of `backend="inductor"`; its instances are called with a graph and its inputs."""
    return torch._TorchCompileInductorWrapper


def compile_backend(name: str) -> Callable[..., Any]:
    """The backend of torch.compile with this name; imports Dynamo."""
    from torch._dynamo.backends import registry

    return registry.lookup_backend(name)


def recompile_limit() -> int:
    """Beyond this many programs of one function Dynamo stops compiling it."""
    import torch._dynamo

    return int(torch._dynamo.config.recompile_limit)


def tolerate_compile_errors() -> AbstractContextManager[Any]:
    """Inside, what Dynamo or a backend cannot compile runs uncompiled."""
    import torch._dynamo

    return torch._dynamo.config.patch(suppress_errors=True)  # type: ignore[no-any-return]


def drop_dynamo_claims() -> None:
    """Has Dynamo forget the names it put into users' namespaces; it complains about one that it does not find any more."""
    from torch._dynamo import utils

    utils.CleanupManager.instance.clear()
