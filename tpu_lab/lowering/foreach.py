"""`_foreach_*`: one operator over lists of tensors, each served by the lowering of the single-tensor operator.

The table names, for every overload, the operator that PyTorch's own loop over the list calls. An argument that is a list
goes element by element, any other argument goes to every element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .promotion import Number, cast
from .registry import find, lowering

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 max neg reciprocal round rsqrt sigmoid "
    "sign sin sinh sqrt tan tanh trunc"
)

MAPPED: tuple[tuple[str, str], ...] = (
    ("add.Tensor", "add.List add.Tensor add.Scalar add.ScalarList"),
    ("sub.Tensor", "sub.List sub.Scalar sub.ScalarList"),
    ("mul.Tensor", "mul.List mul.Tensor mul.Scalar mul.ScalarList"),
    ("div.Tensor", "div.List div.Tensor div.Scalar div.ScalarList"),
    ("maximum", "maximum.List maximum.Scalar maximum.ScalarList clamp_min.List clamp_min.Scalar clamp_min.ScalarList"),
    ("minimum", "minimum.List minimum.Scalar minimum.ScalarList clamp_max.List clamp_max.Scalar clamp_max.ScalarList"),
    ("lerp.Tensor", "lerp.List"),
    ("lerp.Scalar", "lerp.Scalar lerp.ScalarList"),
    ("pow.Tensor_Tensor", "pow.List"),
    ("pow.Tensor_Scalar", "pow.Scalar pow.ScalarList"),
    ("pow.Scalar", "pow.ScalarAndTensor"),
    ("mm", "mm"),
)
"""Single-tensor operator, then the overloads (without `_foreach_`) that map over it."""

_STATIC = {"pow.Tensor_Scalar": ("exponent",)}
_ALPHA = ("add.Tensor", "sub.Tensor")


def _single(name: str) -> Callable[..., Any]:
    found = find(name)
    if found is None:
        raise NotImplementedError(f"{name} has no lowering, so its _foreach_ form has none")
    return found.function


def _mapped(name: str) -> Callable[..., list[Array]]:
    def over_lists(*arguments: Any, **named: Any) -> list[Array]:
        if name in _ALPHA:
            named.setdefault("alpha", Number(jnp.asarray(1, np.int64)))
        function = _single(name)
        count = next(len(a) for a in arguments if isinstance(a, list))
        return [function(*(a[i] if isinstance(a, list) else a for a in arguments), **named) for i in range(count)]

    return over_lists


for _name in UNARY.split():
    lowering(f"_foreach_{_name}")(_mapped(_name))
for _target, _overloads in MAPPED:
    for _overload in _overloads.split():
        lowering(f"_foreach_{_overload}", static=_STATIC.get(_target, ()))(_mapped(_target))


def _numbers(scalars: Array | list[Number] | Number, count: int) -> list[Number]:
    """One number per tensor. A 1-d tensor of them (overload `Tensor`) counts as Python numbers too."""
    if isinstance(scalars, list):
        return scalars
    if isinstance(scalars, Number):
        return [scalars] * count
    wide = np.dtype(np.complex128 if jnp.iscomplexobj(scalars) else np.float64 if jnp.issubdtype(scalars.dtype, jnp.floating) else np.int64)
    return [Number(cast(scalars[i], wide)) for i in range(count)]


def _with_value(name: str) -> Callable[..., list[Array]]:
    def over_lists(self: list[Array], tensor1: list[Array], tensor2: list[Array], scalars: Array | list[Number] | Number) -> list[Array]:
        function = _single(name)
        values = _numbers(scalars, len(self))
        return [function(*row[:3], value=row[3]) for row in zip(self, tensor1, tensor2, values, strict=True)]

    return over_lists


for _name in ("addcmul", "addcdiv"):
    lowering(*(f"_foreach_{_name}.{form}" for form in ("Scalar", "ScalarList", "Tensor")))(_with_value(_name))


@lowering("_foreach_norm.Scalar", static=("ord",))
def foreach_norm(self: list[Array], ord: float, dtype: object) -> list[Array]:
    """The vector norm of each tensor as a whole, 0-dim."""
    function = _single("linalg_vector_norm")
    return [function(x, ord, None, False, dtype=dtype) for x in self]


@lowering("_foreach_powsum.Scalar", static=("ord",))
def foreach_powsum(self: list[Array], ord: float, dtype: object) -> list[Array]:
    """`sum(|x| ** ord)` of each tensor, 0-dim: the norm before its root, so that shards can be added up."""
    magnitude, power, total = _single("abs"), _single("pow.Tensor_Scalar"), _single("sum.dim_IntList")
    return [total(power(magnitude(x), ord), None, False, dtype=dtype) for x in self]


@lowering("_foreach_zero", unread=("self",))
def foreach_zero(self: list[Array]) -> list[Array]:
    return [jnp.zeros(x.shape, x.dtype) for x in self]


@lowering("_foreach_clone")
def foreach_clone(self: list[Array]) -> list[Array]:
    return list(self)


@lowering("_foreach_copy", unread=("self",))
def foreach_copy(self: list[Array], src: list[Array], non_blocking: bool) -> list[Array]:
    """The values of `src` in the shapes and dtypes of `self`."""
    return [jnp.broadcast_to(cast(source, target.dtype), target.shape) for target, source in zip(self, src, strict=True)]
