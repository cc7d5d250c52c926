"""Registers the device's kernels with torch's dispatcher.

Three layers, in the dispatcher's own order: what the device does itself (memory, views, copies), one kernel per overload
that a lowering serves (in-place and `out=` forms included), and a boxed fallback for everything else, which tries a
decomposition (one program) and then the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..lowering import registry
from . import _torch_internals as internals
from . import deferral, factories, fallback, fastpath, faults, list_kernels, masks, modes, races, refusals, strict, transfer, views
from .decomposed import run_decomposed
from .own_ops import OWN_KERNELS
from .plan import functional_twin, is_composite, is_view, plan_for, registry_name

DEVICE_KERNELS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": factories.empty,
    "empty_strided": factories.empty_strided,
    "resize_": factories.resize_,
    "copy_": transfer.copy_,
    "_to_copy": transfer.to_copy,
    "_copy_from": transfer.copy_from,
    "_copy_from_and_resize": transfer.copy_from_and_resize,
    "_local_scalar_dense": transfer.local_scalar,
    "set_": views.set_empty,
    "set_.source_Storage": views.set_source_storage,
    "set_.source_Tensor": views.set_source_tensor,
    "set_.source_Storage_storage_offset": views.set_storage_offset,
    **{name: views.view_kernel(name) for name in views.VIEW_KERNELS},
    **OWN_KERNELS,
}
"""What the device does itself, by overload."""
_READ = frozenset({"copy_", "_to_copy", "_copy_from", "_local_scalar_dense", "equal", "nonzero"})
"""Those that look at contents, and so may lose a race."""
_NEVER = frozenset(
    {"_unsafe_view", "empty_like", "new_empty", "new_empty_strided", "lift", "copy", "_to_copy", "empty.names", "empty_permuted", "resize"}
    | {"_linalg_check_errors"}
)
"""Overloads whose composite in torch is better than a program: they only make tensors or views, or word an error by values they read."""

_libraries: list[Any] = []


def _library(namespace: str) -> Any:
    library = internals.library(namespace)
    _libraries.append(library)
    return library


def refuse_layout(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Serves all operators on tensors the device cannot have."""
    raise NotImplementedError(fallback.no_such_layout(f"an operand or the result of {op}"))


def register_all() -> int:
    """Registers every kernel of the device; returns how many overloads got one."""
    aten = _library("aten")
    for name, function in DEVICE_KERNELS.items():
        aten.impl(name, internals.never_traced(races.patient(function) if name in _READ else function), "PrivateUse1")
    for key in ("SparsePrivateUse1", "SparseCsrPrivateUse1", "QuantizedPrivateUse1", "NestedTensorPrivateUse1"):
        _library("_").fallback(refuse_layout, key)
    done = set(DEVICE_KERNELS)
    for overload in _served_overloads():
        name = registry_name(overload)
        if name in done or overload.namespace != "aten":
            continue
        done.add(name)
        aten.impl(name, kernel_for(overload), "PrivateUse1")
    return len(done)


def _served_overloads() -> list[Any]:
    """Every ATen overload that a lowering serves and that may have a kernel of its own."""
    found = []
    bases = {name.partition(".")[0] for name in registry.all_lowerings() if "::" not in name}
    for base in sorted(bases):
        for packet_name in (base, base + "_"):
            packet = getattr(torch.ops.aten, packet_name, None)
            if packet is None:
                continue
            for overload_name in packet.overloads():
                overload = getattr(packet, overload_name)
                if not internals.is_dispatched(overload.name()) or registry_name(overload) in _NEVER or is_view(overload) or is_composite(overload):
                    continue
                twin, _ = functional_twin(overload)
                if twin is not None and not is_view(twin) and registry.find(registry_name(twin)) is not None:
                    found.append(overload)
    return found


def _not_served_yet(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("this kernel was not called yet")


def kernel_for(overload: Any) -> Callable[..., Any]:
    """The kernel of an overload with a lowering. The plan is made at the first call, as there are over a thousand."""
    serve: Callable[..., Any] | None = None
    deferring: Callable[..., Any] = _not_served_yet

    def kernel(*args: Any, **kwargs: Any) -> Any:
        nonlocal serve, deferring
        try:
            if serve is None:
                serve, deferring = _servers(overload)
            if modes.fusing and (modes.everywhere or modes.defers_here()):
                if not deferral.loaded:
                    deferral.load()
                return deferring(*args, **kwargs)
            return serve(*args, **kwargs)
        except Exception as error:
            fault = error
        if serve is not None and races.lost(fault):
            try:
                return races.once_more(kernel, args, kwargs)
            except Exception as error:
                fault = error
        try:
            raise faults.translate(fault, overload, args) from None
        finally:
            del fault  # an exception and a frame that hold each other would keep the operands alive

    return internals.never_traced(kernel)


def _servers(overload: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The kernel of an overload where operators run at once, and where they are deferred."""
    plan = plan_for(overload)

    def general(*args: Any, **kwargs: Any) -> Any:
        return strict.run(plan, args, kwargs)

    if fastpath.can_be_quick(plan):
        quick, deferring = fastpath.quick_kernels(plan)
        return refusals.checking(plan, quick), refusals.checking(plan, deferring)
    if plan.name in masks.INDEXING:
        return (masks.kernel(plan.name, general),) * 2
    if list_kernels.can_be_quick(plan):
        quick, deferring = list_kernels.list_kernels(plan)
        return refusals.checking(plan, quick), refusals.checking(plan, deferring)
    return (refusals.checking(plan, general),) * 2


_patiently_decomposed = races.patient(run_decomposed)


@internals.never_traced
def serve_other(op: Any, *args: Any, **kwargs: Any) -> Any:
    """The boxed fallback: an operator without a lowering runs as one decomposed program if it can, else on the CPU."""
    try:
        return _patiently_decomposed(op, args, kwargs)
    except Exception as error:
        raise faults.translate(error, op, args) from None
