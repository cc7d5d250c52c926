"""One operator call, split once: arrays by storage, geometry, statics (what changes the program) and numbers (what must not).

The split of a call is a flat `key` and the run-time inputs in program order: unique storages, then offsets, then numbers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

from ..lowering import strided
from ..xla import _jax_internals as jax_internals
from . import _torch_internals as internals
from . import tensors
from .events import TensorType
from .host import host_to_numpy
from .memory import Buffer
from .numbers import integer, number
from .plan import Plan
from .tensors import Layout, extent, require_device


@dataclass(slots=True)
class TensorSlot:
    """A tensor of the device: which input storage, and how it lies in it.

    `moving` is the input position of its offset (`aligned`: see `strided.is_aligned`); None where the offset is part of
    the program, as `offset`. Never changed, and not frozen: that would make it three times as slow to make, on every call.
    """

    storage: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int
    moving: int | None
    aligned: bool
    conjugate: bool
    negative: bool


@dataclass(frozen=True)
class NumberSlot:
    """A number (`weak`: a Python number, else a 0-dim CPU tensor of `dtype`) at an input position."""

    position: int
    weak: bool
    dtype: torch.dtype


@dataclass(frozen=True)
class Static:
    """A value that is part of the program."""

    value: Any


@dataclass(eq=False)
class Call:
    """A split call. `slots` follows `plan.arguments` (lists nested as tuples); `inputs` are offsets and numbers, ready to run.

    `shared`: two of its tensors lie in one storage.
    """

    plan: Plan
    key: tuple[Any, ...]
    slots: tuple[Any, ...]
    buffers: list[Buffer]
    layouts: tuple[Layout, ...]
    inputs: list[Any]
    arguments: list[Any]
    generator: Any
    shared: bool


@functools.lru_cache(maxsize=16384)
def _placement(count: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> tuple[bool, bool]:
    """Whether a tensor in a storage of `count` elements of its dtype is a part that may lie elsewhere too, and is aligned then."""
    moves = extent(size, stride) not in (0, count)
    return moves, moves and strided.is_aligned(count, size, stride, offset)


class Splitter:
    """Takes tensors, numbers and statics of one call, and gathers the key, the unique storages and the run-time inputs."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.positions: dict[int, int] = {}
        self.inputs: list[Any] = []
        self.key: list[Any] = []
        self.shared = False

    def tensor(self, value: torch.Tensor, name: str, op: str) -> Any:
        """A tensor argument. Raises RuntimeError for one of another device, unless it is a 0-dim CPU tensor."""
        if value.device.type != "tpu":
            return self.host_tensor(value, name, op)
        buffer = tensors.buffer_of(value)
        position = self.positions.get(buffer.id)
        if position is None:
            position = self.positions[buffer.id] = len(self.buffers)
            self.buffers.append(buffer)
        else:
            self.shared = True
        size, stride, dtype = tuple(value.shape), value.stride(), value.dtype
        offset, layout = tensors.offset_of(value), buffer.layout
        moving, aligned = None, False
        if dtype is layout.torch_dtype:
            moves, aligned = _placement(layout.count, size, stride, offset)
            if moves:
                moving = len(self.inputs)
                self.inputs.append(integer(offset))
                offset = 0
        conjugate, negative = value.is_conj(), value.is_neg()
        self.key += (position, layout, size, stride, dtype, offset, moving, aligned, conjugate, negative)
        return TensorSlot(position, size, stride, dtype, offset, moving, aligned, conjugate, negative)

    def host_tensor(self, value: torch.Tensor, name: str, op: str) -> Any:
        """A 0-dim CPU tensor: a number, of its own dtype unless it is a Python number in disguise."""
        if value.device.type == "cpu" and value.ndim == 0:
            if value.numel() == 1 and internals.is_python_number(value):
                return self.number(value.item())
            self.inputs.append(jax_internals.put(host_to_numpy(value), copy=True))
            self.key += ("scalar", value.dtype)
            return NumberSlot(len(self.inputs) - 1, False, value.dtype)
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, tpu:0 and {value.device}! "
            f"(argument {name} of {op}; move it with .to('tpu'))"
        )

    def number(self, value: Any) -> Any:
        """A Python number: a run-time input."""
        kind = value.__class__
        self.inputs.append(number(value))
        self.key += ("number", kind)
        return NumberSlot(len(self.inputs) - 1, True, _NUMBER_DTYPE.get(kind, torch.float64))

    def static(self, value: Any) -> Any:
        """A value that is part of the program."""
        frozen = freeze(value)
        self.key += (frozen, frozen.__class__)
        return Static(value)

    def argument(self, value: Any, kind: str, name: str, op: str) -> Any:
        """An argument of the given kind (see `plan.Argument`)."""
        if value is None:
            self.key.append(None)
            return None
        if kind == "tensor":
            return self.tensor(value, name, op) if isinstance(value, torch.Tensor) else self.number(value)
        if kind == "tensors":
            self.key.append(len(value))
            return tuple(None if v is None else self.tensor(v, name, op) for v in value)
        if kind == "number":
            return self.number(value)
        if kind == "numbers":
            self.key.append(len(value))
            return tuple(self.number(v) for v in value)
        return self.static(value)


_NUMBER_DTYPE = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def freeze(value: Any) -> Any:
    """A hashable stand-in for a static argument."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(v) for v in value)
    return value


def split(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Splits a call. Raises RuntimeError if a tensor of another device is among the arguments."""
    splitter = Splitter()
    slots: list[Any] = []
    arguments, generator = [], None
    count = len(args)
    for i, argument in enumerate(plan.arguments):
        value = args[i] if i < count else kwargs.get(argument.name, argument.default)
        arguments.append(value)
        if argument.name == "generator":
            generator = value
            slots.append(None)
        elif argument.name in ("device", "pin_memory", "layout"):
            if argument.name == "device":
                require_device(value)
            slots.append(None)
        elif argument.is_absent_factor(value):
            slots.append(splitter.static(value))
        else:
            slots.append(splitter.argument(value, argument.kind, argument.name, plan.name))
    splitter.key.append(torch.get_default_dtype())
    layouts = tuple(b.layout for b in splitter.buffers)
    return Call(plan, tuple(splitter.key), tuple(slots), splitter.buffers, layouts, splitter.inputs, arguments, generator, splitter.shared)


def input_types(call: Call) -> tuple[TensorType, ...]:
    """Shapes and dtypes of a call's tensor arguments, for the record."""
    found = []
    for slot in call.slots:
        for one in slot if isinstance(slot, tuple) else (slot,):
            if isinstance(one, TensorSlot):
                found.append(TensorType(one.size, str(one.dtype).removeprefix("torch.")))
    return tuple(found)
