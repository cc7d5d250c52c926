"""Elementwise arithmetic of two and three operands.

Sources: the ATen schemas and PyTorch's documentation for the meaning, CPU PyTorch for every edge value. Integer division
by zero, an error on PyTorch's CPU, gives an unspecified number here and an error by its check in `bounds`.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .complex import power as complex_power
from .complex import with_sign_of
from .promotion import Number, Operand, cast, is_complex, is_floating, is_integral, opmath, pointwise, result_dtype
from .registry import lowering
from .unary import absolute, round_half_even, scaled_by_power_of_two, square_root, truncated


def promoted(*operands: Operand, compute: bool = True) -> list[Array]:
    """The operands in their common dtype (a number is rounded to it), then in the dtype it computes in unless `compute` is False."""
    dtype = result_dtype(*operands)
    values = [o.to(dtype) if isinstance(o, Number) else cast(o, dtype) for o in operands]
    return [cast(v, opmath(dtype)) for v in values] if compute else values


def _scaled(x: Array, factor: Number) -> Array:
    """`factor * x` in x's dtype. A real factor scales the parts of a complex x, so that infinities do not turn into NaN."""
    if is_complex(x.dtype) and not is_complex(factor.dtype):
        real = factor.to(np.finfo(x.dtype).dtype)
        return lax.complex(lax.real(x) * real, lax.imag(x) * real)
    return x * factor.to(x.dtype)


@lowering("add.Tensor", "add.Scalar")
def add(a: Operand, b: Operand, alpha: Number) -> Array:
    """a + alpha b; of bools their disjunction."""
    x, y = _exact_numbers(a, b)
    return x | (y & alpha.to(x.dtype)) if x.dtype == np.bool_ else x + _scaled(y, alpha)


@lowering("_add_relu.Tensor", "_add_relu.Scalar")
def add_relu(a: Operand, b: Operand, alpha: Number) -> Array:
    """max(a + alpha b, 0)."""
    total = add(a, b, alpha)
    return jnp.maximum(total, total.dtype.type(0))


@lowering("sub.Tensor", "sub.Scalar")
def sub(a: Operand, b: Operand, alpha: Number) -> Array:
    """a - alpha b."""
    x, y = _exact_numbers(a, b)
    return x - _scaled(y, alpha)


@lowering("rsub.Tensor", "rsub.Scalar")
def rsub(a: Operand, b: Operand, alpha: Number) -> Array:
    """b - alpha a."""
    return sub(b, a, alpha)


def _exact_numbers(*operands: Operand) -> list[Array]:
    """The operands in the computation dtype; a number keeps the digits that a 16-bit dtype would round off, as PyTorch's sums do."""
    dtype = opmath(result_dtype(*operands))
    return [o.to(dtype) if isinstance(o, Number) else cast(o, dtype) for o in operands]


@pointwise("mul.Tensor", "mul.Scalar")
def mul(a: Array, b: Array) -> Array:
    """a b; of bools their conjunction."""
    return a & b if a.dtype == np.bool_ else a * b


@pointwise("div.Tensor", "div.Scalar", kind="int_to_float")
def div(a: Array, b: Array) -> Array:
    return a / b


