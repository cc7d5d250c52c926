"""ResNet-18 for small images (a 3×3 stem; He et al. 2015, table 1, the 18-layer column)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from . import Made, class_loss, random_classes


class Block(nn.Module):
    """Two 3×3 convolutions and a shortcut: a 1×1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        same = stride == 1 and channels_in == channels
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(self.conv1(x)).relu_()
        y = self.norm2(self.conv2(y))
        return (y + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    """Input float32 [batch, 3, side, side], output logits [batch, classes]."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        blocks: list[nn.Module] = []
        for stage, (before, after) in enumerate(pairwise(widths)):
            blocks += [Block(before, after, stride=1 if stage == 0 else 2), Block(after, after, stride=1)]
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


def make(seed: int, batch: int = 2, side: int = 32, width: int = 8, classes: int = 10) -> Made:
    """`width` is 64 in the paper."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, 3, side, side, generator=generator)
    return ResNet18(width, classes), (images,), class_loss(random_classes((batch,), classes, generator))
