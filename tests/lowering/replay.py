"""Checks a lowering against torch on the CPU: calls it with the same arguments as the ATen operator and compares."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from tpu_lab.lowering.dtypes import SUPPORTED, to_jax
from tpu_lab.lowering.promotion import Number, cast
from tpu_lab.lowering.registry import Lowering, find

_NOT_PASSED = ("layout", "device", "pin_memory", "generator", "memory_format")


def to_array(tensor: torch.Tensor) -> jax.Array:
    tensor = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    raw = tensor.view(torch.uint8).numpy() if tensor.ndim and tensor.numel() else None
    if raw is None:
        flat = tensor.reshape(-1).clone().view(torch.uint8).numpy() if tensor.numel() else np.zeros(0, np.uint8)
        return jax.numpy.asarray(flat.view(to_jax(tensor.dtype)).reshape(tuple(tensor.shape)))
    return jax.numpy.asarray(np.ascontiguousarray(raw).view(to_jax(tensor.dtype)).reshape(tuple(tensor.shape)))


def to_tensor(array: jax.Array, dtype: torch.dtype) -> torch.Tensor:
    with jax.enable_x64(True):
        raw = np.array(cast(array, to_jax(dtype)), order="C", copy=True)
    return torch.from_numpy(raw.reshape(-1).view(np.uint8)).view(dtype).reshape(array.shape)


def overload_name(op: torch._ops.OpOverload) -> str:
    name = op.name()
    return name.removeprefix("aten::")


def call(found: Lowering, op: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a lowering under jit on CPU tensors, bound as `tpu_lab.lowering.registry` says. Returns arrays (nested as the lowering does)."""
    arrays: list[jax.Array] = []
    positional: list[Any] = []
    named: dict[str, Any] = {}

    def slot(array: Any, number: bool) -> tuple[str, int, bool]:
        arrays.append(array)
        return ("slot", len(arrays) - 1, number)

    def bind(value: Any, kind: str, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            byte = torch.zeros((), dtype=torch.uint8)
            wrapped = value.ndim == 0 and torch.result_type(byte, value) != torch.promote_types(torch.uint8, value.dtype)
            return slot(to_array(value), wrapped)
        if value is None:
            return None
        if kind.startswith("List") and isinstance(value, (list, tuple)) and ("Tensor" in kind or "number" in kind):
            return [bind(v, kind.removeprefix("List[").removesuffix("]"), name) for v in value]
        # torch hands a wrapped number to a dispatch mode as a Python number
        plain = isinstance(value, (bool, int, float, complex)) and "Tensor" in kind
        if (plain or "number" in kind or kind in ("float", "Optional[float]")) and name not in found.static:
            typed = np.array(value, dtype={bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(value)])
            return slot(jax.numpy.asarray(typed), True)
        return value

    with jax.enable_x64(True):
        for i, argument in enumerate(op._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
            if argument.name in _NOT_PASSED:
                continue
            bound = bind(value, str(argument.type), argument.name)
            if argument.kwarg_only:
                named[argument.name] = bound
            else:
                positional.append(bound)

        def fill(value: Any, given: tuple[jax.Array, ...]) -> Any:
            if isinstance(value, tuple) and len(value) == 3 and value[0] == "slot":
                return Number(given[value[1]]) if value[2] else given[value[1]]
            return [fill(v, given) for v in value] if isinstance(value, list) else value

        extra: dict[str, Any] = {}
        if found.wants_out_specs:
            out = op(*args, **kwargs)
            flat = [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, torch.Tensor)]
            extra["out_specs"] = tuple(jax.ShapeDtypeStruct(tuple(o.shape), to_jax(o.dtype)) for o in flat)

        def run(*given: jax.Array) -> Any:
            return found.function(*(fill(p, given) for p in positional), **{k: fill(v, given) for k, v in named.items()}, **extra)

        return jax.jit(run)(*arrays)


def lowering_of(overload: str) -> Lowering:
    """The lowering of an overload, which has to have one."""
    found = find(overload)
    assert found is not None, overload
    return found


def compare(actual: Any, expected: Any, note: str, rtol: float | None = None, atol: float | None = None) -> None:
    if isinstance(expected, torch.Tensor):
        assert actual is not None, f"{note}: no result"
        if rtol is None and expected.dtype in (torch.bfloat16, torch.float16):
            rtol, atol = 1.6e-2, 1e-3
        got = to_tensor(actual, expected.dtype)
        torch.testing.assert_close(
            got, expected.detach().resolve_conj().resolve_neg(), rtol=rtol, atol=atol, equal_nan=True, msg=lambda m: f"{note}: {m}"
        )
    elif isinstance(expected, (tuple, list)):
        for i, part in enumerate(expected):
            compare(actual[i], part, f"{note}[{i}]", rtol, atol)


class Replay(TorchDispatchMode):
    """Inside it every ATen call on CPU tensors that has a lowering (not a random one) is repeated by the lowering and compared.

    `only` restricts the check to these overloads; `checked` counts the calls compared, by overload.
    """

    def __init__(self, only: set[str] | None = None, rtol: float | None = None, atol: float | None = None) -> None:
        super().__init__()
        self.only, self.rtol, self.atol = only, rtol, atol
        self.checked: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = overload_name(func)
        found = find(name) if self.only is None or name in self.only else None
        expected = func(*args, **kwargs)
        if found is not None and not found.random and not found.mutates and _plain((*args, *kwargs.values(), expected)):
            compare(call(found, func, args, kwargs), expected, f"{name}{_describe(args, kwargs)}", self.rtol, self.atol)
            self.checked[name] = self.checked.get(name, 0) + 1
        return expected


def _plain(values: Any) -> bool:
    for value in values:
        if isinstance(value, torch.Tensor) and (value.dtype not in SUPPORTED or value.layout != torch.strided):
            return False
        if isinstance(value, (list, tuple)) and not _plain(value):
            return False
    return True


def _describe(args: Any, kwargs: Any) -> str:
    def one(v: Any) -> str:
        return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}" if isinstance(v, torch.Tensor) else repr(v)[:60]

    return "(" + ", ".join([one(a) for a in args] + [f"{k}={one(v)}" for k, v in kwargs.items()]) + ")"


def assert_opinfo(
    name: str,
    dtypes: tuple[torch.dtype, ...],
    only: set[str] | None = None,
    limit: int = 8,
    grad: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> dict[str, int]:
    """Runs the first `limit` OpInfo samples of operator `name` (all its variants) in every dtype, backward too, under `Replay`.

    Returns how often each overload was checked.
    """
    checked: dict[str, int] = {}
    found = [op for op in op_db if op.name == name]
    assert found, f"no OpInfo entry named {name}"
    for op in found:
        for dtype in dtypes:
            if dtype not in op.dtypes:
                continue
            wants_grad = grad and dtype in (op.backward_dtypes or ()) and op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
            for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=wants_grad)):
                if i >= limit:
                    break
                with Replay(only, rtol, atol) as replay:
                    out = op(sample.input, *sample.args, **sample.kwargs)
                    first = out[0] if isinstance(out, (tuple, list)) and out else out
                    if wants_grad and isinstance(first, torch.Tensor) and first.requires_grad:
                        first.sum().abs().backward() if first.is_complex() else first.sum().backward()
                for key, count in replay.checked.items():
                    checked[key] = checked.get(key, 0) + count
    return checked
