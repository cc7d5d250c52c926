"""Every private name of jax and jaxlib that tpu_lab touches, in one file, so that a jax upgrade can break only this one.

`tests/xla/test_jax_internals.py` exercises each name and fails by that name when a version changes it.
"""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jaxlib.version
import numpy as np
from jax._src import compiler, config, core, effects, sharding_impls
from jax._src.interpreters import mlir, partial_eval, pxla
from jax._src.lib import _jax, xla_client  # type: ignore[attr-defined]
from jax._src.lib.mlir import ir  # type: ignore[attr-defined]
from jax._src.tree_util import FlatTree
from jax.experimental import topologies

ShapedArray = core.ShapedArray
XlaRuntimeError = jax.errors.JaxRuntimeError
LoadedExecutable = _jax.LoadedExecutable

is_ready: Callable[[jax.Array], bool] = _jax.ArrayImpl.is_ready
"""Whether the computation of an array is done. Crashes the process if the array was deleted."""
_device = jax.devices()[0]
_devices = [_device]
_sharding = jax.sharding.SingleDeviceSharding(_device)
_batched_device_put = _jax.batched_device_put
_zero_copy = _jax.HostBufferSemantics.ZERO_COPY


def device() -> jax.Device:
    """The one jax device behind `tpu:0`."""
    return _device


def put(host: np.ndarray[Any, Any], copy: bool) -> jax.Array:
    """A device array with the contents and exact dtype of a numpy array, whatever `jax_enable_x64` says.

    With `copy=False` the array may keep using the memory of `host`, which nobody may write to any more.
    """
    aval = ShapedArray(host.shape, host.dtype)
    return _batched_device_put(aval, _sharding, [host], _devices, True, copy, _zero_copy, True)  # type: ignore[no-any-return]


_scalar_avals: dict[np.dtype, Any] = {}


def put_scalar(value: np.generic) -> jax.Array:
    """A device array of shape () with a numpy scalar's value and exact dtype. The quickest way to bring a number: 2.8 µs."""
    aval = _scalar_avals.get(value.dtype)
    if aval is None:
        aval = _scalar_avals[value.dtype] = ShapedArray((), value.dtype)
    return _batched_device_put(aval, _sharding, [value], _devices, True, True, _zero_copy, True)  # type: ignore[no-any-return]


def writable_scalar() -> tuple[jax.Array, memoryview]:
    """A float64 device array of shape () and its memory (float64[1]), which may be written to while no program that takes the array runs.

    Raises RuntimeError if the client copies memory aligned to 64 bytes instead of using it.
    """
    block = np.zeros(16)
    first = -block.ctypes.data % 64 // 8
    host = block[first : first + 1]
    array = put(host.reshape(()), copy=False)
    if array.unsafe_buffer_pointer() != host.ctypes.data:
        raise RuntimeError(f"jaxlib {jaxlib.version.__version__} copies host memory that it used to share; tpu_lab.device.numbers rests on that")
    return array, host.data


_handlers: dict[tuple[tuple[int, ...], np.dtype], Any] = {}


def result_handlers(avals: Sequence[Any]) -> list[Any]:
    """What turns raw execution results into jax arrays; one object per shape and dtype, shared by all programs."""
    found = []
    for aval in avals:
        key = (tuple(aval.shape), np.dtype(aval.dtype))
        handler = _handlers.get(key)
        if handler is None:
            if len(_handlers) > 100_000:
                _handlers.clear()
            handler = _handlers[key] = pxla.global_aval_to_result_handler(ShapedArray(*key), _sharding, True)
        found.append(handler)
    return found


