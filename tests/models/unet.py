"""One level of a diffusion UNet: residual blocks with a time embedding, attention, down- and upsampling, a skip connection."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from . import Made, square_loss


def time_embedding(t: Tensor, d: int) -> Tensor:
    """Sines and cosines of t at d/2 frequencies: float32 [batch] to [batch, d]."""
    rates = torch.exp(torch.arange(d // 2, device=t.device, dtype=torch.float32) * (-math.log(10_000) / (d // 2)))
    angles = t.float()[:, None] * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Residual(nn.Module):
    def __init__(self, channels_in: int, channels: int, d_time: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(4, channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.time = nn.Linear(d_time, channels)
        self.norm2 = nn.GroupNorm(4, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.skip = nn.Conv2d(channels_in, channels, 1) if channels_in != channels else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(nn.functional.silu(self.norm1(x)))
        y = y + self.time(nn.functional.silu(time))[:, :, None, None]
        y = self.conv2(nn.functional.silu(self.norm2(y)))
        return self.skip(x) + y


class PixelAttention(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x).flatten(2)).mT.chunk(3, dim=-1)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.out(mixed.mT).view_as(x)


class UNet(nn.Module):
    """Inputs float32 images [batch, channels, side, side] and int64 steps [batch]; the output has the image's shape."""

    def __init__(self, channels: int, width: int, d_time: int) -> None:
        super().__init__()
        self.d_time = d_time
        self.time = nn.Sequential(nn.Linear(d_time, d_time), nn.SiLU(), nn.Linear(d_time, d_time))
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.down = Residual(width, width, d_time)
        self.shrink = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = Residual(2 * width, 2 * width, d_time)
        self.attention = PixelAttention(2 * width)
        self.grow = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.up = Residual(2 * width, width, d_time)
        self.last = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        time = self.time(time_embedding(t, self.d_time))
        skip = self.down(self.first(x), time)
        y = self.attention(self.middle(self.shrink(skip), time))
        y = self.grow(y) + nn.functional.interpolate(nn.functional.avg_pool2d(skip, 2), scale_factor=2, mode="nearest")
        return self.last(self.up(torch.cat([y, skip], dim=1), time))


def make(seed: int, batch: int = 2, channels: int = 3, side: int = 8, width: int = 8, d_time: int = 16) -> Made:
    """The loss is the one of denoising: the output against fixed noise."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, channels, side, side, generator=generator)
    steps = torch.randint(1000, (batch,), generator=generator)
    noise = torch.randn(batch, channels, side, side, generator=generator)
    return UNet(channels, width, d_time), (images, steps), square_loss(noise)
