"""The range checks agree with what CPU torch accepts and refuses."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from tests.lowering.replay import call
from tpu_lab.lowering.bounds import CHECKS, values_checked
from tpu_lab.lowering.registry import Lowering, all_lowerings

TABLE = torch.arange(12.0).reshape(3, 4)
ROW = torch.ones(1, 4)
BY_ELEMENT: dict[str, tuple[Any, ...]] = {
    "gather": (),
    "scatter.src": (TABLE,),
    "scatter.value": (1.0,),
    "scatter_add": (TABLE,),
    "scatter_reduce.two": (TABLE, "amax"),
}
BY_SLICE: dict[str, tuple[Any, ...]] = {"index_select": (), "index_add": (ROW,), "index_copy": (ROW,), "index_fill.int_Scalar": (1.0,)}


def overload(name: str) -> Any:
    packet, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), variant or "default")


def flagged(name: str, *args: Any, **kwargs: Any) -> bool:
    check = values_checked(name)
    assert check is not None
    flag = call(Lowering(name, check, frozenset(), (), frozenset(), False, False), overload(name), args, kwargs)
    assert flag.shape == () and flag.dtype == np.uint8
    return bool(flag)


def refused(name: str, *args: Any, **kwargs: Any) -> bool:
    try:
        overload(name)(*args, **kwargs)
    except (IndexError, RuntimeError):
        return True
    return False


def assert_agree(name: str, *args: Any, **kwargs: Any) -> bool:
    """Asserts that check and torch are of one mind, and returns it."""
    verdict = refused(name, *args, **kwargs)
    assert flagged(name, *args, **kwargs) == verdict, f"{name}{args}: torch {'refuses' if verdict else 'accepts'} it"
    return verdict


@pytest.mark.parametrize("name", BY_ELEMENT)
def test_by_element(name: str) -> None:
    verdicts = [assert_agree(name, TABLE, dim, torch.tensor([[i]]), *BY_ELEMENT[name]) for dim in (0, -1) for i in (-1, 0, 2, 3, 4)]
    assert set(verdicts) == {True, False}


@pytest.mark.parametrize("name", BY_SLICE)
def test_by_slice(name: str) -> None:
    verdicts = [assert_agree(name, TABLE, 0, torch.tensor([i]), *BY_SLICE[name]) for i in (-4, -3, -1, 0, 2, 3)]
    assert set(verdicts) == {True, False}


def test_flat_positions_count_from_both_ends() -> None:
    for i in (-13, -12, 11, 12):
        assert assert_agree("take", TABLE, torch.tensor([0, i])) == assert_agree("put", TABLE, torch.tensor([0, i]), torch.ones(2))


@pytest.mark.parametrize("i", [-4, -3, 2, 3, 2**33])
def test_index_and_index_put(i: int) -> None:
    assert_agree("index.Tensor", TABLE, [torch.tensor([0, i])])
    assert_agree("index.Tensor", TABLE, [None, torch.tensor([[i]])])
    assert_agree("index.Tensor", TABLE, [torch.tensor([0, 1]), torch.tensor([i, 0])])
    assert_agree("index_put", TABLE, [torch.tensor([0, i])], torch.tensor(1.0))


def test_a_mask_has_to_choose_as_many_as_there_are_values() -> None:
    rows = torch.tensor([True, False, True])
    verdicts = [
        assert_agree("index_put", TABLE, [rows], values)
        for values in (torch.ones(2, 4), torch.ones(3, 4), torch.ones(4), torch.tensor(1.0), torch.ones(1, 1))
    ]
    verdicts += [assert_agree("index_put", TABLE, [TABLE > 5], torch.ones(n)) for n in (1, 5, 6, 7)]
    verdicts += [assert_agree("index_put", TABLE, [None, TABLE[0] > 1], torch.ones(3, n)) for n in (1, 2, 3)]
    assert set(verdicts) == {True, False}


@pytest.mark.parametrize("i", [-1, 0, 2, 3])
def test_embedding_and_classes(i: int) -> None:
    target = torch.tensor([0, i])
    assert_agree("embedding", TABLE, target)
    assert_agree("nll_loss_forward", torch.ones(2, 3), target, None, 1, -100)
    assert_agree("nll_loss_forward", torch.ones(2, 3), target, None, 1, i)
    assert_agree("nll_loss2d_forward", torch.ones(1, 3, 2, 1), target.reshape(1, 2, 1), None, 1, -100)
    assert_agree("multi_margin_loss", torch.ones(2, 3), target)


def test_narrow_index_dtypes_and_empty_indices() -> None:
    for dtype in (torch.int32, torch.int64):
        assert not assert_agree("index_select", TABLE, 1, torch.tensor([3], dtype=dtype))
        assert assert_agree("index_select", TABLE, 1, torch.tensor([4], dtype=dtype))
        assert not assert_agree("index_select", TABLE, 1, torch.tensor([], dtype=dtype))
    with jax.enable_x64(True):
        assert not values_checked("index.Tensor")(jax.numpy.ones(300), [jax.numpy.asarray(np.array([200], np.uint8))])  # type: ignore[misc]


def test_every_check_belongs_to_a_lowering() -> None:
    assert CHECKS.keys() <= all_lowerings().keys()
    assert values_checked("add.Tensor") is None