def lower(function: Callable[..., Any], avals: Sequence[Any], donate: Sequence[int]) -> tuple[Any, list[Any]]:
    """The StableHLO module of a function of flat array arguments returning a flat sequence of arrays, and its result handlers.

    All arguments are kept. It is what `jax.jit(function).lower(*avals)` does for one device, without the shardings, layouts and
    cache keys, and in a used MLIR context. Of locations only the scopes stay, so the same program gives the same `bytecode`
    wherever its source stands.
    """
    arguments = [ShapedArray(a.shape, a.dtype) for a in avals]
    name = getattr(function, "__name__", "function")
    debug_info = core.DebugInfo("jit", name, tuple(f"arrays[{i}]" for i in range(len(avals))), None)
    with jax.enable_x64(True), config.traceback_in_locations_limit(0):
        jaxpr, results = partial_eval.trace_to_jaxpr(function, FlatTree.flatten((tuple(arguments), {})), debug_info)
        module = _lower(name, jaxpr, arguments, _aliases(arguments, jaxpr.out_avals, donate))
    return module, result_handlers(list(results))


def bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode."""
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def module_text(module: Any) -> str:
    """A module as StableHLO text."""
    return str(module.operation.get_asm(large_elements_limit=16))


def compile_options(options: dict[str, Any] | None) -> Any:
    """How XLA compiles for the one device; `SerializeAsString()` is the same for the same options. Unknown ones are refused by the compile."""
    return compiler.get_compile_options(1, 1, device_assignment=np.array([[_device.id]]), env_options_overrides=options, backend=_device.client)


def compile_module(module: Any, options: Any) -> Any:
    """The loaded executable of a module: call `execute_sharded(arrays).consume_with_handlers(handlers)`, which checks neither
    dtypes nor the 64-bit switch. Raises `XlaRuntimeError`."""
    with jax.enable_x64(True):
        return _device.client.compile_and_load(module, executable_devices=_device_list, compile_options=options)


def serialized(executable: Any) -> bytes | None:
    """An executable of the CPU client that has not run yet, as bytes for `load_executable`; None where XLA cannot."""
    try:
        return executable.serialize()  # type: ignore[no-any-return]
    except XlaRuntimeError:
        return None


def load_executable(content: bytes, options: Any) -> Any:
    """The loaded executable that `serialized` made bytes of, on a machine of the same kind. Raises `XlaRuntimeError`."""
    return _device.client.deserialize_executable(content, _device_list, options)


def topology_fingerprint() -> int:
    """A number that tells kinds of machines apart, by what XLA knows of their CPU."""
    return int(xla_client.get_topology_for_devices([_device]).fingerprint())


def lower_flat(
    name: str, function: Callable[..., Any], avals: Sequence[Any], donate: Sequence[int], platform: str, shardings: dict[int, str]
) -> bytes:
    """The StableHLO bytecode of a function of flat array arguments, lowered for `platform` (`tpu` or `cpu`), with 64-bit types on.

    No backend of that platform is needed. Locations are cut down to the scopes the function was traced in, so the same program
    gives the same bytes wherever its source stands. `shardings`: by argument position, how it lies on several devices, as XLA
    writes it (`{devices=[4,1]<=[4]}`).
    """
    arguments = [ShapedArray(a.shape, a.dtype) for a in avals]
    debug_info = core.DebugInfo("jit", name, tuple(f"arrays[{i}]" for i in range(len(avals))), None)
    with jax.enable_x64(True):
        jaxpr, _ = partial_eval.trace_to_jaxpr(function, FlatTree.flatten((tuple(arguments), {})), debug_info)
        module = _lower(name, jaxpr, arguments, _aliases(arguments, jaxpr.out_avals, donate), platform)
    with module.context:
        _keep_scopes_only(module.operation)
        if shardings:
            _shard(module, shardings)
        return bytecode(module)


def _keep_scopes_only(operation: Any) -> None:
    """Replaces locations by their scope's name; places in files are dropped."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                location = inner.location
                if isinstance(location, ir.NameLoc):
                    inner.operation.location = ir.Location.name(location.name_str)
                else:
                    inner.operation.location = ir.Location.unknown()
                _keep_scopes_only(inner.operation)


