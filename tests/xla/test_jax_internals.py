"""The private names of jax: each does what `tpu_lab.xla._jax_internals` takes it for. A jax upgrade that breaks one fails here by name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tpu_lab.xla import _jax_internals as internals
from tpu_lab.xla.executable import compile_program, effort


def shape(*size: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(size, dtype)


def put(values: Any, dtype: Any = np.float32) -> jax.Array:
    return internals.put(np.asarray(values, dtype), copy=True)


def test_put_keeps_64_bits() -> None:
    assert internals.put(np.array([2**40 + 1]), copy=True).dtype == np.int64
    assert np.asarray(internals.put(np.array([0.1]), copy=True))[0] == 0.1


@pytest.mark.parametrize("largest", [None, 16, 4096])
def test_a_program_gives_what_jit_gives(largest: int | None) -> None:
    def function(a: jax.Array, b: jax.Array) -> list[jax.Array]:
        with jax.named_scope("n1:scope"):
            return [jnp.where(a > 0, jnp.tanh(a), b), jax.nn.softmax(a + 2.5), jnp.asarray(np.arange(3))]

    a, b = np.array([-1.0, 0.5, 2.0], np.float32), np.array([7.0, 8.0, 9.0], np.float32)
    found = compile_program(function, [shape(3), shape(3)], largest=largest).run([put(a), put(b)])
    with jax.enable_x64(True):
        expected = jax.jit(function)(a, b)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_programs_are_64_bit_and_jax_of_the_user_is_not() -> None:
    program = compile_program(lambda x: [x * 3, jnp.arange(2)], [shape(1, dtype=np.int64)])
    product, numbers = program.run([put([2**40], np.int64)])
    assert int(product[0]) == 3 * 2**40 and numbers.dtype == np.int64
    assert jnp.arange(2).dtype == np.int32


def test_an_unused_argument_stays_an_argument() -> None:
    assert float(compile_program(lambda a, b: [b], [shape(), shape()]).run([put(1), put(2)])[0]) == 2


def test_a_donated_argument_is_consumed_and_its_memory_used_again() -> None:
    program = compile_program(lambda a, b: [a + b, b * 2], [shape(4096), shape(4096)], donate=[1])
    a, b = put(np.ones(4096)), put(np.full(4096, 3.0))
    address = b.unsafe_buffer_pointer()
    total, double = program.run([a, b])
    assert b.is_deleted() and not a.is_deleted()
    assert double.unsafe_buffer_pointer() == address
    assert float(total[0]) == 4 and float(double[0]) == 6


@pytest.mark.parametrize(
    ("arguments", "results", "donate", "expected"),
    [
        ([(3,), (3,)], [(3,), (3,)], [0, 1], [0, 1]),
        ([(3,), (3,)], [(3,), (3,)], [0], [1, None]),  # the fresh result comes first, the new contents last
        ([(3,), (4,)], [(5,)], [0, 1], [None, None]),
    ],
)
def test_which_result_takes_the_memory(arguments: Sequence[Any], results: Sequence[Any], donate: Sequence[int], expected: list[int | None]) -> None:
    assert internals._aliases([shape(*s) for s in arguments], [shape(*s) for s in results], donate) == expected


def test_an_unknown_option_is_an_exception() -> None:
    with pytest.raises(internals.XlaRuntimeError, match="No such compile option"):
        compile_program(lambda a: [a], [shape()], options={"xla_no_such_option": True})


@pytest.mark.parametrize("largest", [1, 2 << 10, 64 << 10, 1 << 30])
def test_xla_knows_the_options_of_every_effort(largest: int) -> None:
    assert float(compile_program(lambda a: [a + 1], [shape()], options=effort(largest)).run([put(1)])[0]) == 2


def test_a_call_into_python_is_refused() -> None:
    def function(a: jax.Array) -> list[jax.Array]:
        return [jax.pure_callback(np.sin, a, a)]

    with pytest.raises(NotImplementedError, match="calls back into Python"):
        compile_program(function, [shape()])


def test_threads_compile_at_the_same_time() -> None:
    found: dict[int, float] = {}

    def work(start: int) -> None:
        for i in range(start, start + 20):
            found[i] = float(compile_program(lambda a, i=i: [jnp.cos(a) * i], [shape(i + 1)], largest=16).run([put(np.zeros(i + 1))])[0][-1])

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 20, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: float(i) for i in range(60)}


def test_contexts_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals, "_MODULES_PER_CONTEXT", 2)
    monkeypatch.setattr(internals, "_contexts", internals._Contexts())
    for i in range(5):
        assert float(compile_program(lambda a, i=i: [a + i], [shape()]).run([put(1)])[0]) == 1 + i
    assert internals._contexts.used == 1


@pytest.mark.parametrize("value", [np.float64(0.1), np.float64(-0.0), np.float64("nan"), np.int64(-(2**62)), np.bool_(True), np.complex128(1 - 2j)])
def test_a_scalar_keeps_value_and_dtype(value: np.generic) -> None:
    array = internals.put_scalar(value)
    assert array.shape == () and array.dtype == value.dtype
    assert np.asarray(array).tobytes() == value.tobytes()


def test_the_memory_of_a_writable_scalar_is_the_arrays() -> None:
    array, memory = internals.writable_scalar()
    plus = compile_program(lambda x: [x + 1], [array.aval])
    for value in (0.5, -2.0):
        memory[0] = value
        assert plus.run([array])[0].item() == value + 1
