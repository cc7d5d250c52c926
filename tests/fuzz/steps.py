"""The steps a random sequence is made of. Each takes tensors of a pool and small whole numbers, and gives a new tensor or writes to one.

Values are small whole numbers, also in floating tensors, so that results are exact on both devices and no comparison hangs on
rounding. Functions that leave the whole numbers are rounded to a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float64, torch.int32, torch.bfloat16, torch.uint8)
LIMIT = 40
"""Values are wrapped into (-LIMIT, LIMIT) where they grow, so that every dtype holds them."""


class Step(NamedTuple):
    """One step: an operator of `STEPS`, two tensors of the pool (counted modulo its size) and three numbers."""

    name: str
    first: int
    second: int
    i: int
    j: int
    k: int


Function = Callable[[torch.Tensor, torch.Tensor, int, int, int], Any]


def _dim(x: torch.Tensor, i: int) -> int:
    return i % x.ndim if x.ndim else 0


def _slice(x: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    dim = _dim(x, i)
    return x[(*[slice(None)] * dim, slice(abs(j), None, 1 + abs(k)))]


def _indices(x: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    size = x.shape[_dim(x, i)] if x.ndim else 1
    return torch.tensor([j % max(size, 1), k % max(size, 1)], device=x.device)


def _converted(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`x.to(dtype)`; NaN and infinities, which C++ does not define as whole numbers, become 0 first."""
    whole = not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
    return (x.nan_to_num(0, 0, 0) if whole and x.is_floating_point() else x).to(dtype)


def _small(x: torch.Tensor) -> torch.Tensor:
    return x.remainder(LIMIT) if x.dtype != torch.bool else x


def _rounded(x: torch.Tensor) -> torch.Tensor:
    return (x * 8).round()


