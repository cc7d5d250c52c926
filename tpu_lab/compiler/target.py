"""`tpu_lab.compile_for`: what the compiler of a TPU you do not have makes of a module or function.

The way is that of `torch.compile(backend="tpu")`: Dynamo, AOTAutograd, the device's lowerings. The tensors are empty twins, so
nothing runs and nothing is moved; the StableHLO goes to the target's compiler in a process of its own.
"""

from __future__ import annotations

import gc
import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device import memory, registration
from ..errors import OptionError, one_of
from ..record.program import Program
from ..record.targets import Target, target_named
from ..xla import _jax_internals as xla
from ..xla.compile_service import compile_job, require
from ..xla.extract import Traced, with_source
from ..xla.target_compile import Job
from .joined_calls import Capture, Joined, join
from .source_ops import OWN_FRAME
from .twins import Tracing, Twins

MODES = ("compile", "eager")
EFFORTS = ("full", "quick")


@dataclass(frozen=True)
class Lowered:
    """A traced program, ready for any target of one platform: StableHLO bytecode and what its ids lead to."""

    bytecode: bytes
    traced: Traced

    def job(self, target: Target, mode: str = "compile", effort: str = "full") -> Job:
        """What to give a target's compiler."""
        return Job(self.bytecode, target, mode, effort)

    def compile(self, target: Target, mode: str = "compile", effort: str = "full") -> Program:
        """The program for a target. Raises as `compile_for`."""
        from ..analysis.not_fused import with_not_fused

        return with_not_fused(with_source(compile_job(self.job(target, mode, effort)), self.traced))


def compile_for(
    function: Any,
    *example: Any,
    target: str = "v6e",
    mode: str = "compile",
    effort: str = "full",
    sharding: Mapping[str, Sequence[int]] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Program:
    """Compiles a module or function for a TPU generation, without a TPU. Nothing runs; costs are the compiler's predictions.

    Args:
        function: a `torch.nn.Module`, or a function; one that calls `backward()` or an optimizer's `step()` gives the whole step.
        example: its arguments; tensors on any device, of which only shape, strides and dtype are read.
        target: `v4`, `v5e`, `v5p`, `v6e`, `tpu7x` (or an alias), with a topology as in `v6e:2x2`; `cpu` for XLA:CPU.
        mode: `compile`; `eager`: fusion passes off and nothing kept on chip between operations, as when each runs alone.
        effort: `full`; `quick`: the same fusions in a tenth of the time, without the placement in VMEM.
        sharding: on several chips, by name of an input (`Program.memory` names them) the number of shards along each dimension.
        kwargs: keyword arguments of the function.

    Raises OptionError for arguments that are not accepted, MissingPackageError without the target's compiler,
    TargetCompilerError if that dies. A program that does not fit, or that the target refuses, is an answer: see `Program.outcome`.
    """
    found = target_named(target)
    if mode not in MODES:
        raise OptionError(f"compile_for has no mode {mode!r}", accepted=one_of(MODES))
    if effort not in EFFORTS:
        raise OptionError(f"compile_for has no effort {effort!r}", accepted=one_of(EFFORTS))
    require(found)
    return lower(function, example, kwargs or {}, found, sharding or {}).compile(found, mode, effort)


def lower(function: Any, example: Sequence[Any], kwargs: Mapping[str, Any], target: Target, sharding: Mapping[str, Sequence[int]]) -> Lowered:
    """Traces a module or function with empty twins of its tensors. Raises OptionError if it holds nothing that can be compiled."""
    registration.load()
    twins, held = Twins(), memory.ledger.live
    try:
        with memory.without_limit():
            capture, results = _captured(twins, function, example, kwargs)
        name = getattr(function, "__name__", type(function).__name__)
        return lowered_capture(capture, results, name, target, sharding)
    finally:
        twins.release()
        memory.settle()
        if memory.ledger.live > held:  # autograd's and Dynamo's cycles; their sizes, which no memory stands behind, are in the books
            gc.collect()
            memory.settle()


def _captured(twins: Twins, function: Any, example: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Capture, list[torch.Tensor]]:
    """The graphs that a call makes, and the tensors it leaves: what it returns, and gradients."""
    names = _argument_names(function, len(example))
    copied = twins.of(function)
    arguments = [twins.of(value, name) for value, name in zip(example, names, strict=True)]
    named = {name: twins.of(value, name) for name, value in kwargs.items()}
    twins.make_optimizer_state()
    capture = Capture(runs=False, names=twins.names)
    entry = copied if isinstance(copied, types.FunctionType) else _own_frame(copied)
    with capture.on(), Tracing():
        result = torch.compile(entry, backend="tpu", dynamic=False)(*arguments, **named)
    twins.name(copied)
    held = [v for v in internals.pytree.tree_leaves((result, arguments, named)) if isinstance(v, torch.Tensor)]
    grads = [g for t in (*held, *twins.tensors()) if t.is_leaf and (g := t.grad) is not None]
    return capture, list({id(r): r for r in [*held, *grads]}.values())


def lowered_capture(
    capture: Capture, results: Sequence[torch.Tensor] | None, name: str, target: Target, sharding: Mapping[str, Sequence[int]] | None = None
) -> Lowered:
    """The StableHLO of captured graphs; `results` as in `join`. Raises OptionError if nothing was captured or the sharding fits nothing."""
    if not capture.calls:
        raise OptionError(f"{name} holds no operator that torch.compile could take", remedy="%%tpu compile shows where its graphs break")
    joined = join(capture, results)
    shardings = _shardings(joined, target, sharding or {})
    platform = "tpu" if target.is_tpu else "cpu"
    bytecode = xla.lower_flat(_identifier(name), joined.function, joined.avals, joined.donate, platform, shardings)
    return Lowered(bytecode, Traced(name, joined.ops, joined.labels))


def _own_frame(callee: Any) -> Any:
    """A function around a module, with a code object that nothing else was compiled from, in no file that Dynamo skips."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return callee(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(co_filename=OWN_FRAME), call.__globals__, "call", None, call.__closure__)


def _argument_names(function: Any, count: int) -> list[str]:
    """Names of the positional arguments; `input <n>` where the signature does not tell."""
    callee = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = [p.name for p in inspect.signature(callee).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        parameters = []
    return [parameters[i] if i < len(parameters) else f"input {i}" for i in range(count)]


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name) or "program"


def _shardings(joined: Joined, target: Target, sharding: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """Shards along each dimension, as XLA writes them."""
    positions = {name: i for i, name in joined.labels.items()}
    found = {}
    for name, shards in sharding.items():
        if name not in positions:
            raise OptionError(f"sharding names {name!r}, which is no input", accepted=one_of(positions))
        rank, count = len(joined.avals[positions[name]].shape), 1
        for shard in shards:
            count *= shard
        if len(shards) != rank or count < 1 or target.devices % count:
            raise OptionError(
                f"sharding {list(shards)} of {name!r}",
                accepted=f"{rank} numbers whose product divides the {target.devices} devices of {target.label}",
            )
        rest = target.devices // count
        dims = ",".join(map(str, [*shards, rest] if rest > 1 else shards))
        found[positions[name]] = f"{{devices=[{dims}]<=[{target.devices}]{' last_tile_dim_replicate' if rest > 1 else ''}}}"
    return found
