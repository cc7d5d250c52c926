"""What the schema of an ATen overload says about calling it: which arguments are tensors, numbers, part of the program, written to.

An overload is served by the lowering of its functional twin: `add_.Tensor` and `add.out` by that of `add.Tensor`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from ..lowering import registry
from ..lowering.registry import Lowering
from . import _torch_internals as internals

NOT_PASSED = frozenset({"layout", "device", "pin_memory", "generator", "memory_format"})
"""Arguments a lowering does not see."""


@dataclass(frozen=True)
class Argument:
    """One argument of a schema. `kind`: `tensor`, `tensors` (a list), `number`, `numbers` (a list) or `static`."""

    name: str
    kind: str
    default: Any
    has_default: bool
    keyword_only: bool
    written: bool
    passed: bool

    def is_absent_factor(self, value: Any) -> bool:
        """True for an `alpha`, `beta` or `value` left at its default 1: a constant, so that no multiplication is left of it."""
        return value.__class__ is int and value == 1 and self.kind == "number" and self.default.__class__ is int and self.default == 1


@dataclass(eq=False)
class Plan:
    """How an overload is called and served. `out` names its `out=` arguments; `programs` caches what was built for it.

    `host_kernel`: whether it may run as a host kernel (None: not asked yet)."""

    name: str
    op: Any
    functional: Any
    lowering: Lowering | None
    arguments: tuple[Argument, ...]
    out: tuple[str, ...]
    in_place: bool
    returns_list: bool
    return_count: int
    programs: dict[Any, Any] = field(default_factory=dict)
    host_kernel: bool | None = None

    @functools.cached_property
    def functional_base(self) -> str:
        """The functional operator's name without overload: `arange` for `arange.out`, `add` for `add_.Tensor`."""
        return registry_name(self.functional or self.op).partition(".")[0]

    @property
    def aten(self) -> str:
        """The name users know, e.g. `aten.add.Tensor`."""
        return str(self.op)


def _kind(argument: Any, static: frozenset[str] | None) -> str:
    text = str(argument.type)
    if "Tensor" in text:
        return "tensors" if "List[" in text else "tensor"
    if "number" in text or text in ("float", "Optional[float]"):
        if static is None or argument.name in static:
            return "static"
        return "numbers" if "List[" in text else "number"
    return "static"


@cache
def plan_for(op: Any) -> Plan:
    """The plan of an `OpOverload`. Its lowering is None where the registry has none."""
    schema = op._schema
    functional, out = functional_twin(op)
    lowering = registry.find(registry_name(functional)) if functional is not None else None
    static = lowering.static if lowering is not None else None  # a decomposition is traced with its numbers in it
    arguments = tuple(
        Argument(
            a.name,
            _kind(a, static),
            a.default_value if a.has_default_value() else None,
            a.has_default_value(),
            a.kwarg_only,
            bool(a.alias_info is not None and a.alias_info.is_write) or bool(lowering and a.name in lowering.mutates),
            a.name not in NOT_PASSED,
        )
        for a in schema.arguments
    )
    in_place = not out and any(a.written for a in arguments) and bool(lowering is None or not lowering.mutates)
    returns = schema.returns
    returns_list = len(returns) == 1 and "List[" in str(returns[0].type)
    return Plan(registry_name(op), op, functional, lowering, arguments, out, in_place, returns_list, len(returns))


def registry_name(op: Any) -> str:
    """`add.Tensor`, `relu`, `quantized_decomposed::quantize_per_tensor`: how the registry names an overload."""
    name = op.name()
    return name.removeprefix("aten::")  # type: ignore[no-any-return]


def functional_twin(op: Any) -> tuple[Any, tuple[str, ...]]:
    """The overload that computes the same without writing, and the names of `op`'s out arguments.

    An overload that writes and whose own name has a lowering (`_fused_adam_`) is its own twin; None if there is no twin.
    """
    schema = op._schema
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if not written or registry_name(op) in registry.all_lowerings():
        return op, ()
    namespace = getattr(torch.ops, op.namespace)
    base = schema.name.split("::")[1]
    out = tuple(a.name for a in written if a.kwarg_only)
    packet_name = base if out else base.removesuffix("_")
    if not out and packet_name == base:
        return None, out
    packets = [
        getattr(namespace, name, None)
        for name in (packet_name, packet_name + "_functional", *([f"_{packet_name}"] if base.endswith("_backward") else []))
    ]
    wanted = [(a.name, _bare(a)) for a in schema.arguments if a.name not in out]
    for candidate in (getattr(packet, overload) for packet in packets if packet is not None for overload in packet.overloads()):
        arguments = candidate._schema.arguments
        if any(a.alias_info is not None and a.alias_info.is_write for a in arguments):
            continue
        if [(a.name, _bare(a)) for a in arguments if a.name not in ("dtype", "layout", "device", "pin_memory", "memory_format")] == [
            w for w in wanted if w[0] not in ("dtype", "layout", "device", "pin_memory", "memory_format")
        ]:
            return candidate, out
    return None, out


def _bare(argument: Any) -> str:
    return str(argument.type).replace("Optional[", "").replace("]", "")


def is_view(op: Any) -> bool:
    """True if a result may share memory with an argument without writing to it (`Tensor(a)` in the schema)."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)


def is_composite(op: Any) -> bool:
    """True for an overload that is defined by others below autograd; it must get no kernel of its own, or its gradient is lost.

    One that has a kernel on the CPU all the same (`silu_backward`) has no gradient there either, and may get one.
    """
    return internals.has_backend_kernel(op.name(), "CompositeImplicitAutograd") and not internals.has_backend_kernel(op.name(), "CPU")