def _shard(module: Any, shardings: dict[int, str]) -> None:
    main = next(op for op in module.body.operations if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main")
    kept: list[Any] = list(main.attributes.get("arg_attrs", None) or [ir.DictAttr.get({})] * len(main.arguments))
    for position, text in shardings.items():
        kept[position] = ir.DictAttr.get({**{a.name: a.attr for a in kept[position]}, "mhlo.sharding": ir.StringAttr.get(text)})
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def topology_devices(name: str, bounds: tuple[int, int, int] | None) -> list[Any]:
    """The devices of a TPU topology that need not be there (`v6e:2x2`). Loads libtpu. `bounds` are the chips of a host, for a single chip."""
    described = topologies.get_topology_desc(platform="tpu", topology_name=name, **({"chips_per_host_bounds": bounds} if bounds else {}))
    return list(described.devices)


def compile_stablehlo(bytecode: bytes, devices: Sequence[Any], options: dict[str, Any]) -> Any:
    """Compiles StableHLO for devices that need not be there, one partition each; returns the executable, which is not loaded.

    Raises `XlaRuntimeError` with the compiler's words, also for an unknown option.
    """
    count = len(devices)
    chosen = compiler.get_compile_options(
        1,
        count,
        device_assignment=np.array([[d.id for d in devices]]),
        env_options_overrides=options,
    )
    chosen.executable_build_options.use_shardy_partitioner = False  # shardings are given as XLA's own
    with mlir.make_ir_context():
        module = ir.Module.parse(bytecode)
        module.operation.attributes["mhlo.num_partitions"] = mlir.i32_attr(count)
        client = devices[0].client
        compile = client.compile_and_load if devices[0].platform == "cpu" else client.compile
        return compile(module, executable_devices=_jax.DeviceList(tuple(devices)), compile_options=chosen)


_device_list = _jax.DeviceList((_device,))
_parameters = mlir.LoweringParameters(hoist_constants_as_args=False)
_MODULES_PER_CONTEXT = 256
"""An MLIR context keeps every type and location it ever saw, so it is left after so many modules. Making one takes 2 ms."""


class _Contexts(threading.local):
    """The MLIR context of a thread."""

    def __init__(self) -> None:
        self.used = _MODULES_PER_CONTEXT
        self.context: Any = None

    def take(self) -> Any:
        if self.used >= _MODULES_PER_CONTEXT:
            self.context, self.used = mlir.make_ir_context(), 0
        self.used += 1
        return self.context


_contexts = _Contexts()


def _lower(name: str, jaxpr: Any, arguments: list[Any], aliases: list[int | None], platform: str = "cpu") -> Any:
    """The StableHLO module of a traced function. Raises NotImplementedError for one that calls back into Python."""
    made = mlir.ModuleContext(
        context=_contexts.take(),
        backend=_device.client if platform == _device.platform else None,
        platforms=(platform,),
        axis_context=sharding_impls.ShardingContext(1),
        keepalives=[],
        channel_iterator=itertools.count(1),
        host_callbacks=[],
        lowering_parameters=_parameters,
    )
    with made.context, ir.Location.unknown(made.context):
        attributes = made.module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(f"jit_{name}")
        attributes["mhlo.num_replicas"] = attributes["mhlo.num_partitions"] = mlir.i32_attr(1)
        mlir.lower_jaxpr_to_fun(
            made, f"jit({name})", jaxpr, [], num_const_args=0, main_function=True, in_avals=arguments, input_output_aliases=aliases
        )
    if made.host_callbacks or made.keepalives or effects.ordered_effects.filter_in(jaxpr.effects):
        raise NotImplementedError(f"{name} calls back into Python, which a program of the device tpu cannot; write it in jax.numpy and lax")
    return made.module


def _aliases(arguments: Sequence[Any], results: Sequence[Any], donate: Sequence[int]) -> list[int | None]:
    """For each argument the result that takes its memory: for a donated one the last free result of its shape and dtype.

    From the end, because new contents of donated arguments stand behind all other results, in the arguments' order.
    """
    free = [(a.shape, a.dtype, i) for i, a in enumerate(results)]
    taken: list[int | None] = [None] * len(arguments)
    for position in sorted(donate, reverse=True):
        aval = arguments[position]
        place = next((k for k in reversed(range(len(free))) if free[k][:2] == (aval.shape, aval.dtype)), None)
        if place is not None:
            taken[position] = free.pop(place)[2]
    return taken
