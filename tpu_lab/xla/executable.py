"""A compiled program and how it is run: the shortest way from jax arrays through XLA back to jax arrays."""

from __future__ import annotations

import ctypes
import gc
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from . import _jax_internals as internals
from .executable_cache import executable_for

_TINY_BYTES, _SMALL_BYTES = 2 << 10, 64 << 10
_OLD_EMITTERS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}


def effort(largest: int, single: bool = False) -> dict[str, Any]:
    """XLA's options for a program whose largest array has so many bytes: one whose time is dispatch need not be compiled well.

    `single`: the program is one arithmetic operation on arrays that lie alike. XLA:CPU (jaxlib 0.10) makes a loop of that which reads
    memory at half speed; the older emitters do not (a product of 1 M floats takes 0.10 ms instead of 0.19; everything else is slower
    with them, a transpose 10 times).

    Measured on XLA:CPU over 13 programs, compile time in ms (default, then these): add 24, 8 (tiny), 13 (small); gelu 30, 13, 20;
    softmax 92, 18, 20; layer norm 57, 19, 33. The older emitters' code runs as fast as the default's up to 64 kB; unoptimised
    code does up to 2 kB.
    """
    if largest <= _TINY_BYTES:
        return {**_OLD_EMITTERS, "xla_backend_optimization_level": 0}
    if largest <= _SMALL_BYTES:
        return {**_OLD_EMITTERS, "xla_backend_optimization_level": 1}
    return dict(_OLD_EMITTERS) if single else {}


@dataclass(frozen=True)
class ProgramCost:
    """The compiler's own figures: FLOPs, bytes read and written, bytes of temporaries, number of kernels (None: not told)."""

    flops: float | None
    bytes_accessed: int | None
    temp_bytes: int | None
    kernels: int | None


class Executable:
    """One XLA program over flat lists of arrays. `run(arrays)` returns the list of results; donated arguments are consumed.

    The hot path calls `execute(arrays).consume_with_handlers(handlers)` itself, which is what `run` does.
    """

    __slots__ = ("_compiled", "consume", "execute", "handlers", "nbytes", "origin", "run")

    def __init__(self, executable: Any, handlers: list[Any], origin: str) -> None:
        self.origin = origin
        """`miss` if it was compiled, `disk` if it was loaded."""
        self.execute = executable.execute_sharded
        self.handlers = handlers
        self.consume = operator.methodcaller("consume_with_handlers", handlers)
        self._compiled = executable
        self.nbytes = 280_000 + int(executable.size_of_generated_code_in_bytes() or 0)
        execute = self.execute

        def run(arrays: Sequence[jax.Array]) -> list[jax.Array]:
            return execute(arrays).consume_with_handlers(handlers)  # type: ignore[no-any-return]

        self.run: Callable[[Sequence[jax.Array]], list[jax.Array]] = run

    def run_into(self, done: list[list[jax.Array]], arrays: Sequence[jax.Array]) -> None:
        """Runs the program and puts the list of its results into `done`, in one step of the interpreter.

        Ctrl-C can come between any two steps, and a donated argument is gone once the program ran: whoever donates catches
        the interrupt, takes what is in `done`, and loses nothing.
        """
        done.extend(map(self.consume, map(self.execute, (arrays,))))

    def cost(self) -> ProgramCost:
        """Asks XLA for the program's cost; takes 0.1 to 0.2 ms."""
        flops = accessed = temp = kernels = None
        try:
            analysis = self._compiled.cost_analysis()
            flops, accessed = (_known(analysis.get(name)) for name in ("flops", "bytes accessed"))
        except internals.XlaRuntimeError:
            pass  # this program has no cost model (an opaque library call): the figures stay unknown
        stats = self._compiled.get_compiled_memory_stats()
        temp = int(stats.temp_size_in_bytes)
        kernels = count_kernels(self._compiled.hlo_modules()[0])
        return ProgramCost(flops, None if accessed is None else int(accessed), temp, kernels)


def _known(figure: float | None) -> float | None:
    """A figure of XLA's cost analysis; a negative one stands for a part without a cost model (library calls), so the sum is not known."""
    return None if figure is None or figure < 0 else figure


_FREE = frozenset({"Parameter", "Constant", "Tuple", "GetTupleElement", "Bitcast", "Iota", "AfterAll"})


def count_kernels(module: Any) -> int:
    """How many instructions of the entry computation do work: fusions, library calls and single operations."""
    entry = next(c for c in module.computations() if c.name.startswith("main"))  # what jax calls it
    return sum(1 for instruction in entry.instructions() if str(instruction.opcode).removeprefix("HloOpcode.k") not in _FREE)


def compile_program(
    function: Callable[..., Sequence[jax.Array]],
    avals: Sequence[Any],
    donate: Sequence[int] = (),
    *,
    largest: int | None = None,
    single: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Executable:
    """Traces `function(*arrays) -> list of arrays` for arguments of these shapes and dtypes (64-bit types on) and compiles it, or
    loads it where this machine compiled it before (`executable_cache`).

    `donate` are positions whose memory a result may take over. `largest` is the size of the largest array in bytes, if compile
    time may be saved for a small one, and `single` says that it is one arithmetic operation (see `effort`).
    `options` are XLA's; one that XLA does not know raises JaxRuntimeError.
    """
    chosen = {**(effort(largest, single) if largest is not None else {}), **(options or {})}
    module, handlers = internals.lower(function, avals, donate)
    executable, origin = executable_for(module, chosen)
    return Executable(executable, handlers, origin)


def give_memory_back() -> None:
    """Returns freed heap pages to the system; worth it after dropping many executables."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return  # not glibc: its allocator has no such call
