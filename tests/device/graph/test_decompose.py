"""Decompositions of single operators, run and compared with torch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tests.device.graph.cpu_backend import run_graph
from tpu_lab.device.graph import decompose as module
from tpu_lab.device.graph.decompose import decompose, decomposition_table, is_served, unserved

aten = torch.ops.aten


def meta_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))  # type: ignore[no-any-return]


def matrix(*shape: int) -> torch.Tensor:
    return torch.linspace(-2, 2, int(torch.Size(shape).numel())).reshape(shape)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes `decompose` believe that an operator has no lowering, so that tests do not depend on which ones have."""

    def hide(op: Any) -> None:
        monkeypatch.setattr(module, "is_served", lambda other: other is not op and is_served(other))
        decomposition_table.cache_clear()

    yield hide
    monkeypatch.undo()
    decomposition_table.cache_clear()


CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (torch.ops.prims.sin.default, (matrix(5),), {}),
    (torch.ops.prims.sum.default, (matrix(2, 3), [1]), {}),
    (torch.ops.prims.cat.default, ([matrix(2, 3), matrix(1, 3)], 0), {}),
    (aten.huber_loss_backward.default, (matrix(4), matrix(4), -matrix(4), 1, 0.5), {}),
    (aten.mse_loss.default, (matrix(4), matrix(4) * 2), {}),
    (aten.trace.default, (matrix(3, 3),), {}),
    (aten.linspace.default, (0, 3, 7), {}),
    (aten.block_diag.default, ([matrix(2, 2), matrix(1, 3)],), {}),
    (aten.diag_embed.default, (matrix(2, 3),), {}),
    (aten.rot90.default, (matrix(2, 3),), {}),
    (aten.renorm.default, (matrix(3, 4), 2.0, 0, 1.0), {}),
    (aten.softplus_backward.default, (matrix(4), matrix(4), 1.0, 20.0), {}),
    (aten.upsample_bilinear2d.vec, (matrix(1, 2, 3, 4), [6, 8], False, None), {}),
    (aten.dist.default, (matrix(4), matrix(4) * 3, 2), {}),
    (aten.native_layer_norm.default, (matrix(2, 4), [4], matrix(4), None, 1e-5), {}),
    (aten.matmul.default, (matrix(2, 3), matrix(3, 4)), {}),
    (aten.outer.default, (matrix(3), matrix(2)), {}),
    (aten.linalg_pinv.atol_rtol_tensor, (matrix(2, 4, 3),), {}),
    (aten.linalg_pinv.atol_rtol_tensor, (matrix(3, 3) + matrix(3, 3).T,), {"hermitian": True, "rtol": torch.tensor(0.1)}),
    (aten.linalg_pinv.atol_rtol_tensor, (matrix(2, 2, 3),), {"atol": torch.tensor([0.0, 2.5], dtype=torch.float64)}),
    (aten.linalg_pinv.atol_rtol_tensor, (torch.zeros(0, 3),), {}),
]


@pytest.mark.parametrize(("op", "args", "kwargs"), CALLS, ids=[str(c[0]) for c in CALLS])
def test_one_operator_as_a_graph(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], without: Any) -> None:
    without(op)
    graph = decompose(op, *meta_call(args, kwargs))
    assert graph is not None
    assert unserved(graph) == [] and op not in {n.target for n in graph.graph.nodes}
    outputs, changed = run_graph(graph, [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)])
    torch.testing.assert_close(outputs, pytree.tree_leaves(op(*args, **kwargs)))
    assert changed == []


def test_what_an_operator_writes_comes_back(without: Any) -> None:
    without(aten.lerp_.Scalar)
    ours, theirs, end = matrix(4), matrix(4), matrix(4) * 3
    graph = decompose(aten.lerp_.Scalar, *meta_call((ours, end, 0.25), {}))
    assert graph is not None
    _, changed = run_graph(graph, [ours, end])
    torch.testing.assert_close(changed, [theirs.lerp_(end, 0.25)])


def test_an_out_argument_is_written() -> None:
    out = torch.zeros(5)
    graph = make_fx(lambda x, out: (aten.linspace.out(0, 2, 5, out=out), aten.sum.IntList_out(x, [0], out=out[:3])))(matrix(2, 3), out.clone())
    with pytest.raises(ValueError, match="not functional"):
        run_graph(graph, [matrix(2, 3), out])
    graph = make_fx(lambda out: aten.linspace.out(0, 2, 5, out=out) + 1)(out.clone())
    outputs, changed = run_graph(graph, [out])
    torch.testing.assert_close((outputs, changed), ([torch.linspace(1, 3, 5)], [torch.linspace(0, 2, 5)]))


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.masked_select.default, (matrix(3), matrix(3) > 0)),
        (aten._pin_memory.default, (matrix(3),)),
        (aten.mm.default, (matrix(2, 3), matrix(3, 2))),
    ],
    ids=str,
)
def test_no_decomposition(op: Any, args: tuple[Any, ...], without: Any) -> None:
    without(op)
    assert decompose(op, *meta_call(args, {})) is None


def test_refused_arguments_have_no_decomposition(without: Any) -> None:
    without(aten.mse_loss.default)
    assert decompose(aten.mse_loss.default, (torch.empty(3, device="meta"), torch.empty(4, device="meta"))) is None


def test_the_table_holds_nothing_that_is_served() -> None:
    table = decomposition_table()
    assert not [op for op in table if is_served(op)]
    assert aten.mse_loss_backward.default in table or is_served(aten.mse_loss_backward.default)
    assert aten.add.Tensor not in table and aten.view.default not in table and aten.add_.Tensor not in table
