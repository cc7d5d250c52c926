"""The same record for any other device (cpu, cuda, TorchTPU): a dispatch mode that tells a `Recorder` what PyTorch runs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping
from itertools import count
from types import TracebackType
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from ..device._torch_internals import TorchDispatchMode
from ..device.events import OpProgram, TensorType
from ..errors import OptionError
from ..record.run import Run
from .frames import CellText
from .recorder import MAX_OPS, Recorder

TARGETS = {"cpu": "PyTorch CPU", "cuda": "PyTorch CUDA", "mps": "PyTorch MPS", "tpu": "TorchTPU"}
_ITEM = "aten::_local_scalar_dense"
_TRANSFERS = frozenset({"aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"})
_ALIASES = frozenset({"aten::detach", "aten::alias", "aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh"})


class _Storage:
    """A storage as a recorder sees it: a number of its own (addresses are used again) and its size."""

    __slots__ = ("id", "nbytes")

    def __init__(self, id: int, nbytes: int) -> None:
        self.id = id
        self.nbytes = nbytes


class DispatchRecorder(TorchDispatchMode):
    """Records what runs on `device` inside a `with` block; afterwards `run` is the record.

    `device` is PyTorch's device type. With `blocking` each op is waited for, so that its time is its own (on a CPU it always
    is). `cells` is as for `Recorder`. Raises OptionError for a device type that PyTorch does not know.
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        mode: str = "eager",
        name: str = "",
        target: str = "",
        cells: Mapping[str, CellText] | None = None,
        blocking: bool = True,
        max_ops: int = MAX_OPS,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        try:
            self._device = torch.device(device).type
        except RuntimeError:
            raise OptionError(f"{device!r} is not a device type", accepted="cpu, cuda or another device type of PyTorch") from None
        target = target or TARGETS.get(self._device, self._device)
        self._recorder = Recorder(
            mode=mode, name=name, device=self._device, target=target, cells=cells, blocking=blocking, max_ops=max_ops, attach=False
        )
        self._wait = blocking and self._device != "cpu"
        self._numbers = count(1)
        self._storages: dict[int, tuple[weakref.ref[Any], _Storage]] = {}
        self._programs: dict[Any, OpProgram] = {}

    def __enter__(self) -> DispatchRecorder:
        self._recorder.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        self._recorder.__exit__(kind, error, trace)
        self._storages.clear()
        self._programs.clear()

    @property
    def run(self) -> Run:
        """The record of the block. Available after it ended."""
        return self._recorder.run

    @property
    def recorder(self) -> Recorder:
        """The recorder that is told, e.g. to report graph breaks to."""
        return self._recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        inputs = list(_tensors((args, kwargs)))
        reads = [self._storage(t) for t in inputs]
        start = time.perf_counter_ns()
        try:
            result = func(*args, **kwargs)
            if self._wait:
                torch.accelerator.synchronize()
        except Exception as error:
            self._recorder.failed(_name(func), error)
            raise
        end = time.perf_counter_ns()
        outputs = list(_tensors(result))
        if not any(t.device.type == self._device for t in (*inputs, *outputs)):
            return result
        writes = [self._storage(t, made=True) for t in outputs]
        program = self._program(func, args, kwargs, inputs, outputs, result)
        self._recorder.op(program, start, end, [r for r in reads if r is not None], [w for w in writes if w is not None])
        if self._device != "cpu":
            self._sync(func, inputs, outputs, start, end)
        return result

    def _sync(self, func: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor], start: int, end: int) -> None:
        """Tells of the host waiting: a number read, a copy to the host, a size that depends on values."""
        nbytes = sum(_nbytes(t) for t in outputs)
        if func.name() == _ITEM:
            self._recorder.sync("item", inputs[0].element_size(), start, end)
        elif (
            func.name().split(".")[0] in _TRANSFERS
            and any(t.device.type == "cpu" for t in outputs)
            and any(t.device.type == self._device for t in inputs)
        ):
            self._recorder.sync("cpu", nbytes, start, end)
        elif torch.Tag.dynamic_output_shape in func.tags:
            self._recorder.sync("data_dependent_size", nbytes, start, end)

    def _storage(self, tensor: torch.Tensor, made: bool = False) -> _Storage | None:
        """The storage behind a tensor, announced when first met as a result; None for tensors without one (sparse, wrappers)."""
        try:
            storage = tensor.untyped_storage()
            nbytes = storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return None
        key = id(storage)
        known = self._storages.get(key)
        if known is not None and known[0]() is storage:
            known[1].nbytes = nbytes
            return known[1]
        view = _Storage(next(self._numbers), nbytes)
        self._storages[key] = weakref.ref(storage, self._forget(key, view)), view
        if made:
            self._recorder.allocated(view)
        return view

    def _forget(self, key: int, view: _Storage) -> Any:
        storages, recorder = self._storages, self._recorder

        def died(reference: Any) -> None:
            known = storages.get(key)
            if known is not None and known[0] is reference:
                del storages[key]
                recorder.freed(view)

        return died

    def _program(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[torch.Tensor], outputs: list[torch.Tensor], result: Any
    ) -> OpProgram:
        """The program of a call: the same for equal shapes and dtypes."""
        key = (func, tuple((t.shape, t.dtype) for t in inputs), tuple((t.shape, t.dtype) for t in outputs))
        program = self._programs.get(key)
        if program is None:
            kind = _kind(func, inputs, outputs)
            moved = None if kind == "view" else sum(_nbytes(t) for t in (*inputs, *outputs))
            flops = _flops(func, args, kwargs, result)
            program = OpProgram(_name(func), kind, _types(inputs), _types(outputs), flops, None, None, moved, len(self._programs))
            self._programs[key] = program
        return program


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Tensors in arguments or results, in order; FakeTensors and the like carry no memory but count too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)


def _types(tensors: list[torch.Tensor]) -> tuple[TensorType, ...]:
    return tuple(TensorType(tuple(int(n) for n in t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors)


def _name(func: Any) -> str:
    return str(func)


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _kind(func: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    name = func.name().split(".")[0]
    if func.is_view or name in _ALIASES:
        return "view"
    devices = {t.device.type for t in (*inputs, *outputs)}
    return "copy" if name in _TRANSFERS and len(devices) > 1 else "aten"


def _flops(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> float | None:
    """PyTorch's own count for matrix products, convolutions and attention; None for everything else."""
    formula = flop_registry.get(func.overloadpacket)
    return float(formula(*args, **kwargs, out_val=result)) if formula is not None else None
