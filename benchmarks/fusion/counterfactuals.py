"""For each reason a pair of programs: one in which two ops stay apart for that reason, and the same with nothing changed but the cause taken away.

The producing op is traced under the id `n1:producer`, the consuming op under `n2:consumer`. A reason holds if the first program gives it
for that pair on a target and the second has a kernel with both ops in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tpu_lab.record.fusion_reasons import FusionReason

from .programs import BF16, F32, I32, Example

PRODUCER, CONSUMER = "n1:producer", "n2:consumer"


@dataclass(frozen=True)
class Counterfactual:
    """Two programs that differ in one cause."""

    reason: FusionReason
    change: str
    """What was taken away, as a clause after `because`."""
    apart: Example
    together: Example
    pair: tuple[str, str] = (PRODUCER, CONSUMER)
    """The ops that stay apart; an empty consumer is any (the compiler's own kernels have no id)."""


def producing() -> Any:
    """The scope of the producing op."""
    return jax.named_scope(PRODUCER)


def consuming() -> Any:
    """The scope of the consuming op."""
    return jax.named_scope(CONSUMER)


COUNTERFACTUALS: list[Counterfactual] = []
Shapes = tuple[tuple[tuple[int, ...], Any], ...]
Body = Callable[..., Any]


def case(
    reason: FusionReason, change: str, shapes: Shapes, other: Shapes | None = None, pair: tuple[str, str] = (PRODUCER, CONSUMER)
) -> Callable[[Callable[[], tuple[Body, Body]]], None]:
    """Adds the two functions that the decorated one returns; `other` are the second's arguments where they differ."""

    def add(make: Callable[[], tuple[Body, Body]]) -> None:
        apart, together = make()
        first, second = _named(f"{reason.id}_apart", apart, shapes), _named(f"{reason.id}_together", together, other or shapes)
        COUNTERFACTUALS.append(Counterfactual(reason, change, first, second, pair))

    return add


def _named(name: str, function: Body, shapes: Shapes) -> Example:
    def program(*arguments: Any) -> Any:
        return function(*arguments)

    program.__name__ = name
    return Example(name, program, tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes))


ROWS: Shapes = (((2048, 1024), F32),)
TWO: Shapes = (((2048, 1024), F32), ((2048, 1024), F32))
R = FusionReason


def chain(first: Body, second: Body) -> Body:
    """A program of a producing op and a consuming op; further arguments go to the second."""

    def function(x: Any, *others: Any) -> Any:
        with producing():
            value = first(x)
        with consuming():
            return second(value, *others)

    return function


@case(R.TWO_MATMULS, "the second op is a product too", (((4096, 4096), BF16), ((4096, 8192), BF16), ((8192, 4096), BF16)))
def two_matmuls() -> tuple[Body, Body]:
    def program(second: Body) -> Body:
        def function(x: Any, w1: Any, w2: Any) -> Any:
            with producing():
                value = x @ w1
            with consuming():
                return second(value, w2)

        return function

    return program(lambda h, w: h @ w), program(lambda h, w: h * w[:, 0])


@case(R.AFTER_MATMUL, "the second op takes slices of the product", (((2048, 512), BF16), ((512, 1536), BF16)))
def after_matmul() -> tuple[Body, Body]:
    def program(second: Body) -> Body:
        def function(x: Any, w: Any) -> Any:
            with producing():
                value = x @ w
            with consuming():
                return second(value)

        return function

    return program(lambda h: jnp.split(h, 3, axis=1)), program(jnp.tanh)


@case(R.AFTER_REDUCTION, "the first op is a reduction", ROWS)
def after_reduction() -> tuple[Body, Body]:
    return chain(lambda x: x.sum(-1), jnp.tanh), chain(lambda x: x * 2.0, jnp.tanh)


@case(R.REDUCTION_THEN_BROADCAST, "the first op is a reduction", TWO)
def reduction_then_broadcast() -> tuple[Body, Body]:
    return chain(lambda x: x.max(-1, keepdims=True), lambda m, y: jnp.exp(y - m)), chain(lambda x: x * 2.0, lambda m, y: jnp.exp(y - m))


@case(R.SMALL_VALUE, "the value has fewer elements than its user", (((2048,), F32), ((2048, 1024), F32)), TWO)
def small_value() -> tuple[Body, Body]:
    return chain(jnp.tanh, lambda v, y: v[:, None] * y), chain(jnp.tanh, lambda v, y: v * y)


