"""FLOPs and padded bytes against XLA's own figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tpu_lab.xla import hlo_costs
from tpu_lab.xla.hlo_module import Module
from tpu_lab.xla.hlo_proto import decode
from tpu_lab.xla.hlo_shapes import shape_of


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]


def convolved(stride: int, padding: Any, rhs: int = 1, lhs: int = 1, groups: int = 1) -> Callable[..., Any]:
    return lambda x, w: lax.conv_general_dilated(
        x, w, (stride, stride), padding, rhs_dilation=(rhs, rhs), lhs_dilation=(lhs, lhs), feature_group_count=groups
    )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda a, b: a @ b, arrays((7, 5), (5, 3))),
        (lambda a, b: jnp.einsum("bik,bkj->bij", a, b), arrays((4, 7, 5), (4, 5, 3))),
        (convolved(1, "VALID"), arrays((2, 3, 9, 9), (4, 3, 3, 3))),
        (convolved(2, ((1, 1), (0, 2))), arrays((2, 3, 9, 10), (4, 3, 3, 3))),
        (convolved(1, "SAME", rhs=2), arrays((1, 2, 11, 11), (3, 2, 3, 3))),
        (convolved(1, ((1, 2), (2, 1)), lhs=2), arrays((1, 2, 6, 6), (3, 2, 3, 3))),
        (convolved(1, "SAME", groups=2), arrays((2, 4, 8, 8), (6, 2, 3, 3))),
        (lambda a: a.sum(0), arrays((6, 5))),
        (lambda a: a.max(), arrays((6, 5))),
        (lambda a, b: jnp.where(a > b, a * b, a - 1), arrays((6, 5), (6, 5))),
        (lambda a: lax.reduce_window(a, 0.0, lax.add, (2, 2), (2, 2), "VALID"), arrays((8, 8))),
    ],
    ids=["mm", "bmm", "conv", "conv stride", "conv dilated", "conv transposed", "conv grouped", "sum", "max", "pointwise", "pool"],
)
def test_flops_are_those_of_xla(function: Callable[..., Any], arguments: list[Any]) -> None:
    lowered = jax.jit(function).lower(*arguments)
    module = Module(decode(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto(), "Module"), "RAM")
    inlined = [node for computation in module.computations for node in computation.nodes if not _is_reducer(computation.name)]
    assert sum(hlo_costs.flops(node) for node in inlined) == lowered.cost_analysis()["flops"]


def _is_reducer(name: str) -> bool:
    return name.startswith("region")


@pytest.mark.parametrize(
    ("kind", "dims", "order", "tiles", "expected"),
    [
        (11, [100, 100], [1, 0], [[8, 128]], 53248),
        (16, [], [], [[256]], 512),
        (16, [3, 5, 7], [2, 0, 1], [[4, 128], [2, 1]], 5120),
        (11, [100, 100], [1, 0], [], 40000),
    ],
)
def test_padded_bytes_are_those_the_tpu_compiler_gives(kind: int, dims: list[int], order: list[int], tiles: list[list[int]], expected: int) -> None:
    """Figures of `argument_size_in_bytes` of libtpu 0.0.42.1 for arguments of these layouts."""
    layout = {"order": order, "tiles": [{"dims": t} for t in tiles], "bits": 0, "space": 0}
    shape = shape_of({"type": kind, "dims": dims, "parts": [], "layout": layout}, "HBM")
    assert shape.bytes == expected
