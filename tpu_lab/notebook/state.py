"""Snapshots of everything a cell may change, to be put back between the legs of a comparison.

A snapshot holds the namespace's bindings; the contents of every list, dict, set, array and object's attributes reachable from
them; the bytes of every CPU storage met; each tensor's place in its storage, gradient and version; the generators; and, through the
lab, all storages of the device (which hold immutable arrays, so that costs nothing). What is reachable only through an
iterator, a file or a C extension cannot be put back.
"""

from __future__ import annotations

import io
import random
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..errors import OptionError
from .lab import Lab

MAX_OBJECTS = 200_000
"""A namespace with more objects than this is not followed further."""
MAX_BYTES = 4 * 10**9
"""Of CPU memory a snapshot copies at most this much."""
_CONTAINERS = (list, dict, set, deque, bytearray)
_LEFT_ALONE = ("IPython", "ipykernel", "tpu_lab", "traitlets")
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, BuiltinFunctionType, torch.dtype, torch.device, torch.Size)

Undo = Callable[[], object]


class Reachable:
    """The objects reachable from a namespace that can be changed in place, each once, in an order that owners come first."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.tensors: list[torch.Tensor] = []
        self.containers: list[Any] = []
        self.attributes: list[Any] = []
        """Objects with a `__dict__`."""
        self.cells: list[CellType] = []
        """Variables of closures."""
        self.generators: list[torch.Generator] = []
        self.arrays: list[Any] = []
        self._namespace = namespace
        self._seen: set[int] = {id(namespace)}
        self._keep: list[Any] = []
        queue = deque(value for name, value in namespace.items() if not is_hidden(name))
        while queue and len(self._seen) < MAX_OBJECTS:
            value = queue.popleft()
            if isinstance(value, _ATOMS) or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._keep.append(value)
            queue.extend(self._visit(value))

    def _visit(self, value: Any) -> Iterator[Any]:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            if value.is_leaf and value.grad is not None:
                yield value.grad
        elif isinstance(value, internals.Generator):
            self.generators.append(value)
        elif isinstance(value, _CONTAINERS):
            self.containers.append(value)
            if isinstance(value, dict):
                yield from list(value)
                yield from list(value.values())
            elif not isinstance(value, bytearray):
                yield from list(value)
        elif isinstance(value, (tuple, frozenset)):
            yield from value
        elif isinstance(value, FunctionType):
            for cell in value.__closure__ or ():
                yield from self._visit_cell(cell)
        elif _is_array(value):
            self.arrays.append(value)
        if not isinstance(value, (torch.Tensor, FunctionType)) and type(value).__module__.partition(".")[0] not in _LEFT_ALONE:
            attributes = getattr(value, "__dict__", None)
            if type(attributes) is dict:
                self.attributes.append(value)
                yield from list(attributes.values())

    def _visit_cell(self, cell: CellType) -> Iterator[Any]:
        if id(cell) not in self._seen:
            self._seen.add(id(cell))
            self.cells.append(cell)
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                return


def _is_array(value: Any) -> bool:
    return "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray)


_HIDDEN = re.compile(r"__|_(?:i{0,3}|_{0,2}|oh|dh|ih|i?[0-9]+)$|(?:In|Out|get_ipython|exit|quit)$|\w*_[0-9]{9,}_c[0-9]+$")


def is_hidden(name: str) -> bool:
    """Names that IPython and Dynamo keep in the namespace for themselves."""
    return _HIDDEN.match(name) is not None


class Snapshot:
    """The state at one moment; `restore` brings it back any number of times, `close` lets it go."""

    def __init__(self, namespace: dict[str, Any], lab: Lab) -> None:
        self._namespace = namespace
        self._lab = lab
        self._bindings = {name: value for name, value in namespace.items() if not is_hidden(name)}
        self.reachable = found = Reachable(namespace)
        _refuse_large(found)
        self._undo: list[Undo] = _process_state()
        self._undo += [_container(c) for c in found.containers]
        self._undo += [_attributes(o) for o in found.attributes]
        self._undo += [_closure_variable(c) for c in found.cells]
        self._undo += [_array(a) for a in found.arrays]
        self._undo += [_generator(g) for g in found.generators]
        self._undo += [_tensor(t) for t in found.tensors]
        self._undo += _cpu_storages(found.tensors)
        self._device = lab.snapshot()

    def restore(self) -> None:
        """Puts everything back."""
        for name in [n for n in self._namespace if not is_hidden(n) and n not in self._bindings]:
            del self._namespace[name]
        self._namespace.update(self._bindings)
        self._lab.restore(self._device)
        for undo in self._undo:
            undo()

    def close(self) -> None:
        """Forgets what was kept."""
        self._lab.release(self._device)
        self._undo.clear()
        self._bindings.clear()


def cannot_be_rewound(value: Any, depth: int = 2) -> bool:
    """Whether using a value moves it on for good: a generator, a builtin iterator, an open file, or something that holds one."""
    if isinstance(value, (Iterator, AsyncIterator, io.IOBase)):
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is not dict or isinstance(value, io.IOBase):
            return True
        return depth > 0 and any(cannot_be_rewound(part, depth - 1) for part in attributes.values())
    if depth and isinstance(value, (list, tuple, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return any(cannot_be_rewound(part, depth - 1) for part in list(parts)[:64])
    return False


def _refuse_large(found: Reachable) -> None:
    storages = {internals.storage_key(t.untyped_storage()): t.untyped_storage().nbytes() for t in found.tensors if _on_cpu(t)}
    nbytes = sum(storages.values()) + sum(a.nbytes for a in found.arrays)
    if nbytes > MAX_BYTES:
        raise OptionError(
            f"%%tpu compare would have to copy {nbytes / 1e9:.3g} GB of CPU tensors and arrays to restore them",
            accepted=f"up to {MAX_BYTES / 1e9:.3g} GB (tensors on tpu cost nothing)",
            remedy="del what the cell does not need, or move it to tpu",
        )


def _on_cpu(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.device.type == "cpu"


def _process_state() -> list[Undo]:
    """Random generators and settings of the process that a cell may change."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    undo: list[Undo] = [
        partial(random.setstate, random.getstate()),
        partial(torch.set_rng_state, torch.get_rng_state()),
        partial(torch.set_grad_enabled, grad),
        partial(torch.set_default_dtype, dtype),
    ]
    if "numpy" in sys.modules:
        import numpy

        undo.append(partial(numpy.random.set_state, numpy.random.get_state()))
    return undo


