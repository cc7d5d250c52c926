"""Running an operator with torch's CPU kernel on the device's behalf: the CPU fallback, and the host kernel of a first run.

Results are written back for every argument the schema marks as written, so running statistics and `out=` work too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from ..errors import OperatorNotSupportedError
from . import checks, deferral, events, policies, races, seeds, tensors
from .events import OpProgram, TensorType
from .host import alias_on_host, host_view, own
from .memory import Buffer
from .tensors import array_of, buffer_of

_writing = threading.Lock()


class Crossing:
    """The tensors of one call on their way to the CPU: one flat CPU tensor per storage, so that aliases stay aliases."""

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.flats: dict[int, tuple[Buffer, torch.Tensor]] = {}
        self.read: dict[int, Any] = {}
        self.bytes_out = 0
        self.bytes_in = 0
        self.seen: list[torch.Tensor] = []
        self.twins: dict[int, torch.Tensor] = {}
        self.hosts: dict[int, torch.Tensor] = {}

    def out(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            if isinstance(value, torch.device):
                return torch.device("cpu") if value.type == "tpu" else value
            return None if isinstance(value, torch.Generator) and value.device.type == "tpu" else value
        if value.device.type != "tpu":
            return value
        buffer = buffer_of(value)
        found = self.flats.get(buffer.id)
        if found is None:
            array = array_of(buffer)
            flat = alias_on_host(array, buffer.layout.torch_dtype)
            if self.writes:
                self.read[buffer.id] = array
                flat = flat.clone()
            found = self.flats[buffer.id] = (buffer, flat)
            self.bytes_out += buffer.nbytes
        host = host_view(value, found[1])
        self.seen.append(value)
        self.twins[id(host)] = value
        self.hosts[id(value)] = host
        return host

    def write_back(self, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.device.type == "tpu":
            buffer, flat = self.flats[buffer_of(value).id]
            host = self.hosts[id(value)]
            if host.shape != value.shape:  # an out= argument that the operator resized
                value.resize_(host.shape)
                value.copy_(host)
                return
            new = own(flat.clone())
            with _writing:
                if buffer.array is not self.read[buffer.id] or buffer.array.is_deleted():
                    raise races.Overtaken("another thread wrote to this tensor at the same time")
                tensors.replace(buffer, new)
            self.read[buffer.id] = new  # a list may name a storage twice
            self.bytes_in += buffer.nbytes
        elif isinstance(value, (list, tuple)):
            for part in value:
                self.write_back(part)

    def back(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        twin = self.twins.get(id(value))
        if twin is not None:
            return twin
        result = bring(value)
        self.bytes_in += value.numel() * value.element_size()
        return result

    @staticmethod
    def device_results(result: Any) -> list[torch.Tensor]:
        """The device tensors among results."""
        return [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(r, torch.Tensor) and r.device.type == "tpu"]

    @staticmethod
    def types(tensors_: list[torch.Tensor]) -> tuple[TensorType, ...]:
        """Their shapes and dtypes."""
        return tuple(TensorType(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors_)

    @staticmethod
    def buffers(tensors_: list[torch.Tensor]) -> list[Buffer]:
        """Their memory."""
        return [buffer_of(t) for t in tensors_]


def no_such_layout(what: str) -> str:
    """What to say of sparse, nested and quantized tensors."""
    return (
        f"{what} is a sparse, nested or quantized tensor, and the device tpu has dense ones only. Keep it on the CPU, or use a dense tensor, "
        f"torch.nested with layout=torch.jagged, or torch.fake_quantize_per_tensor_affine."
    )


def bring(value: torch.Tensor) -> torch.Tensor:
    """A device tensor that takes over a CPU result (its memory too where it is dense and nobody else's).

    Raises NotImplementedError for a sparse, nested or quantized result.
    """
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        raise NotImplementedError(no_such_layout("the result of this operator"))
    value = value.detach().resolve_conj().resolve_neg()
    size, stride = tuple(value.shape), value.stride()
    count = tensors.extent(size, stride)
    if value.numel() != count:
        value = value.contiguous()
        stride, count = value.stride(), value.numel()
    flat = torch.as_strided(value, (count,), (1,), value.storage_offset())
    if value.untyped_storage().nbytes() != count * value.element_size():
        flat = flat.clone()
    return tensors.wrap(own(flat), size, value.dtype, stride)


def run_on_cpu(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Crossing]:
    """Runs `op` with torch's CPU kernel on the same values; returns its result as device tensors, and what crossed."""
    deferral.cut("cpu")
    checks.settle()
    schema = op._schema
    written = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
    crossing = Crossing(any(written))
    host_args = _each(crossing.out, args)
    host_kwargs = {name: _each(crossing.out, value) for name, value in kwargs.items()}
    call = _call if crossing.bytes_out > _SMALL_BYTES else _call_on_one_thread
    result = call(op, host_args, host_kwargs, kwargs.get("generator"))
    for i, argument in enumerate(schema.arguments):
        if written[i]:
            crossing.write_back(args[i] if i < len(args) else kwargs.get(argument.name))
    return _each(crossing.back, result), crossing


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    """A function of each leaf of an operator's arguments or results, which nest in lists and tuples only (pytree takes ten times as long)."""
    kind = value.__class__
    return kind([_each(function, v) for v in value]) if kind is list or kind is tuple else function(value)


def _call(op: Any, args: Any, kwargs: Any, generator: Any) -> Any:
    """The CPU kernel; a random one draws from a CPU sequence that the device's generator starts."""
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return op(*args, **kwargs)
    seed, offset = seeds.state_of(generator).draw(1)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed((seed * 0x9E3779B97F4A7C15 + offset) % 2**63)
        return op(*args, **kwargs)


_SMALL_BYTES = 1 << 18


def _call_on_one_thread(op: Any, args: Any, kwargs: Any, generator: Any) -> Any:
    """The same on this thread alone: torch's threads, which wait spinning for more, and XLA's take the cores from each other."""
    threads = torch.get_num_threads()
    if threads == 1:
        return _call(op, args, kwargs, generator)
    torch.set_num_threads(1)
    try:
        return _call(op, args, kwargs, generator)
    finally:
        torch.set_num_threads(threads)


def fall_back(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> Any:
    """The CPU fallback of an operator: recorded with its cost, or OperatorNotSupportedError, a NotImplementedError, where the policy forbids it."""
    if policies.cpu_fallback == "error":
        raise OperatorNotSupportedError(
            f"{op} has no lowering for the device tpu ({reason}) and torch.tpu.cpu_fallback is 'error'",
            accepted="operators with a lowering or a decomposition",
            remedy="torch.tpu.cpu_fallback = 'allow', or replace the operator",
        )
    start = time.perf_counter_ns()
    result, crossing = run_on_cpu(op, args, kwargs)
    observer = events.observer
    if observer is not None:
        end = time.perf_counter_ns()
        observer.fallback(str(op), reason, crossing.bytes_out, crossing.bytes_in, start, end)
        outputs = crossing.device_results(result)
        info = OpProgram(str(op), "fallback", crossing.types(crossing.seen), crossing.types(outputs))
        observer.op(info, start, end, [b for b, _ in crossing.flats.values()], crossing.buffers(outputs))
    return result
