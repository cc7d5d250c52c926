"""A tiny T5: encoder and decoder, RMS norm, relative position buckets instead of positions, no scale on the scores (Raffel et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from . import Made, class_loss


def buckets(n_query: int, n_key: int, two_sided: bool, count: int, farthest: int, device: torch.device) -> Tensor:
    """The bucket of each distance, int64 [n_query, n_key]: exact for near positions, logarithmic up to `farthest`."""
    distance = torch.arange(n_key, device=device)[None, :] - torch.arange(n_query, device=device)[:, None]
    bucket = torch.zeros_like(distance)
    if two_sided:
        count //= 2
        bucket = bucket + (distance > 0).long() * count
        distance = distance.abs()
    else:
        distance = -distance.clamp(max=0)
    exact = count // 2
    far = exact + (torch.log(distance.float().clamp(min=1) / exact) / math.log(farthest / exact) * (count - exact)).long()
    return bucket + torch.where(distance < exact, distance, far.clamp(max=count - 1))


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        q, k, v = (layer.unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.q(x), self.k(memory), self.v(memory)))
        scores = q @ k.mT
        if bias is not None:
            scores = scores + bias
        weights = nn.functional.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d: int, heads: int, cross: bool) -> None:
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(d, eps=1e-6), Attention(d, heads)
        self.norm2, self.cross = (nn.RMSNorm(d, eps=1e-6), Attention(d, heads)) if cross else (None, None)
        self.norm3 = nn.RMSNorm(d, eps=1e-6)
        self.feed = nn.Sequential(nn.Linear(d, 4 * d, bias=False), nn.ReLU(), nn.Linear(4 * d, d, bias=False))

    def forward(self, x: Tensor, bias: Tensor, memory: Tensor | None) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, bias)
        if self.cross is not None and self.norm2 is not None and memory is not None:
            x = x + self.cross(self.norm2(x), memory, None)
        return x + self.feed(self.norm3(x))


class Stack(nn.Module):
    def __init__(self, d: int, heads: int, layers: int, decoder: bool, buckets: int = 8, farthest: int = 16) -> None:
        super().__init__()
        self.decoder, self.buckets, self.farthest = decoder, buckets, farthest
        self.bias = nn.Embedding(buckets, heads)
        self.layers = nn.ModuleList(Layer(d, heads, cross=decoder) for _ in range(layers))
        self.norm = nn.RMSNorm(d, eps=1e-6)

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        n = x.shape[1]
        bias = self.bias(buckets(n, n, not self.decoder, self.buckets, self.farthest, x.device)).permute(2, 0, 1)[None]
        if self.decoder:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            bias = bias.masked_fill(future, torch.finfo(bias.dtype).min)
        for layer in self.layers:
            x = layer(x, bias, memory)
        return self.norm(x)


class T5(nn.Module):
    """Inputs int64 source [batch, n] and shifted target [batch, m], output logits [batch, m, vocab]."""

    def __init__(self, d: int, heads: int, layers: int, vocab: int) -> None:
        super().__init__()
        self.d = d
        self.tokens = nn.Embedding(vocab, d)
        self.encoder = Stack(d, heads, layers, decoder=False)
        self.decoder = Stack(d, heads, layers, decoder=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encoder(self.tokens(source))
        out = self.decoder(self.tokens(target), memory)
        return (out * self.d**-0.5) @ self.tokens.weight.T


def make(seed: int, batch: int = 2, n: int = 12, m: int = 9, d: int = 32, heads: int = 4, layers: int = 2, vocab: int = 64) -> Made:
    """Random source and target texts; token 0 starts the decoder."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(1, vocab, (batch, n), generator=generator)
    target = torch.randint(1, vocab, (batch, m), generator=generator)
    shifted = torch.cat([torch.zeros(batch, 1, dtype=torch.int64), target[:, :-1]], dim=1)
    return T5(d, heads, layers, vocab), (source, shifted), class_loss(target)
