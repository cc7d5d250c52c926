"""The table of lowerings: what each ATen operator means in jax.

A lowering is a pure function of jax arrays. It is registered under the *functional* overload; the in-place and `out=`
variants are derived from it by the device, so no operator is written twice.

How a lowering is called (every argument of the ATen schema is passed, defaults filled in; positional arguments by
position, keyword-only ones by name):

=====================  =================================================================================
schema type            what the function receives
=====================  =================================================================================
Tensor                 a jax array with the tensor's logical shape (strides never show); `None` if absent
Tensor[]               a list of arrays
Scalar, float          a `Number` (run-time value: it must not change the program), a plain Python number
                       if its name stands in `static=`; `None` if absent
int, SymInt, bool,     the Python value; it is part of the program's key
int[], str, dtype
layout, device,        not passed
pin_memory, generator,
memory_format
=====================  =================================================================================

Optional parameters, recognised by name: `rng` (an `Rng`; the operator is random), `out_specs` (a tuple of
`jax.ShapeDtypeStruct`, what PyTorch's meta kernel says the results are), for factories whose length depends on numbers.

It returns an array or a tuple of arrays as in the schema (a Tensor[] result: a list), each with the shape PyTorch gives
it; the caller casts results to the dtype PyTorch's meta kernel states and lays them out in its strides. With `mutates=`
the new values of the named arguments follow the results (for operators that update an argument and are not the
in-place twin of another: batch-norm statistics, fused optimizers). 64-bit types are on while a lowering is traced, so
name dtypes explicitly (`jnp.arange(n, dtype=jnp.int32)`); Python literals stay weak and are safe.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Lowering:
    """One registered lowering. `overload` is e.g. `add.Tensor` (`relu` for the overload `default`)."""

    overload: str
    function: Callable[..., Any]
    static: frozenset[str]
    mutates: tuple[str, ...]
    unread: frozenset[str]
    random: bool
    wants_out_specs: bool

    @property
    def family(self) -> str:
        """The file that holds it, e.g. `pointwise`."""
        return self.function.__module__.rsplit(".", 1)[-1]


TABLE: dict[str, Lowering] = {}


def lowering(
    *overloads: str, static: tuple[str, ...] = (), mutates: tuple[str, ...] = (), unread: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Registers a function as the lowering of `overloads` (`"add.Tensor"`, `"relu"`; other namespaces as `"ns::op"`).

    `static` names Scalar/float arguments that have to be known when the program is built. `mutates` names arguments whose
    new values the function returns after its results. `unread` names tensors of which only shape and dtype matter (the target
    of a copy or fill), so that their memory need not be an input. Raises ValueError if an overload has a lowering already.
    """

    def register(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        for overload in overloads:
            if overload in TABLE:
                raise ValueError(f"{overload} has a lowering already, in {TABLE[overload].function.__module__}")
            TABLE[overload] = Lowering(
                overload, function, frozenset(static), mutates, frozenset(unread), "rng" in parameters, "out_specs" in parameters
            )
        return function

    return register


def find(overload: str) -> Lowering | None:
    """The lowering of a functional overload, or None. Loads the families at the first call."""
    _load()
    return TABLE.get(overload)


def all_lowerings() -> dict[str, Lowering]:
    """Every lowering by overload."""
    _load()
    return dict(TABLE)


_loaded = False


def _load() -> None:
    global _loaded
    if _loaded:
        return
    _loaded = True
    import importlib

    from . import FAMILIES

    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
