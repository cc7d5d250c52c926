"""Decompositions of single operators, run and compared with torch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from tests.device.graph.cpu_backend import run_graph
from tpu_lab.device.graph.decompose import decompose, decomposition_table, is_served, unserved

aten = torch.ops.aten


def meta_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))  # type: ignore[no-any-return]


def matrix(*shape: int) -> torch.Tensor:
    return torch.linspace(-2, 2, int(torch.Size(shape).numel())).reshape(shape)


CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.ops.prims.sin.default, (matrix(5),), {}),
    (torch.ops.prims.sum.default, (matrix(2, 3), [1]), {}),
    (aten.huber_loss_backward.default, (matrix(4), matrix(4), -matrix(4), 1, 0.5), {}),
    (aten.mse_loss.default, (matrix(4), matrix(4) * 2), {}),
    (aten.trace.default, (matrix(3, 3),), {}),
    (aten.linspace.default, (0, 3, 7), {}),
    (aten.softplus_backward.default, (matrix(4), matrix(4), 1.0, 20.0), {}),
    (aten.dist.default, (matrix(4), matrix(4) * 3, 2), {}),
    (aten.matmul.default, (matrix(2, 3), matrix(3, 4)), {}),
    (aten.outer.default, (matrix(3), matrix(2)), {}),
]


@pytest.mark.parametrize(("op", "args", "kwargs"), CALLS, ids=[str(c[0]) for c in CALLS])
def test_one_operator_as_a_graph(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    graph = decompose(op, *meta_call(args, kwargs))
    assert graph is not None
    assert unserved(graph) == []
    outputs, changed = run_graph(graph, [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)])
    torch.testing.assert_close(outputs, pytree.tree_leaves(op(*args, **kwargs)))
    assert changed == []


def test_what_an_operator_writes_comes_back() -> None:
    target, source = torch.zeros(4), matrix(4)
    graph = decompose(aten.mse_loss.out, *meta_call((source, source * 2), {"out": torch.zeros(())}))
    assert graph is not None
    _, changed = run_graph(graph, [source, source * 2, torch.zeros(())])
    torch.testing.assert_close(changed, [torch.nn.functional.mse_loss(source, source * 2)])
    assert target.sum() == 0


@pytest.mark.parametrize(
    ("op", "args"),
    [(aten.nonzero.default, (matrix(3),)), (aten._pin_memory.default, (matrix(3),)), (aten._linalg_eigvals.default, (matrix(3, 3),))],
    ids=str,
)
def test_no_decomposition(op: Any, args: tuple[Any, ...]) -> None:
    if is_served(op):
        pytest.skip("has a lowering")
    assert decompose(op, *meta_call(args, {})) is None


def test_refused_arguments_have_no_decomposition() -> None:
    assert decompose(aten.mse_loss.default, (torch.empty(3, device="meta"), torch.empty(4, device="meta"))) is None


def test_the_table_holds_nothing_that_is_served() -> None:
    table = decomposition_table()
    assert not [op for op in table if is_served(op)]
    assert aten.mse_loss_backward.default in table or is_served(aten.mse_loss_backward.default)
    assert aten.add.Tensor not in table and aten.view.default not in table and aten.add_.Tensor not in table