def _container(value: Any) -> Undo:
    if isinstance(value, dict):
        items = list(value.items())

        def restore_dict() -> None:
            if len(value) != len(items) or any(k is not key or v is not held for (k, v), (key, held) in zip(value.items(), items, strict=True)):
                value.clear()
                for key, held in items:
                    value[key] = held

        return restore_dict
    held = list(value)

    def restore() -> None:
        if len(value) != len(held) or any(a is not b for a, b in zip(value, held, strict=True)):
            value.clear()
            (value.update if isinstance(value, set) else value.extend)(held)

    return restore


def _attributes(value: Any) -> Undo:
    held = dict(value.__dict__)

    def restore() -> None:
        now = value.__dict__
        if now.keys() != held.keys() or any(now[k] is not v for k, v in held.items()):
            now.clear()
            now.update(held)

    return restore


def _closure_variable(cell: CellType) -> Undo:
    try:
        held = cell.cell_contents
    except ValueError:
        return lambda: None

    def restore() -> None:
        cell.cell_contents = held

    return restore


def _array(array: Any) -> Undo:
    held = array.copy()

    def restore() -> None:
        if array.flags.writeable:
            array[...] = held

    return restore


def _generator(generator: torch.Generator) -> Undo:
    return partial(generator.set_state, generator.get_state().clone())


def _tensor(tensor: torch.Tensor) -> Undo:
    """The tensor's place in its storage (`.data =`, `set_`, `resize_` change it), its gradient and whether it wants one."""
    if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter):  # others have rules of their own
        return lambda: None
    alias, wants, leaf = tensor.detach(), tensor.requires_grad, tensor.is_leaf
    grad = tensor.grad if leaf else None

    def restore() -> None:
        if _place(tensor) != _place(alias):
            tensor.data = alias.detach()
        if leaf and tensor.is_leaf:
            if tensor.requires_grad != wants:
                tensor.requires_grad_(wants)
            if tensor.grad is not grad:
                tensor.grad = grad

    return restore


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (internals.storage_key(tensor.untyped_storage()), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _cpu_storages(tensors: list[torch.Tensor]) -> list[Undo]:
    """The bytes of every CPU storage behind the tensors, each once."""
    undo: list[Undo] = []
    seen: set[int] = set()
    for tensor in tensors:
        if not _on_cpu(tensor):
            continue
        storage = tensor.untyped_storage()
        key = internals.storage_key(storage)
        if key not in seen:
            seen.add(key)
            undo.append(_cpu_storage(storage))
    return undo


def _cpu_storage(storage: torch.UntypedStorage) -> Undo:
    held: torch.UntypedStorage = storage.clone()

    def restore() -> None:
        # written behind autograd's back, so graphs made before the snapshot stay valid
        if storage.nbytes() != held.nbytes():
            storage.resize_(held.nbytes())
        storage.copy_(held)

    return restore
