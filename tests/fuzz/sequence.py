"""Runs a sequence of steps on both devices side by side and compares after each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

import tpu_lab  # noqa: F401  registers the device

from .steps import STEPS, Step

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (3,), (), (3, 3), (0, 3), (1, 3))
POOL = 6


class Difference(AssertionError):
    """The device's result, or its exception, is not the CPU's."""


def start(device: str) -> list[torch.Tensor]:
    """The tensors a sequence begins with."""
    made = [(torch.arange(max(torch.Size(s).numel(), 0)).reshape(s) - 3) for s in SHAPES]
    kinds = (torch.float32, torch.int64, torch.float32, torch.bool, torch.float32, torch.uint8)
    return [t.clone().to(kind).to(device) for t, kind in zip(made, kinds, strict=True)]


def run(steps: Sequence[Step]) -> int:
    """Runs the steps; returns how many neither device refused. Raises Difference."""
    pools = {device: start(device) for device in ("cpu", "tpu")}
    done = 0
    for number, step in enumerate(steps):
        results: dict[str, torch.Tensor | Exception] = {device: _apply(step, pool) for device, pool in pools.items()}
        expected, actual = results["cpu"], results["tpu"]
        where = f"step {number} {tuple(step)}"
        if isinstance(expected, Exception) or isinstance(actual, Exception):
            if not (isinstance(expected, Exception) and isinstance(actual, Exception)):
                raise Difference(f"{where}: the CPU gives {_short(expected)}, the device {_short(actual)}")
            if any(left.shape != right.shape or not _same(left, right) for left, right in zip(pools["tpu"], pools["cpu"], strict=True)):
                # a refused write may have begun: the CPU checks values one by one, the device all of them first
                pools = {"cpu": pools["cpu"], "tpu": [t.to("tpu", copy=True) for t in pools["cpu"]]}
                pools["cpu"] = [t.clone() for t in pools["cpu"]]
            continue
        done += 1
        for device, result in (("cpu", expected), ("tpu", actual)):
            if all(result is not t for t in pools[device]):
                pools[device] = [*pools[device][-(POOL - 1) :], result]
        for place, (left, right) in enumerate(zip(pools["tpu"], pools["cpu"], strict=True)):
            if left.dtype != right.dtype or left.shape != right.shape:
                raise Difference(f"{where}: tensor {place} is {_short(left)}, on the CPU {_short(right)}")
            if not _same(left, right):
                raise Difference(f"{where}: tensor {place} is {left.cpu().tolist()}, on the CPU {right.tolist()}")
    return done


def _apply(step: Step, pool: list[torch.Tensor]) -> torch.Tensor | Exception:
    x, y = pool[step.first % len(pool)], pool[step.second % len(pool)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: torch.Tensor = STEPS[step.name](x, y, step.i, step.j, step.k)
        torch.tpu.synchronize()
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return error
    return result.detach()


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.cpu().nan_to_num(-9.5), right.nan_to_num(-9.5)) if right.is_floating_point() else torch.equal(left.cpu(), right)


def _short(value: torch.Tensor | Exception) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__} ({' '.join(str(value).split())[:120]})"
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} of strides {value.stride()}"
