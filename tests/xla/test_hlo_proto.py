"""The decoder against XLA's own reading of the same bytes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_lab.xla.hlo_module import Module
from tpu_lab.xla.hlo_proto import DecodeError, decode


def model(x: Any, w: Any) -> Any:
    with jax.named_scope("n1:aten.mm"):
        y = x @ w
    with jax.named_scope("n2:aten.cumsum"):
        y = jnp.cumsum(y, axis=0)
    with jax.named_scope("n3:aten.softmax"):
        return jax.nn.softmax(y), (y > 0).sum(), jax.lax.fori_loop(0, 3, lambda i, v: v * 2, y)


@pytest.fixture(scope="module")
def compiled() -> Any:
    shapes = jax.ShapeDtypeStruct((8, 16), jnp.bfloat16), jax.ShapeDtypeStruct((16, 4), jnp.bfloat16)
    return jax.jit(model).lower(*shapes).compile().runtime_executable().hlo_modules()[0]


def test_names_opcodes_and_operands_are_those_of_xla(compiled: Any) -> None:
    module = Module(decode(compiled.as_serialized_hlo_module_proto(), "Module"), "RAM")
    expected = {
        instruction.name: (str(instruction.opcode).removeprefix("HloOpcode.k").lower(), [o.name for o in instruction.operands()])
        for computation in compiled.computations()
        for instruction in computation.instructions()
    }
    short = {"exponential": "exp"}  # the enumeration's name
    found = {node.name: (short.get(node.opcode, node.opcode.replace("-", "")), [o.name for o in node.operands]) for node in module.nodes}
    assert found == expected and len(found) > 20
    assert module.entry.name in compiled.to_string().split("ENTRY")[1].split("(")[0]


def test_shapes_and_layouts_are_printed_as_xla_prints_them(compiled: Any) -> None:
    module = Module(decode(compiled.as_serialized_hlo_module_proto(), "Module"), "RAM")
    lines = {line.strip().removeprefix("ROOT ").split(" = ")[0].lstrip("%"): line for line in compiled.to_string().splitlines() if " = " in line}
    checked = 0
    for node in module.nodes:
        if not node.shape.parts and node.shape.dtype not in ("token", "opaque"):
            dims = ",".join(map(str, node.shape.dims))
            layout = node.shape.layout if node.shape.dims else ""
            assert f" = {node.shape.dtype}[{dims}]{layout} " in lines[node.name]
            checked += 1
    assert checked > 20


def test_ids_are_read_from_the_scopes(compiled: Any) -> None:
    module = Module(decode(compiled.as_serialized_hlo_module_proto(), "Module"), "RAM")
    assert {"n1:aten.mm", "n2:aten.cumsum", "n3:aten.softmax"} <= {node.op for node in module.nodes}


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        decode(data)
    except DecodeError:
        return


@given(st.integers(min_value=0))
def test_a_cut_module_is_refused_or_shorter(compiled: Any, cut: int) -> None:
    whole = compiled.as_serialized_hlo_module_proto()
    part = whole[: cut % len(whole)]
    try:
        assert len(decode(part, "Module")["computations"]) <= len(decode(whole, "Module")["computations"])
    except DecodeError:
        return


def test_negative_numbers_and_large_ids() -> None:
    minus_one = b"\xff" * 9 + b"\x01"
    assert decode(b"\x18" + minus_one, "WindowDim")["low"] == -1
    assert decode(b"\x98\x02" + b"\x80\x80\x80\x80 ", "Instruction")["id"] == 8 << 30