@lowering("div.Tensor_mode", "div.Scalar_mode")
def div_mode(a: Operand, b: Operand, *, rounding_mode: str | None) -> Array:
    """a / b rounded to `floor` or towards zero (`trunc`), in the common dtype; None is true division. Raises ValueError for other modes."""
    if rounding_mode is None:
        return div(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if rounding_mode != "trunc":
        raise ValueError(f"rounding_mode of div is None, 'trunc' or 'floor', not {rounding_mode!r}")
    x, y = promoted(a, b)
    if x.dtype == np.bool_:
        return x
    return truncated(x / y) if is_floating(x.dtype) else lax.div(*jnp.broadcast_arrays(x, y))


@lowering("floor_divide", "floor_divide.Scalar")
def floor_divide(a: Operand, b: Operand) -> Array:
    """The largest whole number not above a / b, found through the exact remainder as in Python's `float.__floordiv__`."""
    x, y = jnp.broadcast_arrays(*promoted(a, b))
    if x.dtype == np.bool_:
        return x
    rest = lax.rem(x, y)
    if not is_floating(x.dtype):
        return lax.div(x, y) - lax.convert_element_type(_opposite(rest, y), x.dtype)
    quotient = (x - rest) / y - lax.convert_element_type(_opposite(rest, y), x.dtype)
    whole = lax.floor(quotient)
    whole = whole + lax.convert_element_type(quotient - whole > 0.5, x.dtype)
    whole = jnp.where(quotient == 0, with_sign_of(jnp.zeros_like(x), x / y), whole)
    return jnp.where(y == 0, x / y, whole)


def _opposite(rest: Array, divisor: Array) -> Array:
    """Where a remainder of truncating division is not zero and its sign is not the divisor's."""
    return (rest != 0) & ((rest < 0) != (divisor < 0))


@lowering("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(a: Operand, b: Operand) -> Array:
    """a modulo b, with the sign of b."""
    x, y = jnp.broadcast_arrays(*promoted(a, b))
    rest = lax.rem(x, y)
    return lax.select(_opposite(rest, y), rest + y, rest)


@lowering("fmod.Tensor", "fmod.Scalar")
def fmod(a: Operand, b: Operand) -> Array:
    """a modulo b, with the sign of a."""
    return lax.rem(*jnp.broadcast_arrays(*promoted(a, b)))


@lowering("pow.Tensor_Tensor", "pow.Scalar")
def power(base: Operand, exponent: Operand) -> Array:
    x, y = jnp.broadcast_arrays(*promoted(base, exponent))
    if is_floating(x.dtype) or is_complex(x.dtype):
        return complex_power(x, y) if is_complex(x.dtype) else lax.pow(x, y)
    return x | ~y if x.dtype == np.bool_ else _integer_power(x, y)


def _integer_power(base: Array, exponent: Array) -> Array:
    """Wraps like repeated multiplication; a negative exponent gives what is left of 1 / base**|exponent| in integers: 0, 1 or -1."""
    one = base.dtype.type(1)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        result, square, left = state
        return lax.select(left & one == 1, result * square, result), square * square, lax.shift_right_logical(left, jnp.full_like(left, one))

    start = (jnp.full_like(base, one), base, lax.max(exponent, jnp.zeros_like(exponent)))
    result, _, _ = lax.while_loop(lambda state: jnp.any(state[2] != 0), step, start)
    if not jnp.issubdtype(base.dtype, jnp.signedinteger):
        return result
    odd = exponent & one == 1
    inverse = jnp.where(base == 1, one, jnp.where(base == -1, jnp.where(odd, -one, one), 0 * one))
    return jnp.where(exponent < 0, inverse, result)


_LARGEST_UNROLLED_POWER = 8


@lowering("pow.Tensor_Scalar", static=("exponent",))
def power_scalar(base: Array, exponent: bool | int | float | complex) -> Array:
    """base ** exponent: small whole exponents as multiplications, halves as roots (so (-inf) ** 0.5 is NaN, as in PyTorch)."""
    kind = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(exponent)]
    dtype = result_dtype(base, Number(jnp.asarray(exponent, dtype=kind)))
    x = cast(base, opmath(dtype))
    if dtype == np.bool_:
        return x if exponent else jnp.ones_like(x)
    if exponent in (0.5, -0.5):
        return square_root(x) if exponent == 0.5 else lax.rsqrt(x)
    if not isinstance(exponent, complex) and (is_integral(dtype) or (abs(exponent) <= _LARGEST_UNROLLED_POWER and exponent == int(exponent))):
        return lax.integer_pow(x, int(exponent)) if exponent else jnp.ones_like(x)
    return power(x, jnp.full_like(x, exponent))


@pointwise("atan2", kind="int_to_float")
def atan2(y: Array, x: Array) -> Array:
    return lax.atan2(*jnp.broadcast_arrays(y, x))


@pointwise("hypot")
def hypot(a: Array, b: Array) -> Array:
    """sqrt(a² + b²) without overflow; infinite if either is, even beside a NaN (C99)."""
    a, b = lax.abs(a), lax.abs(b)
    large, small = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = small / jnp.where(large == 0, 1, large)
    return jnp.where((a == math.inf) | (b == math.inf), math.inf, large * lax.sqrt(1 + ratio * ratio))


@lowering("copysign.Tensor", "copysign.Scalar")
def copysign(size: Operand, sign: Operand) -> Array:
    """|size| with the sign of `sign`; the sign of a NaN counts."""
    x, y = promoted(size, sign)
    if not is_floating(x.dtype):
        x, y = (cast(v, np.dtype(np.float64)) for v in (x, y))
    return with_sign_of(*jnp.broadcast_arrays(x, y))


@pointwise("nextafter", kind="no_opmath")
def nextafter(start: Array, target: Array) -> Array:
    return lax.nextafter(*jnp.broadcast_arrays(start, target))


@pointwise("ldexp.Tensor", kind="int_to_float")
def ldexp(x: Array, exponent: Array) -> Array:
    """x 2**exponent, exact for a whole exponent."""
    if is_complex(x.dtype):
        return x * lax.pow(jnp.full_like(exponent, 2), exponent)
    x, exponent = jnp.broadcast_arrays(x, exponent)
    whole = round_half_even(exponent)
    fraction = jnp.where(lax.abs(exponent) == math.inf, 0, exponent - whole)
    return scaled_by_power_of_two(x * lax.exp(fraction * math.log(2)), whole)


@pointwise("logaddexp")
def logaddexp(a: Array, b: Array) -> Array:
    """log(exp a + exp b)."""
    if is_complex(a.dtype):
        return _complex_logaddexp(*jnp.broadcast_arrays(a, b))
    return jnp.where((a == b) & (lax.abs(a) == math.inf), a, jnp.maximum(a, b) + lax.log1p(lax.exp(-lax.abs(a - b))))


def _complex_logaddexp(a: Array, b: Array) -> Array:
    first = lax.real(a) >= lax.real(b)
    large, small = lax.select(first, a, b), lax.select(first, b, a)
    both_infinite = (lax.real(a) == lax.real(b)) & (lax.abs(lax.real(a)) == math.inf)
    return jnp.where(both_infinite, lax.log(lax.exp(a) + lax.exp(b)), large + lax.log1p(lax.exp(small - large)))


@pointwise("logaddexp2")
def logaddexp2(a: Array, b: Array) -> Array:
    """log2(2**a + 2**b)."""
    rest = lax.log1p(lax.exp(-lax.abs(a - b) * math.log(2))) / math.log(2)
    return jnp.where((a == b) & (lax.abs(a) == math.inf), a, jnp.maximum(a, b) + rest)


@pointwise("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other", kind="int_to_float")
def xlogy(x: Array, y: Array) -> Array:
    """x log y; 0 where x is 0, unless y is NaN."""
    return jnp.where((x == 0) & (y == y), 0, x * lax.log(y))


@pointwise("special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar", kind="int_to_float")
def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y); 0 where x is 0, unless y is NaN."""
    return jnp.where((x == 0) & (y == y), 0, x * lax.log1p(y))


@pointwise("lerp.Scalar", "lerp.Tensor")
def lerp(start: Array, end: Array, weight: Array) -> Array:
    """start + weight (end - start), computed from the nearer end."""
    step = end - start
    return jnp.where(lax.abs(weight) < 0.5, start + weight * step, end - step * (1 - weight))


@lowering("addcmul")
def addcmul(x: Array, a: Array, b: Array, *, value: Number) -> Array:
    """x + value a b."""
    x, a, b = promoted(x, a, b)
    return x + _scaled(a, value) * b


@lowering("addcdiv")
def addcdiv(x: Array, a: Array, b: Array, *, value: Number) -> Array:
    """x + value a / b."""
    x, a, b = promoted(x, a, b)
    return x + _scaled(a, value) / b


@pointwise("heaviside")
def heaviside(x: Array, at_zero: Array) -> Array:
    """0 below zero (and for NaN), `at_zero` at zero, 1 above."""
    x, at_zero = jnp.broadcast_arrays(x, at_zero)
    return lax.select(x == 0, at_zero, lax.convert_element_type(x > x.dtype.type(0), x.dtype))


@pointwise("gcd")
def gcd(a: Array, b: Array) -> Array:
    """The greatest common divisor, by Euclid, until the last pair is done."""
    a, b = jnp.broadcast_arrays(a, b)

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = pair
        return lax.select(b == 0, a, b), lax.select(b == 0, b, lax.rem(a, b))

    return absolute(lax.while_loop(lambda pair: jnp.any(pair[1] != 0), step, (a, b))[0])


@pointwise("lcm")
def lcm(a: Array, b: Array) -> Array:
    """The least common multiple; 0 if either is 0."""
    divisor = gcd(a, b)
    return absolute(a) // lax.max(divisor, jnp.ones_like(divisor)) * absolute(b)