@case(R.SCALAR_RESULT, "the value is one number", (((), F32), ((2048, 1024), F32)), TWO)
def scalar_result() -> tuple[Body, Body]:
    return chain(jnp.tanh, lambda s, y: s * y), chain(jnp.tanh, lambda s, y: s * y)


@case(R.USED_MORE_THAN_ONCE, "another kernel uses the value too", (((2048, 512), BF16), ((512, 512), BF16)))
def used_more_than_once() -> tuple[Body, Body]:
    def program(both: bool) -> Body:
        def function(x: Any, w: Any) -> Any:
            with producing():
                value = x @ w
            middle = value.astype(F32).mean(-1, keepdims=True) if both else 0.5
            with consuming():
                return value - middle

        return function

    return program(True), program(False)


@case(R.LAYOUT_CHANGE, "the second op transposes", (((256, 64, 128), F32),))
def layout_change() -> tuple[Body, Body]:
    return chain(lambda x: jnp.exp(x).sum(-1), lambda v: v.T), chain(jnp.exp, lambda v: v * 2.0)


@case(R.WINDOW, "the second op is a pool over windows", (((8, 64, 64, 32), F32),))
def window() -> tuple[Body, Body]:
    def pool(value: Any) -> Any:
        return lax.reduce_window(value, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return chain(jnp.exp, pool), chain(jnp.exp, jnp.sin)


@case(R.SORT, "the second op sorts", (((256, 128), F32),))
def sort() -> tuple[Body, Body]:
    return chain(jnp.exp, lambda v: jnp.sort(v, 0)), chain(jnp.exp, jnp.sin)


@case(R.GATHER_SCATTER, "the rows are picked by values", (((4096, 512), F32), ((1024,), I32)))
def gather_scatter() -> tuple[Body, Body]:
    def program(pick: Body) -> Body:
        def function(table: Any, ids: Any) -> Any:
            with producing():
                value = pick(table, ids)
            with consuming():
                return jnp.tanh(value)

        return function

    return program(lambda t, ids: t.at[ids].get(mode="promise_in_bounds")), program(lambda t, ids: t[:1024] * ids[:, None])


@case(R.CUSTOM_CALL, "the compiler puts its own softmax kernel there", (((4, 8, 512, 64), BF16),) * 3, pair=(PRODUCER, ""))
def custom_call() -> tuple[Body, Body]:
    def program(normalize: Body) -> Body:
        def function(q: Any, k: Any, v: Any) -> Any:
            with producing():
                scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
            with consuming():
                weights = normalize(scores.astype(F32)).astype(BF16)
            return jnp.einsum("bhqk,bhkd->bhqd", weights, v)

        return function

    return program(lambda s: jax.nn.softmax(s, axis=-1)), program(jnp.exp)


@case(R.NOT_FUSIBLE, "the first op turns the order of elements round", TWO)
def not_fusible() -> tuple[Body, Body]:
    return chain(lambda x: x[:, ::-1], lambda v, y: jnp.tanh(v) + y), chain(lambda x: x * 2.0, lambda v, y: jnp.tanh(v) + y)


@case(R.CONTROL_FLOW, "the first op is in a loop", (((256, 256), F32), ((64, 256, 256), F32)), (((256, 256), F32), ((2, 256, 256), F32)))
def control_flow() -> tuple[Body, Body]:
    def program(unroll: int | bool) -> Body:
        def function(x: Any, ys: Any) -> Any:
            def step(state: Any, y: Any) -> tuple[Any, None]:
                with producing():
                    return jnp.tanh(state + y), None

            value = lax.scan(step, x, ys, unroll=unroll)[0]
            with consuming():
                return jnp.sin(value) * 2.0

        return function

    return program(1), program(True)


@case(R.EMULATED_DTYPE, "the values are complex", (((512, 512), jnp.complex64),), (((512, 512), F32),), (CONSUMER, CONSUMER))
def emulated_dtype() -> tuple[Body, Body]:
    return chain(lambda x: x * 2.0, lambda v: v * v + 1.0), chain(lambda x: x * 2.0, lambda v: v * v + 1.0)


@case(R.RANDOM, "the bits come from the hardware's generator", (((4,), jnp.uint32),))
def random() -> tuple[Body, Body]:
    def counted(key: Any) -> Any:
        return lax.broadcasted_iota(jnp.uint32, (1024, 1024), 0) * key[0]

    return chain(lambda k: lax.rng_bit_generator(k, (1024, 1024))[1], lambda b: b >> 9), chain(counted, lambda b: b >> 9)
