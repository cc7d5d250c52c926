"""A perceptron with two hidden layers and batch norm."""

from __future__ import annotations

import torch
from torch import nn

from . import Made, class_loss, random_classes


def make(seed: int, batch: int = 8, features: int = 20, hidden: int = 32, classes: int = 5) -> Made:
    """Input float32 [batch, features], output [batch, classes]."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    module = nn.Sequential(
        nn.Linear(features, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.Tanh(),
        nn.Linear(hidden, classes),
    )
    return module, (torch.randn(batch, features, generator=generator),), class_loss(random_classes((batch,), classes, generator))
