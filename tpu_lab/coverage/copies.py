"""Copies of a model and its inputs to scan with: shapes without values on the device `tpu`, with values on the CPU beside them or alone."""

from __future__ import annotations

import types
from typing import Any

import torch

from ..compiler.twins import Twins, memory_key, tensors_in
from ..device.tensors import buffer_of

VALUE = "_tpu_lab_value"
"""The attribute of a fake tensor that holds its CPU twin."""


class _Copies(Twins):
    """Twins that also copy what a function finds around it and might change: containers, modules, what its closure holds."""

    def _wants(self, value: Any) -> bool:
        return isinstance(value, (list, dict, set, torch.nn.Module)) or super()._wants(value)

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            value = cell.cell_contents
        except ValueError:  # a variable that is not bound yet
            return types.CellType()
        made = types.CellType(self._copied(value) if self._wants(value) else value)
        self._cells.append(made)
        return made

    def _tensor(self, tensor: torch.Tensor, name: str) -> None:
        if id(tensor) in self._memo:
            return
        made = self._copy(tensor)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, tensor.requires_grad)
        elif tensor.requires_grad:
            made.requires_grad_()
        self._memo[id(tensor)] = made
        self._kept.append(tensor)

    def _copy(self, tensor: torch.Tensor) -> Any:
        raise NotImplementedError


class OnCpu(_Copies):
    """Real copies on the CPU, sharing memory as the originals do."""

    def _copy(self, tensor: torch.Tensor) -> Any:
        return cpu_copy(tensor, self._bases)


class Fakes(_Copies):
    """Fake tensors on the device `tpu`; with `values` each has a CPU twin."""

    def __init__(self, mode: Any, values: bool) -> None:
        super().__init__()
        self._mode, self._values = mode, values
        self._fakes: dict[tuple[int, torch.dtype], Any] = {}

    def _copy(self, tensor: torch.Tensor) -> Any:
        with self._mode:
            if tensor.device.type == "meta" or tensor.layout != torch.strided:
                made = torch.empty(tensor.shape, dtype=tensor.dtype, device="tpu")
            else:
                memory, nbytes = _memory(tensor)
                key = memory, tensor.dtype
                if key not in self._fakes:
                    self._kept.append(tensor.untyped_storage())
                    self._fakes[key] = torch.empty(max(nbytes // tensor.element_size(), 1), dtype=tensor.dtype, device="tpu")
                made = self._fakes[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if self._values:
            setattr(made, VALUE, cpu_copy(tensor, self._bases))
        return made

    def _tensor(self, tensor: torch.Tensor, name: str) -> None:
        super()._tensor(tensor, name)
        made = self._memo[id(tensor)]
        if self._values and not hasattr(made, VALUE):
            setattr(made, VALUE, cpu_copy(tensor, self._bases))


def cpu_copy(tensor: torch.Tensor, bases: dict[tuple[int, torch.dtype], torch.Tensor]) -> torch.Tensor:
    """A copy on the CPU; `bases` holds the copies of storages, so that views of one stay views of one."""
    if tensor.device.type == "meta":
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.layout != torch.strided:
        return tensor.detach().cpu().to_dense()
    memory, nbytes = _memory(tensor)
    key = memory, tensor.dtype
    if key not in bases:
        whole = tensor.detach().as_strided((nbytes // tensor.element_size(),), (1,), 0) if nbytes else torch.zeros(1, dtype=tensor.dtype)
        bases[key] = whole.clone() if whole.device.type == "cpu" else whole.cpu()
    return bases[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def bytes_of(value: Any) -> int:
    """Bytes of all tensors that a value holds, each storage once."""
    return sum(dict(_memory(tensor) for tensor, _ in tensors_in(value)).values())


def _memory(tensor: torch.Tensor) -> tuple[int, int]:
    """What is the same for tensors that share memory, and how many bytes that memory has."""
    if tensor.layout != torch.strided:
        return id(tensor), tensor.numel() * tensor.element_size()
    if tensor.device.type == "tpu":  # PyTorch's storage of a tensor of the device does not know its bytes
        return memory_key(tensor), buffer_of(tensor).nbytes
    storage = tensor.untyped_storage()
    return memory_key(tensor), storage.nbytes()


def prepared(copies: Twins, function: Any, args: Any, kwargs: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The copies of a function or module and its arguments."""
    return copies.of(function), tuple(copies.of(value) for value in args), {name: copies.of(value) for name, value in kwargs.items()}


def plain(function: Any) -> Any:
    """The function or module behind what `torch.compile` made of it."""
    inner = getattr(function, "_orig_mod", function)
    return getattr(inner, "_torchdynamo_orig_callable", inner)
