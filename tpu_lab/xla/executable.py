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

FAST_COMPILE: dict[str, Any] = {"xla_backend_optimization_level": 0}
"""Compiles in about 40 % of the time; code for small operands, where dispatch and not arithmetic takes the time."""


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

    __slots__ = ("_compiled", "consume", "execute", "handlers", "nbytes", "run")

    def __init__(self, executable: Any, handlers: list[Any], compiled: Any) -> None:
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
            flops, accessed = analysis.get("flops"), analysis.get("bytes accessed")
        except internals.XlaRuntimeError:
            pass  # this program has no cost model (an opaque library call): the figures stay unknown
        stats = self._compiled.get_compiled_memory_stats()
        temp = int(stats.temp_size_in_bytes)
        kernels = count_kernels(self._compiled.hlo_modules()[0])
        return ProgramCost(flops, None if accessed is None else int(accessed), temp, kernels)


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
    fast: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Executable:
    """Traces and compiles `function(*arrays) -> list of arrays` for arguments of these shapes and dtypes (64-bit types on).

    `donate` are positions whose memory a result may take over. `fast` trades machine code quality for compile time.
    `options` are XLA's; one that XLA does not know raises JaxRuntimeError.
    """
    chosen = {**(FAST_COMPILE if fast else {}), **(options or {})}
    executable, handlers, compiled = internals.compile_flat(function, avals, donate, chosen or None)
    return Executable(executable, handlers, compiled)


def give_memory_back() -> None:
    """Returns freed heap pages to the system; worth it after dropping many executables."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return  # not glibc: its allocator has no such call
