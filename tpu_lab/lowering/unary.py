"""Elementwise functions of one tensor: exponentials, trigonometry, roots, rounding, signs.

Sources: the ATen schemas and PyTorch's documentation for the meaning, CPU PyTorch for every edge value. XLA flushes
subnormal numbers to zero on CPU as on TPU; that is the one difference to CPU PyTorch that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .complex import on_its_side, sign_bit
from .promotion import Kind, Number, cast, is_complex, is_floating, opmath, pointwise
from .registry import lowering
from .sine import cosine, sine

square_root = on_its_side(lax.sqrt, odd_real=False)

_FLOATING: dict[str, Callable[[Array], Array]] = {
    "acos": on_its_side(lax.acos, odd_real=False, mirrored=True),
    "acosh": on_its_side(lax.acosh, odd_real=False),
    "asin": on_its_side(lax.asin, odd_real=True),
    "asinh": on_its_side(lax.asinh, odd_real=True),
    "atan": lax.atan,
    "atanh": lax.atanh,
    "cos": cosine,
    "cosh": lax.cosh,
    "exp": lax.exp,
    "expm1": lax.expm1,
    "log": lax.log,
    "log1p": lax.log1p,
    "rsqrt": lax.rsqrt,
    "sigmoid": lax.logistic,
    "sin": sine,
    "sinh": lax.sinh,
    "sqrt": square_root,
    "tan": lax.tan,
    "tanh": lax.tanh,
}
"""Functions that XLA has itself; an integer argument becomes a floating number."""


def _of_integers(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`function` for floating numbers; integers are whole already."""
    return lambda x: function(x) if is_floating(x.dtype) else x


def truncated(x: Array) -> Array:
    """Towards zero, keeping the sign of a zero."""
    return lax.select(x < 0, lax.ceil(x), lax.floor(x))


