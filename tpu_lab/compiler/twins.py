"""Copies of modules and functions whose tensors are empty tensors of the device: enough to trace with, and they take no memory.

The originals are only read. Twins share storage as the originals do.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device import tensors
from ..device._torch_internals import DeviceContext
from ..errors import OptionError

_FACTORIES = frozenset(f for f in internals.factories() if not any(word in f.__name__ for word in ("sparse", "nested", "quantized")))
_DEEPEST = 64
"""Nesting of containers and objects beyond which nothing is looked for."""
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, torch.dtype, torch.device, torch.Size)


class Tracing(DeviceContext):
    """While it is on, factories that name no device make tensors of the device, and zeros are not filled in: empty ones read as zeros."""

    def __init__(self) -> None:
        super().__init__(torch.device("tpu", 0))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES and kwargs.get("device") is None and kwargs.get("generator") is None and kwargs.get("out") is None:
            kwargs = {**kwargs, "device": self.device}
        if func is torch.zeros_like and not torch.compiler.is_compiling() and args[0].device.type == "tpu":
            func = torch.empty_like
        return func(*args, **kwargs)


class Twins:
    """Makes twins. One object makes twins that share what the originals share."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._bases: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self._kept: list[Any] = []  # ids in the memo stay those of these objects
        self._namespaces: list[tuple[dict[str, Any], str]] = []
        self._cells: list[types.CellType] = []
        self.names: dict[int, str] = {}
        """What each twin's memory is to the user, by `memory_key`."""

    def make_optimizer_state(self) -> None:
        """Has copied optimizers make their state from empty tensors. Left to the first step, Dynamo would have it filled with zeros."""
        for optimizer in [value for value in self._memo.values() if isinstance(value, torch.optim.Optimizer)]:
            parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad and p.grad is None]
            try:
                for parameter in parameters:
                    parameter.grad = torch.empty_like(parameter)
                with Tracing():
                    internals.make_state(optimizer)
            except Exception:  # an optimizer of another make: it makes its state while it is traced, which only takes memory
                optimizer.state.clear()
            finally:
                for parameter in parameters:
                    parameter.grad = None

    def name(self, copied: Any) -> None:
        """Names what twins have come to hold since they were made (an optimizer's state, gradients)."""
        for tensor, label in tensors_in(copied):
            self.names.setdefault(memory_key(tensor), label)

    def release(self) -> None:
        """Lets go of all twins, also where copied functions see them: Dynamo keeps what it compiled, and with it their globals."""
        for namespace, name in self._namespaces:
            namespace[name] = None
        for cell in self._cells:
            cell.cell_contents = None
        for container in (self._memo, self._bases, self._kept, self._namespaces, self._cells):
            container.clear()

    def tensors(self) -> list[torch.Tensor]:
        """All twins made so far."""
        return [value for value in self._memo.values() if isinstance(value, torch.Tensor)]

    def of(self, value: Any, name: str = "") -> Any:
        """The twin of a tensor, module, optimizer, function, or a container of such.

        Raises OptionError for an object that holds tensors and cannot be copied.
        """
        for found, label in tensors_in(value, name):
            self._tensor(found, label)
        return self._copied(value)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, functools.partial):
            return functools.partial(self._copied(value.func), *self._copied(value.args), **self._copied(value.keywords))
        if isinstance(value, types.MethodType):
            return types.MethodType(self._function(value.__func__), self._copied(value.__self__))
        if isinstance(value, types.FunctionType):
            return self._function(value)
        try:
            return copy.deepcopy(value, self._memo)
        except Exception as error:
            raise OptionError(
                f"{type(value).__name__} holds tensors and cannot be copied ({type(error).__name__}: {error})",
                accepted="a module, or a function of tensors and modules",
            ) from error

    def _function(self, function: Any) -> Any:
        """A function with twins in its closure, defaults and the globals it names; always with a code object of its own."""
        function = getattr(function, "_torchdynamo_orig_callable", function)
        if not isinstance(function, types.FunctionType):
            return function
        if id(function) in self._memo:
            return self._memo[id(function)]
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        namespace = dict(function.__globals__)
        made = types.FunctionType(function.__code__.replace(), namespace, function.__name__, None, function.__closure__)
        self._memo[id(function)] = made
        self._kept.append(function)
        for name in names & namespace.keys():
            if self._wants(namespace[name]):
                namespace[name] = self._copied(namespace[name])
                self._namespaces.append((namespace, name))
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        if cells:
            made = types.FunctionType(made.__code__, namespace, function.__name__, None, cells)
            self._memo[id(function)] = made
        made.__defaults__ = self._copied(function.__defaults__) if function.__defaults__ else None
        made.__kwdefaults__ = function.__kwdefaults__ and self._copied(function.__kwdefaults__)
        return made

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            value = cell.cell_contents
        except ValueError:  # a variable that is not bound yet
            return cell
        if not self._wants(value):
            return cell
        self._cells.append(types.CellType(self._copied(value)))
        return self._cells[-1]

    def _wants(self, value: Any) -> bool:
        """Whether a function is given a copy of a value that it finds in its closure or its globals."""
        return _reaches(value)

    def _tensor(self, tensor: torch.Tensor, name: str) -> None:
        if id(tensor) in self._memo:
            return
        twin = self._empty(tensor)
        if tensor.is_leaf:
            twin.requires_grad_(tensor.requires_grad)
        made: Any = torch.nn.Parameter(twin.detach(), tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else twin
        self._memo[id(tensor)] = made
        self._kept.append(tensor)
        self.names.setdefault(memory_key(made), name)

    def _empty(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "meta" or tensor.layout != torch.strided:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="tpu")
        storage = tensor.untyped_storage()
        key = internals.storage_key(storage), tensor.dtype
        if key not in self._bases:
            self._kept.append(storage)
            self._bases[key] = torch.empty(max(storage.nbytes() // tensor.element_size(), 1), dtype=tensor.dtype, device="tpu")
        return self._bases[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _reaches(value: Any) -> bool:
    """Whether a value is a tensor or holds one."""
    return next(tensors_in(value), None) is not None


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[torch.Tensor, str]]:
    """The tensors a value holds, with the path to each: `layers.0.weight`."""
    return _walk(value, name, set(), 0)


def memory_key(tensor: torch.Tensor) -> int:
    """What is the same for tensors that share memory; on the device it is never used again, elsewhere only while the storage lives."""
    if tensor.device.type == "tpu":
        return tensors.buffer_of(tensor).id
    return -internals.storage_key(tensor.untyped_storage())


def _walk(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[torch.Tensor, str]]:
    """The tensors a value holds, with the path to each."""
    if isinstance(value, _ATOMS) or id(value) in seen or depth > _DEEPEST:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value, name
        if value.is_leaf and value.grad is not None:
            yield value.grad, f"{name}.grad"
        return
    for step, inner in _parts(value):
        yield from _walk(inner, f"{name}.{step}" if name and step else name or step, seen, depth + 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(k), v) for k, v in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((str(i), v) for i, v in enumerate(value))
    elif isinstance(value, torch.nn.Module):
        for group in ("_parameters", "_buffers", "_modules"):
            yield from value.__dict__[group].items()
        yield from ((k, v) for k, v in vars(value).items() if k not in ("_parameters", "_buffers", "_modules"))
    elif isinstance(value, torch.optim.Optimizer):
        yield "param_groups", value.param_groups
        for number, state in enumerate(value.state.values()):
            yield f"state.{number}", state
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(value, types.FunctionType):
        yield from _function_parts(value)
    elif hasattr(value, "__dict__") and not isinstance(value, torch.Generator):
        yield from vars(value).items()


def _function_parts(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that is not bound yet
            continue
    for name in dict.fromkeys(n for code in _codes(function.__code__) for n in code.co_names):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "", default
