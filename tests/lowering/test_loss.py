"""Loss lowerings against torch on the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lowering.replay import Replay, assert_opinfo

aten = torch.ops.aten
REDUCTIONS = ["none", "mean", "sum"]


OPINFO: list[tuple[str, set[str], int]] = [
    ("nn.functional.mse_loss", {"mse_loss", "mse_loss_backward"}, 4),
    ("nn.functional.smooth_l1_loss", {"smooth_l1_loss", "smooth_l1_loss_backward"}, 4),
    ("nn.functional.huber_loss", {"huber_loss", "huber_loss_backward"}, 4),
    ("nn.functional.binary_cross_entropy", {"binary_cross_entropy", "binary_cross_entropy_backward"}, 4),
    ("nn.functional.binary_cross_entropy_with_logits", {"binary_cross_entropy_with_logits"}, 4),
    ("nn.functional.soft_margin_loss", {"soft_margin_loss", "soft_margin_loss_backward"}, 5),
    ("nn.functional.nll_loss", {"nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward"}, 24),
    ("nn.functional.cross_entropy", {"nll_loss_forward", "nll_loss_backward"}, 5),
    ("nn.functional.multi_margin_loss", {"multi_margin_loss", "multi_margin_loss_backward"}, 4),
    ("nn.functional.multilabel_margin_loss", {"multilabel_margin_loss_forward", "multilabel_margin_loss_backward"}, 4),
]
NO_BFLOAT16 = {"nn.functional.multi_margin_loss", "nn.functional.multilabel_margin_loss"}


@pytest.mark.parametrize(("name", "overloads", "limit"), OPINFO, ids=[name.rsplit(".", 1)[-1] for name, _, _ in OPINFO])
def test_opinfo(name: str, overloads: set[str], limit: int) -> None:
    assert set(assert_opinfo(name, (torch.float32,), overloads, limit=limit, rtol=1e-5, atol=1e-5)) == overloads
    if name not in NO_BFLOAT16:
        assert assert_opinfo(name, (torch.bfloat16,), overloads, limit=2, rtol=1.6e-2, atol=1e-2)


def replay_backward(overloads: set[str], function: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    """Forward and backward with an uneven gradient; both overloads have to be checked."""
    x = x.requires_grad_()
    with Replay(overloads, rtol=1e-5, atol=1e-5) as watching:
        out = function(x, *args, **kwargs)
        out.backward(torch.rand(out.shape, dtype=out.dtype))
    assert watching.checked == dict.fromkeys(overloads, 1)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_loss_with_weights_and_ignored_targets(reduction: str) -> None:
    target = torch.tensor([1, -1, 0, 3, -1])
    scores = torch.randn(5, 4)
    scores[1] = -float("inf")
    how = {"weight": torch.tensor([0.5, 2.0, 1.0, 0.0]), "ignore_index": -1, "reduction": reduction}
    replay_backward({"nll_loss_forward", "nll_loss_backward"}, F.nll_loss, scores, target, **how)
    plane = torch.randint(0, 4, (2, 3, 5))
    replay_backward({"nll_loss2d_forward", "nll_loss2d_backward"}, F.nll_loss, torch.randn(2, 4, 3, 5), plane, **how)
    replay_backward({"nll_loss_forward", "nll_loss_backward"}, F.nll_loss, torch.randn(4), torch.tensor(2), **how)


def test_nll_loss_with_nothing_to_count_is_nan() -> None:
    replay_backward({"nll_loss_forward", "nll_loss_backward"}, F.nll_loss, torch.randn(2, 3), torch.tensor([-100, -100]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_probabilities_at_the_border(reduction: str) -> None:
    p = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.3])
    y = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.6])
    replay_backward({"binary_cross_entropy", "binary_cross_entropy_backward"}, F.binary_cross_entropy, p, y, reduction=reduction)


def test_bce_with_logits_far_from_zero() -> None:
    x = torch.tensor([-200.0, -50.0, 0.0, 50.0, 200.0])
    with Replay({"binary_cross_entropy_with_logits"}) as watching:
        F.binary_cross_entropy_with_logits(x, torch.rand(5), weight=torch.rand(5), pos_weight=torch.rand(5), reduction="none")
    assert watching.checked == {"binary_cross_entropy_with_logits": 1}


def test_losses_at_the_joint_of_their_pieces() -> None:
    x, y = torch.tensor([-1.0, 1.0, 0.0, 2.5]), torch.zeros(4)
    replay_backward({"huber_loss", "huber_loss_backward"}, F.huber_loss, x.clone(), y, delta=1.0)
    replay_backward({"smooth_l1_loss", "smooth_l1_loss_backward"}, F.smooth_l1_loss, x.clone(), y, beta=1.0)


@pytest.mark.parametrize(("reduction", "p"), itertools.product(REDUCTIONS, [1, 2]))
def test_multi_margin_loss(reduction: str, p: int) -> None:
    how = {"p": p, "margin": 0.7, "weight": torch.rand(5), "reduction": reduction}
    replay_backward({"multi_margin_loss", "multi_margin_loss_backward"}, F.multi_margin_loss, torch.randn(6, 5), torch.randint(0, 5, (6,)), **how)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin_loss_lists(reduction: str) -> None:
    target = torch.tensor([[3, 0, -1, 1], [2, 2, 1, -1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    pair = {"multilabel_margin_loss_forward", "multilabel_margin_loss_backward"}
    replay_backward(pair, F.multilabel_margin_loss, torch.randn(4, 4), target, reduction=reduction)


def ctc_forward_and_backward(log_probs: torch.Tensor, targets: torch.Tensor, lengths: tuple[list[int], list[int]], **how: Any) -> None:
    """log_alpha is compared where torch defines it: within a sequence's length and its own states."""
    from tests.lowering.replay import call, compare, to_tensor
    from tpu_lab.lowering.registry import find

    forward, backward = find("_ctc_loss"), find("_ctc_loss_backward")
    assert forward is not None and backward is not None
    args = (log_probs, targets, *lengths, how.get("blank", 0), how.get("zero_infinity", False))
    loss, log_alpha = aten._ctc_loss(*args)
    actual_loss, actual_alpha = call(forward, aten._ctc_loss.default, args, {})
    compare(actual_loss, loss, "_ctc_loss", 1e-5, 1e-5)
    got = to_tensor(actual_alpha, log_alpha.dtype)
    assert got.shape == log_alpha.shape
    for n, (time, label) in enumerate(zip(*lengths, strict=True)):
        torch.testing.assert_close(got[n, :time, : 2 * label + 1], log_alpha[n, :time, : 2 * label + 1], rtol=1e-5, atol=1e-5)
    grad = torch.rand(loss.shape)
    back = (grad, log_probs, targets, *lengths, loss, log_alpha, *args[4:])
    expected = aten._ctc_loss_backward(*back)
    clean = (grad, log_probs, targets, *lengths, loss, got, *args[4:])
    compare(call(backward, aten._ctc_loss_backward.default, clean, {}), expected, "_ctc_loss_backward", 1e-4, 1e-5)


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_loss(blank: int) -> None:
    log_probs = torch.randn(9, 4, 5).log_softmax(-1)
    targets = torch.tensor([[1, 1, 3], [4, 3, 0], [3, 0, 0], [4, 3, 4]])
    ctc_forward_and_backward(log_probs, targets + (targets == blank).long(), ([9, 7, 4, 9], [3, 2, 1, 3]), blank=blank)


def test_ctc_loss_of_concatenated_targets_and_empty_ones() -> None:
    log_probs = torch.randn(6, 3, 4).log_softmax(-1)
    ctc_forward_and_backward(log_probs, torch.tensor([1, 2, 2, 3]), ([6, 5, 4], [3, 0, 1]))


def test_ctc_loss_without_any_alignment() -> None:
    """Five labels do not fit into three steps: an infinite loss, and no gradient with zero_infinity."""
    log_probs = torch.randn(5, 2, 4).log_softmax(-1)
    ctc_forward_and_backward(log_probs, torch.tensor([[1, 2, 1, 2, 1], [1, 2, 3, 0, 0]]), ([3, 5], [5, 3]), zero_infinity=True)
