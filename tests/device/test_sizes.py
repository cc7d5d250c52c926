"""The smallest tensors: without elements, without dimensions."""

from __future__ import annotations

from typing import Any

import torch

from .against_cpu import assert_agree, assert_error, geometry


def test_tensors_without_elements() -> None:
    def compute(device: str) -> Any:
        a, b = torch.zeros(0, 3, device=device), torch.zeros(3, 0, device=device)
        return [
            [a + 1, b @ a, a @ torch.ones(3, 2, device=device), torch.cat([a, torch.ones(2, 3, device=device)]), torch.stack([b, b]), a.t()],
            [a.reshape(-1), a.clone(), a.expand(2, 0, 3), a.softmax(1), a.unique(), a.nonzero(), a[a > 0], a.to(torch.int64), a.flip(0)],
            [
                a.add_(1),
                a.fill_(1),
                a.zero_(),
                a.copy_(torch.ones(0, 3)),
                torch.add(a, 1, out=torch.empty(0, device=device)),
                a.masked_fill(a > 0, 2),
            ],
            [a.tolist(), a.numel(), geometry(a), geometry(b.t()), a.cpu().numpy().shape, torch.empty(0, device=device).view(torch.int32)],
            [
                torch.arange(0, device=device),
                torch.randn(0, 2, device=device),
                torch.tensor([], device=device),
                torch.zeros(2, 0, 3, device=device)[1],
            ],
        ]

    assert_agree(compute)


def test_gradients_of_nothing() -> None:
    def differentiate(device: str) -> Any:
        x = torch.zeros(0, 3, device=device, requires_grad=True)
        w = torch.ones(3, 2, device=device, requires_grad=True)
        (x @ w).sum().backward()
        return x.grad, w.grad

    assert_agree(differentiate)


def test_tensors_without_dimensions() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor(2.5, device=device)
        zero = torch.tensor(0, device=device)
        return [
            [
                a + 1,
                a.sum(),
                a.mean(),
                a.prod(),
                a.max(),
                a.argmax(),
                a.sort(),
                a.topk(1),
                a.softmax(0),
                a.cumsum(0),
                a.any(),
                a.unique(),
                a.nonzero(),
            ],
            [a.view(1), a.expand(3), a.unsqueeze(0), a.reshape(1, 1), a[None], a[...], a.t(), a.flatten(), a.squeeze(), a.view(torch.int32)],
            [torch.stack([a, a]), a.index_select(0, zero[None]), a.gather(0, zero), a.add_(1), a.copy_(torch.tensor(7)), a**2, 2**a, a == 7],
            [
                a.item(),
                a.tolist(),
                float(a),
                int(a),
                bool(a),
                len(a.shape),
                f"{a:.2f}",
                geometry(a),
                torch.add(a, 1, out=torch.empty((), device=device)),
            ],
        ]

    assert_agree(compute)


def test_0_dim_tensors_as_python_indices() -> None:
    def index(device: str) -> Any:
        a = torch.arange(5, device=device)
        return [10, 20, 30][a[1]], range(5)[a[2]], a[torch.tensor(3, device=device)], f"{a[1]:d}", hex(a[3]), list(range(a[4]))

    assert_agree(index)


def test_what_needs_one_element_or_a_dimension_is_refused() -> None:
    assert_error(lambda device: torch.zeros(2, device=device).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar")
    assert_error(lambda device: bool(torch.zeros(2, device=device)), RuntimeError, "ambiguous")
    assert_error(lambda device: torch.tensor(2.5, device=device)[0], IndexError, "invalid index of a 0-dim tensor")
    assert_error(lambda device: len(torch.tensor(2.5, device=device)), TypeError)
    assert_error(lambda device: torch.zeros(2, 2, device=device).sum(5), IndexError, "Dimension out of range")
