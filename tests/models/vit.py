"""A tiny vision transformer (Dosovitskiy et al. 2020), on torch's own encoder layer and multi-head attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import Made, class_loss, random_classes


class ViT(nn.Module):
    """Input float32 [batch, 3, side, side], output logits [batch, classes]."""

    def __init__(self, side: int, patch: int, d: int, heads: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, d, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, d))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).mT
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.encoder(x)[:, 0]))


def make(seed: int, batch: int = 2, side: int = 16, patch: int = 4, d: int = 32, heads: int = 4, layers: int = 2, classes: int = 10) -> Made:
    """ViT-Tiny of the literature is d=192, heads=3, layers=12, patch=16, side=224."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, 3, side, side, generator=generator)
    return ViT(side, patch, d, heads, layers, classes), (images,), class_loss(random_classes((batch,), classes, generator))