def _gradient(x: torch.Tensor, other: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    """The gradient through a view, a write into it, and a broadcast product."""
    leaf = x.detach().to(torch.float64).requires_grad_()
    y = leaf * 2
    part = _VIEWS[i % len(_VIEWS)](y, y, i, j, k)
    part.mul_(3)
    if j % 2:
        y[..., :1] = y[..., :1] * k
    z = (y * y).sum() + (part * part.detach()).sum()
    z.backward()
    assert leaf.grad is not None
    return leaf.grad


_VIEWS: tuple[Function, ...] = (
    lambda x, y, i, j, k: x.transpose(_dim(x, i), _dim(x, j)),
    _slice,
    lambda x, y, i, j, k: x.select(_dim(x, i), j),
    lambda x, y, i, j, k: x.unsqueeze(i),
    lambda x, y, i, j, k: x.narrow(_dim(x, i), abs(j), abs(k)),
    lambda x, y, i, j, k: x.view(-1),
    lambda x, y, i, j, k: x.diagonal(i),
    lambda x, y, i, j, k: x.unfold(_dim(x, i), 1 + abs(j) % 3, 1 + abs(k) % 2),
    lambda x, y, i, j, k: x.flatten(),
    lambda x, y, i, j, k: x[None, ..., None].squeeze(0),
    lambda x, y, i, j, k: x.movedim(0, -1),
)


def _write_slice(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    _slice(x, i, j, k).copy_(y)
    return x


def _write_indexed(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    x = x.clone() if 0 in x.stride() else x
    x[_indices(x, 0, j, k)] = k
    return x


def _accumulate(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    index = _indices(x, 0, j, j)
    x = x.clone() if 0 in x.stride() else x  # the CPU still takes expanded tensors here, with a warning
    return x.index_put_((index,), torch.full((), k, dtype=x.dtype, device=x.device), accumulate=True)


def _masked_fill(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    x = x.clone() if 0 in x.stride() else x
    return x.masked_fill_(x > j, k)


def _mask_write(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
    x = x.clone() if 0 in x.stride() else x
    x[x > j] = k
    return x


def _out(function: Callable[..., torch.Tensor]) -> Function:
    def step(x: torch.Tensor, y: torch.Tensor, i: int, j: int, k: int) -> torch.Tensor:
        target = torch.full((4, 3), 7, dtype=DTYPES[i % len(DTYPES)], device=x.device)
        out = (target, target[:, :2], target.t(), target[::2, 0], target[0, 0])[j % 5]
        function(x, y, out=out)
        return target

    return step


STEPS: dict[str, Function] = {
    **{f"view{n}": view for n, view in enumerate(_VIEWS)},
    "expand": lambda x, y, i, j, k: x.expand(1 + abs(i), *x.shape),
    "contiguous": lambda x, y, i, j, k: x.contiguous(),
    "clone": lambda x, y, i, j, k: x.clone(),
    "to": lambda x, y, i, j, k: _converted(x, DTYPES[i % len(DTYPES)]),
    "add": lambda x, y, i, j, k: _small(x + y),
    "add number": lambda x, y, i, j, k: _small(x + k),
    "add half": lambda x, y, i, j, k: x + k / 2,
    "sub": lambda x, y, i, j, k: x - y,
    "mul": lambda x, y, i, j, k: _small(x * y),
    "floor_divide": lambda x, y, i, j, k: x // y,
    "remainder": lambda x, y, i, j, k: x % y,
    "where": lambda x, y, i, j, k: torch.where(x > k, x, y),
    "maximum": lambda x, y, i, j, k: torch.maximum(x, y),
    "compare": lambda x, y, i, j, k: x <= y,
    "and": lambda x, y, i, j, k: x & y,
    "abs": lambda x, y, i, j, k: x.abs(),
    "neg": lambda x, y, i, j, k: -x,
    "clamp": lambda x, y, i, j, k: x.clamp(min(i, j), max(i, j)),
    "sin": lambda x, y, i, j, k: _rounded(x.sin()),
    "div": lambda x, y, i, j, k: _rounded(x / 4),
    "sum": lambda x, y, i, j, k: _small(x.sum()),
    "sum dim": lambda x, y, i, j, k: _small(x.sum(_dim(x, i), keepdim=bool(j % 2))),
    "max": lambda x, y, i, j, k: x.amax(_dim(x, i)),
    "argmax": lambda x, y, i, j, k: x.amax(_dim(x, i), keepdim=True) == x,
    "any": lambda x, y, i, j, k: x.any(_dim(x, i)),
    "cumsum": lambda x, y, i, j, k: _small(x.cumsum(_dim(x, i))),
    "prod": lambda x, y, i, j, k: _small(x.clamp(-2, 2).prod()),
    "sort": lambda x, y, i, j, k: x.sort(_dim(x, i), descending=bool(j % 2), stable=True).values,
    "matmul": lambda x, y, i, j, k: _small(x @ y),
    "cat": lambda x, y, i, j, k: torch.cat([x, y], _dim(x, i)),
    "stack": lambda x, y, i, j, k: torch.stack([x, y], i),
    "flip": lambda x, y, i, j, k: x.flip(_dim(x, i)),
    "roll": lambda x, y, i, j, k: x.roll(i, _dim(x, j)),
    "index_select": lambda x, y, i, j, k: x.index_select(_dim(x, i), _indices(x, i, j, k)),
    "index": lambda x, y, i, j, k: x[_indices(x, 0, j, k)],
    "gather": lambda x, y, i, j, k: x.gather(_dim(x, i), torch.zeros_like(x, dtype=torch.int64)),
    "masked_select": lambda x, y, i, j, k: x[x > k],
    "nonzero": lambda x, y, i, j, k: x.nonzero(),
    "take bad index": lambda x, y, i, j, k: x.take(torch.tensor([j], device=x.device)),
    "add_": lambda x, y, i, j, k: x.add_(y),
    "add_ number": lambda x, y, i, j, k: x.add_(k),
    "mul_": lambda x, y, i, j, k: x.mul_(k),
    "remainder_": lambda x, y, i, j, k: x.remainder_(LIMIT),
    "copy_": lambda x, y, i, j, k: x.copy_(y),
    "fill_": lambda x, y, i, j, k: x.fill_(k),
    "clamp_": lambda x, y, i, j, k: x.clamp_(min(i, j), max(i, j)),
    "masked_fill_": _masked_fill,
    "transpose_": lambda x, y, i, j, k: x.transpose_(_dim(x, i), _dim(x, j)),
    "resize_": lambda x, y, i, j, k: x.clone().resize_(abs(i), abs(j)).fill_(k),
    "write slice": _write_slice,
    "write indexed": _write_indexed,
    "accumulate": _accumulate,
    "write masked": _mask_write,
    "add out": _out(torch.add),
    "mul out": _out(torch.mul),
    "eq out": _out(torch.eq),
    "gradient": _gradient,
}
small = st.integers(-3, 3)
place = st.integers(0, 5)
sequences = st.lists(st.builds(Step, st.sampled_from(sorted(STEPS)), place, place, small, small, small), min_size=4, max_size=24)
