"""A tiny GPT-2: causal attention, learned positions, tanh GELU, output tied to the embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import Made, class_loss


class Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        batch, n, d = x.shape
        q, k, v = (part.view(batch, n, self.heads, d // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(d, dim=2))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, n, d))
        return x + self.mlp(self.norm2(x))


class GPT2(nn.Module):
    """Input int64 tokens [batch, n], output logits [batch, n, vocab]."""

    def __init__(self, layers: int, d: int, heads: int, n: int, vocab: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, d)
        self.positions = nn.Embedding(n, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make(seed: int, batch: int = 2, layers: int = 2, d: int = 32, heads: int = 4, n: int = 16, vocab: int = 64) -> Made:
    """Tokens and targets are one random text, shifted by one. The benchmark's size is layers=4, d=256, n=128, batch=4, vocab=4096."""
    torch.manual_seed(seed)
    text = torch.randint(vocab, (batch, n + 1), generator=torch.Generator().manual_seed(seed))
    return GPT2(layers, d, heads, n, vocab), (text[:, :-1],), class_loss(text[:, 1:])