def round_half_even(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


_WHOLE: dict[str, Callable[[Array], Array]] = {
    "ceil": _of_integers(lax.ceil),
    "floor": _of_integers(lax.floor),
    "round": _of_integers(round_half_even),
    "trunc": _of_integers(truncated),
}


def _register(table: dict[str, Callable[[Array], Array]], kind: Kind) -> None:
    for overload, function in table.items():

        def apply(x: Array, function: Callable[[Array], Array] = function) -> Array:
            return function(x)

        pointwise(overload, kind=kind)(apply)


_register(_FLOATING, "int_to_float")
_register(_WHOLE, "default")


def scaled_by_power_of_two(x: Array, exponent: Array) -> Array:
    """`x * 2**exponent` for a whole `exponent` (a floating array of x's shape and dtype), rounded once where the result is normal."""
    info = np.finfo(x.dtype)
    integer = np.dtype(f"int{info.bits}")
    limit = 2 * info.maxexp - 2
    power = lax.convert_element_type(lax.clamp(x.dtype.type(-limit), exponent, x.dtype.type(limit)), integer)
    half = lax.shift_right_arithmetic(power, integer.type(1))

    def two_to_the(n: Array) -> Array:
        return lax.bitcast_convert_type(lax.shift_left(n + (info.maxexp - 1), integer.type(info.nmant)), x.dtype)

    return x * two_to_the(half) * two_to_the(power - half)


@pointwise("exp2", kind="int_to_float")
def exp2(x: Array) -> Array:
    """2**x. In float32 the whole part goes into the exponent bits: XLA's exp(x * ln 2) loses 20 ulp at large x."""
    if x.dtype != np.float32:
        return lax.exp2(x)
    x = lax.clamp(np.float32(-300), x, np.float32(300))
    whole = round_half_even(x)
    return scaled_by_power_of_two(lax.exp((x - whole) * math.log(2)), whole)


@pointwise("log2", kind="int_to_float")
def log2(x: Array) -> Array:
    """The logarithm to base 2, exact at powers of 2: the exponent bits, and the logarithm of a mantissa in [sqrt(1/2), sqrt(2))."""
    if is_complex(x.dtype):
        return lax.log(x) / math.log(2)
    info = np.finfo(x.dtype)
    integer = np.dtype(f"int{info.bits}")
    bits = lax.bitcast_convert_type(x, integer)
    least = np.asarray(math.sqrt(0.5), x.dtype).view(integer)[()]
    exponent = lax.shift_right_arithmetic(bits - least, integer.type(info.nmant))
    mantissa = lax.bitcast_convert_type(bits - lax.shift_left(exponent, integer.type(info.nmant)), x.dtype)
    value = lax.convert_element_type(exponent, x.dtype) + lax.log(mantissa) / math.log(2)
    return jnp.where((x >= info.tiny) & (x < math.inf), value, lax.log(x))


@pointwise("log10", kind="int_to_float")
def log10(x: Array) -> Array:
    return jnp.log10(x)


@pointwise("reciprocal", kind="int_to_float")
def reciprocal(x: Array) -> Array:
    return 1 / x


@pointwise("sinc", kind="int_to_float")
def sinc(x: Array) -> Array:
    angle = x * math.pi
    return jnp.where(x == 0, 1, lax.sin(angle) / jnp.where(x == 0, 1, angle))


@pointwise("logit", kind="int_to_float")
def logit(x: Array, eps: Array | None) -> Array:
    """log(x / (1 - x)) of x clamped to [eps, 1 - eps]; no clamp if `eps` is None or negative."""
    if eps is not None:
        x = jnp.where(eps < 0, x, lax.clamp(eps, x, 1 - eps))
    return lax.log(x / (1 - x))


@pointwise("logit_backward")
def logit_backward(grad: Array, x: Array, eps: Array | None) -> Array:
    """grad / (x (1 - x)); outside [eps, 1 - eps] zero, without `eps` NaN outside [0, 1]."""
    slope = grad / (x * (1 - x))
    outside = jnp.where((x < 0) | (x > 1), math.nan, slope)
    return outside if eps is None else jnp.where(eps < 0, outside, jnp.where((x < eps) | (x > 1 - eps), 0, slope))


@pointwise("deg2rad", kind="int_to_float")
def deg2rad(x: Array) -> Array:
    return x * (math.pi / 180)


@pointwise("rad2deg", kind="int_to_float")
def rad2deg(x: Array) -> Array:
    return x * (180 / math.pi)


@pointwise("frac")
def frac(x: Array) -> Array:
    return x - truncated(x)


@lowering("round.decimals")
def round_decimals(x: Array, *, decimals: int) -> Array:
    """Rounds to `decimals` places (tens and more if negative). The power of ten is kept from XLA, which would divide by multiplying with 1/10."""
    if not is_floating(x.dtype):
        return x
    work = opmath(x.dtype)
    scale: Array = lax.optimization_barrier(jnp.asarray(10.0 ** abs(decimals), dtype=work))
    value = cast(x, work)
    return round_half_even(value / scale) * scale if decimals < 0 else round_half_even(value * scale) / scale


@lowering("neg")
def neg(x: Array) -> Array:
    return lax.neg(x)


@lowering("abs")
def absolute(x: Array) -> Array:
    return x if x.dtype == np.bool_ or jnp.issubdtype(x.dtype, jnp.unsignedinteger) else lax.abs(x)


@lowering("sign", "sgn")
def sign(x: Array) -> Array:
    """-1, 0 or 1 (0 for NaN); of a complex number x / |x|."""
    if x.dtype == np.bool_:
        return x
    if is_complex(x.dtype):
        size = lax.abs(x)
        return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))
    return lax.convert_element_type(x > 0, x.dtype) - lax.convert_element_type(x < 0, x.dtype) if is_floating(x.dtype) else lax.sign(x)


@lowering("signbit")
def signbit(x: Array) -> Array:
    """True below zero, and for -0.0 and a NaN with the sign bit."""
    return sign_bit(x) if is_floating(x.dtype) else jnp.less(x, 0)


@lowering("frexp.Tensor")
def frexp(x: Array) -> tuple[Array, Array]:
    """Mantissa in [0.5, 1) and int32 exponent, x = mantissa * 2**exponent; zero, NaN and infinity have the exponent 0."""
    mantissa, exponent = jnp.frexp(cast(x, opmath(x.dtype)))
    return mantissa, lax.convert_element_type(exponent, np.dtype(np.int32))


@lowering("nan_to_num")
def nan_to_num(x: Array, nan: Number | None, posinf: Number | None, neginf: Number | None) -> Array:
    """Replaces NaN by `nan` (0), infinities by `posinf`, `neginf` (the largest finite numbers of the dtype)."""
    if is_complex(x.dtype):
        return lax.complex(nan_to_num(lax.real(x), nan, posinf, neginf), nan_to_num(lax.imag(x), nan, posinf, neginf))
    if not is_floating(x.dtype):
        return x
    info = jnp.finfo(x.dtype)  # type: ignore[no-untyped-call]

    def value(given: Number | None, otherwise: float) -> Array:
        return jnp.asarray(otherwise, dtype=x.dtype) if given is None else given.to(x.dtype)

    x = jnp.where(x != x, value(nan, 0.0), x)
    x = jnp.where(x == math.inf, value(posinf, float(info.max)), x)
    return jnp.where(x == -math.inf, value(neginf, float(info.min)), x)
