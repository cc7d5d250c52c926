"""Small classes of the model families people move to TPU: plain torch, no weights from outside.

Each file has `make(seed, …) -> (module, inputs, loss)`: a module on the CPU, a tuple of CPU tensors to call it with, and a function
from the module's output (on any device) to a scalar loss. The same seed gives the same three.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...], Callable[[Tensor], Tensor]]


def class_loss(targets: Tensor) -> Callable[[Tensor], Tensor]:
    """Cross entropy of logits [..., classes] against int64 targets [...]."""

    def loss(logits: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.flatten(0, -2), targets.to(logits.device).flatten())

    return loss


def square_loss(target: Tensor) -> Callable[[Tensor], Tensor]:
    """Mean squared difference to a tensor of the output's shape."""

    def loss(output: Tensor) -> Tensor:
        return nn.functional.mse_loss(output, target.to(output.device))

    return loss


def random_classes(shape: tuple[int, ...], classes: int, generator: torch.Generator) -> Tensor:
    return torch.randint(classes, shape, generator=generator)
