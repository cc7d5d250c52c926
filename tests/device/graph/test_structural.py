"""Views and the like inside graphs, against torch on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.device.graph.cpu_backend import run_graph
from tpu_lab.device.graph.structural import structural

aten = torch.ops.aten
BASE = torch.arange(24.0).reshape(2, 3, 4)
CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda x: aten.view(x, [6, -1]),
    "_unsafe_view": lambda x: aten._unsafe_view(x, [4, 6]),
    "_reshape_alias": lambda x: aten._reshape_alias(x, [6, 4], [4, 1]),
    "permute": lambda x: aten.permute(x, [2, 0, -2]),
    "transpose": lambda x: aten.transpose(x, -1, 0),
    "t": lambda x: aten.t(aten.select(x, 0, 1)),
    "expand": lambda x: aten.expand(aten.unsqueeze(x, 1), [5, 2, 7, -1, 4]),
    "unsqueeze": lambda x: aten.unsqueeze(x, -1),
    "squeeze": lambda x: aten.squeeze(aten.unsqueeze(x, 1)),
    "squeeze.dims": lambda x: aten.squeeze(aten.unsqueeze(x, 1), [0, 1]),
    "select": lambda x: aten.select(x, 1, -1),
    "slice": lambda x: aten.slice(x, 2, 1, 9223372036854775807, 2),
    "slice, empty": lambda x: aten.slice(x, 1, 2, 1),
    "split": lambda x: aten.split(x, 2, 1),
    "split_with_sizes": lambda x: aten.split_with_sizes(x, [1, 3], -1),
    "unbind": lambda x: aten.unbind(x, 1),
    "diagonal": lambda x: aten.diagonal(x, 1, 1, 2),
    "unfold": lambda x: aten.unfold(x, 2, 3, 1),
    "alias": lambda x: aten.alias(x),
    "detach": lambda x: aten.detach(x),
    "view.dtype": lambda x: aten.view(x, torch.int32),
    "view.dtype, narrower": lambda x: aten.view(x, torch.int16),
    "view.dtype, wider": lambda x: aten.view(x, torch.float64),
    "view_as_complex": lambda x: aten.view_as_complex(aten.view(x, [3, 4, 2])),
    "view_as_real": lambda x: aten.view_as_real(aten.view_as_complex(aten.view(x, [3, 4, 2]))),
    "conj": lambda x: aten.clone(aten._conj(aten.view_as_complex(aten.view(x, [3, 4, 2])))),
    "view_copy": lambda x: aten.view_copy(x, [6, -1]),
    "permute_copy": lambda x: aten.permute_copy(x, [2, 0, 1]),
    "slice_copy": lambda x: aten.slice_copy(x, 1, 0, 2),
    "split_copy": lambda x: aten.split_copy(x, 2, 1),
    "diagonal_copy": lambda x: aten.diagonal_copy(x, 0, 0, 1),
    "select_scatter": lambda x: aten.select_scatter(x, aten.select(x, 0, 0) + 100, 0, 1),
    "slice_scatter": lambda x: aten.slice_scatter(x, aten.slice(x, 2, 0, 2) + 100, 2, 1, 4, 2),
    "diagonal_scatter": lambda x: aten.diagonal_scatter(x, aten.diagonal(x, 0, 1, 2) + 100, 1, 1, 2),
    "as_strided": lambda x: aten.as_strided(x, [3, 4], [5, 2], 2),
    "as_strided of a permuted tensor": lambda x: aten.as_strided(aten.clone(x.permute(1, 2, 0)), [4, 2], [1, 3], 1),
    "as_strided_scatter": lambda x: aten.as_strided_scatter(x, aten.as_strided(x, [3, 2], [5, 2], 2) + 100, [3, 2], [5, 2], 2),
    "clone": lambda x: aten.clone(x, memory_format=torch.contiguous_format),
    "_to_copy": lambda x: aten._to_copy(x, dtype=torch.int32),
    "lift_fresh_copy": lambda x: aten.lift_fresh_copy(x),
    "copy": lambda x: aten.copy(x, aten.select(x, 2, 0).unsqueeze(-1)),
    "prims.convert_element_type": lambda x: torch.ops.prims.convert_element_type(x, torch.float16),
    "prims.broadcast_in_dim": lambda x: torch.ops.prims.broadcast_in_dim(x, [2, 5, 3, 4], [0, 2, 3]),
    "prims.transpose": lambda x: torch.ops.prims.transpose(x, [2, 1, 0]),
    "prims.squeeze": lambda x: torch.ops.prims.squeeze(aten.unsqueeze(x, 0), [0]),
    "prims.split_dim": lambda x: torch.ops.prims.split_dim(x, 2, 2),
    "prims.collapse_view": lambda x: torch.ops.prims.collapse_view(x, 0, 1),
    "prims.real": lambda x: torch.ops.prims.real(aten.view_as_complex(aten.view(x, [3, 4, 2]))),
    "prims.reshape": lambda x: torch.ops.prims.reshape(aten.permute(x, [2, 0, 1]), [6, 4]),
    "prims.view_of_dtype": lambda x: torch.ops.prims.view_of_dtype(x, torch.int32),
    "prims.iota": lambda x: torch.ops.prims.iota(5, start=3, step=-2, dtype=torch.int32, device=x.device, requires_grad=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_torch_does_it(name: str) -> None:
    graph = make_fx(CALLS[name])(BASE)
    outputs, changed = run_graph(graph, [BASE])
    expected = torch.utils._pytree.tree_leaves(CALLS[name](BASE))
    torch.testing.assert_close(outputs, [e.resolve_conj() for e in expected], rtol=0, atol=0)
    assert changed == []


def test_what_is_not_structural() -> None:
    others = (aten.add.Tensor, aten.as_strided.default, torch.ops.prims.as_strided.default, torch.ops.prims.cat.default, None)
    assert all(structural(op) is None for op in others)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    def calls(x: torch.Tensor) -> Any:
        flat = aten.view(x, [-1] if x.numel() else [0, 3])
        return flat, aten.unsqueeze(x, 0), aten.permute(x, list(range(x.ndim))), aten.expand(x, [2, *x.shape])

    value = torch.ones(shape)
    outputs, _ = run_graph(make_fx(calls)(value), [value])
    torch.testing.assert_close(outputs, list(calls(value)))


def test_empties_have_the_stated_shape_and_dtype() -> None:
    def calls(x: torch.Tensor) -> Any:
        return aten.empty([2, 3], dtype=torch.int16), aten.empty_like(x), aten.new_empty(x, [4]), aten.empty_strided([2, 2], [1, 2])

    outputs, _ = run_graph(make_fx(calls)(BASE), [BASE])
    assert [(o.shape, o.dtype) for o in outputs] == [(e.shape, e.dtype) for e in calls(BASE)]


def test_as_strided_beyond_its_argument_is_refused() -> None:
    graph = make_fx(lambda x: aten.as_strided(aten.select(x, 0, 1), [24], [1], 0))(BASE)
    with pytest.raises(ValueError, match="reaches outside its argument"):
        run_graph(graph, [BASE])
