"""Interpolation: nearest, linear and cubic resizing in one to three dimensions, antialiased resizing, with all gradients.

Each is a `Resampling` per dimension; this file holds PyTorch's coordinate rules (`ATen/native/UpSample.h`). Source coordinates
are computed in the dtype PyTorch computes them in, because a rounding there picks another element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from .promotion import is_integral
from .registry import lowering
from .resample import Resampling, resample, resample_transposed

Numbers = npt.NDArray[Any]
Real = np.float32 | np.float64
Scales = Sequence[float | None]
Rule = Callable[[int, int, float | None], Resampling]
"""(input length, output length, scale given by the caller) to the table."""


def _nearest(size: int, out: int, scale: float | None, exact: bool) -> Resampling:
    """`nearest` takes floor(i * size / out), `nearest-exact` floor((i + 0.5) * size / out), both in float32."""
    ratio = np.float32(1.0 / scale) if scale is not None and scale > 0 else np.float32(size) / np.float32(out)
    i = np.arange(out, dtype=np.float32)
    if exact:
        index = np.floor((i + np.float32(0.5)) * ratio).astype(np.int64)
    elif out == size:
        index = np.arange(out)
    elif out == 2 * size:
        index = np.arange(out) // 2
    else:
        index = np.floor(i * ratio).astype(np.int64)
    return Resampling(size, np.minimum(index, size - 1)[:, None], np.ones((out, 1)))


def _ratio(size: int, out: int, align_corners: bool, scale: float | None, real: type[Real]) -> Real:
    """How far apart the sources of neighbouring outputs are."""
    if align_corners:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / scale) if scale is not None and scale > 0 else real(size) / real(out)


def _source(size: int, out: int, align_corners: bool, scale: float | None, real: type[Real]) -> Numbers:
    ratio = _ratio(size, out, align_corners, scale, real)
    i: Numbers = np.arange(out).astype(real)
    source: Numbers = ratio * i if align_corners else ratio * (i + real(0.5)) - real(0.5)
    return source


def _floor_and_rest(source: Numbers, size: int) -> tuple[Numbers, Numbers]:
    index = np.minimum(np.floor(source).astype(np.int64), size - 1)
    return index, np.clip(source - index.astype(source.dtype), 0, 1)


def _linear(size: int, out: int, scale: float | None, align_corners: bool, real: type[Real]) -> Resampling:
    if size == out:
        return Resampling(size, np.arange(out)[:, None], np.ones((out, 1)))
    low, rest = _floor_and_rest(np.maximum(_source(size, out, align_corners, scale, real), real(0)), size)
    high = np.minimum(low + 1, size - 1)
    return Resampling(size, np.stack([low, high], 1), np.stack([real(1) - rest, rest], 1))


def _keys_cubic(distance: Numbers, a: float) -> Numbers:
    """Keys' cubic convolution kernel ("Cubic convolution interpolation for digital image processing", 1981, eq. 15)."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _cubic(size: int, out: int, scale: float | None, align_corners: bool, real: type[Real]) -> Resampling:
    low, rest = _floor_and_rest(_source(size, out, align_corners, scale, real), size)
    offset = np.arange(-1, 3)
    index = np.clip(low[:, None] + offset, 0, size - 1)
    return Resampling(size, index, _keys_cubic(rest[:, None].astype(np.float64) - offset, -0.75))


def _triangle(x: Numbers) -> Numbers:
    y: Numbers = np.maximum(1.0 - np.abs(x), 0.0)
    return y


def _lanczos3(x: Numbers) -> Numbers:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0)


_ANTIALIAS: dict[str, tuple[float, Callable[[Numbers], Numbers]]] = {
    "linear": (1.0, _triangle),
    "cubic": (2.0, lambda x: _keys_cubic(x, -0.5)),
    "lanczos": (3.0, _lanczos3),
}
"""Half width and shape of the antialiasing filters, as in Pillow."""


def _antialiased(size: int, out: int, scale: float | None, align_corners: bool, kind: str, real: type[Real]) -> Resampling:
    """The filter, stretched by the ratio when shrinking, centred on each output and normalised over the elements inside the input."""
    half, shape = _ANTIALIAS[kind]
    ratio = _ratio(size, out, align_corners, scale, real)
    stretch = max(ratio, real(1))
    support = real(half) * stretch
    i: Numbers = np.arange(out).astype(real)
    center: Numbers = ratio * (i + real(0.5))
    first = np.maximum(np.trunc((center - support).astype(np.float64) + 0.5).astype(np.int64), 0)
    stop = np.minimum(np.trunc((center + support).astype(np.float64) + 0.5).astype(np.int64), size)
    length = np.clip(stop - first, 0, 2 * math.ceil(support) + 1)
    position = first[:, None] + np.arange(max(int(length.max(initial=1)), 1))
    weights = shape(((position - center[:, None] + 0.5) / stretch).astype(np.float64))
    weights = np.where(position < (first + length)[:, None], weights, 0.0)
    total = weights.sum(1, keepdims=True)
    return Resampling(size, np.minimum(position, size - 1), weights / np.where(total == 0, 1.0, total))


def _real(dtype: np.dtype) -> type[Real]:
    return np.float64 if dtype == np.float64 else np.float32


def _forward(x: Array, output_size: Sequence[int], scales: Scales, rule: Rule) -> Array:
    rank = len(output_size)
    tables = [rule(n, m, s) for n, m, s in zip(x.shape[x.ndim - rank :], output_size, scales, strict=True)]
    if is_integral(x.dtype) and any((t.weights != 1).any() for t in tables):
        info = np.iinfo(x.dtype)
        return jnp.clip(jnp.round(resample(x.astype(jnp.float32), tables)), info.min, info.max).astype(x.dtype)
    return resample(x, tables)


def _backward(grad: Array, output_size: Sequence[int], input_size: Sequence[int], scales: Scales, rule: Rule) -> Array:
    sizes = input_size[len(input_size) - len(output_size) :]
    return resample_transposed(grad, [rule(n, m, s) for n, m, s in zip(sizes, output_size, scales, strict=True)])


_SCALES = ("scales", "scales_d", "scales_h", "scales_w")
"""What the schemas call the scale factors; they decide which elements are read, so they are part of the program."""


@lowering("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", static=_SCALES)
def upsample_nearest(self: Array, output_size: Sequence[int], *scales: float | None) -> Array:
    """self [N, C, *spatial]. A scale given for a dimension takes the place of the ratio of its lengths."""
    return _forward(self, output_size, scales, functools.partial(_nearest, exact=False))


@lowering("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", static=_SCALES)
def upsample_nearest_exact(self: Array, output_size: Sequence[int], *scales: float | None) -> Array:
    return _forward(self, output_size, scales, functools.partial(_nearest, exact=True))


@lowering("upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward", static=_SCALES)
def upsample_nearest_backward(grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], *scales: float | None) -> Array:
    return _backward(grad_output, output_size, input_size, scales, functools.partial(_nearest, exact=False))


@lowering(
    "_upsample_nearest_exact1d_backward",
    "_upsample_nearest_exact2d_backward",
    "_upsample_nearest_exact3d_backward",
    static=_SCALES,
)
def upsample_nearest_exact_backward(grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], *scales: float | None) -> Array:
    return _backward(grad_output, output_size, input_size, scales, functools.partial(_nearest, exact=True))


def _linear_rule(x: Array, align_corners: bool) -> Rule:
    return functools.partial(_linear, align_corners=align_corners, real=_real(x.dtype))


def _cubic_rule(x: Array, align_corners: bool) -> Rule:
    return functools.partial(_cubic, align_corners=align_corners, real=_real(x.dtype))


def _antialiased_rule(x: Array, align_corners: bool, kind: str) -> Rule:
    return functools.partial(_antialiased, align_corners=align_corners, kind=kind, real=_real(x.dtype))


@lowering("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", static=_SCALES)
def upsample_linear(self: Array, output_size: Sequence[int], align_corners: bool, *scales: float | None) -> Array:
    return _forward(self, output_size, scales, _linear_rule(self, align_corners))


@lowering("upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward", static=_SCALES)
def upsample_linear_backward(
    grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Array:
    return _backward(grad_output, output_size, input_size, scales, _linear_rule(grad_output, align_corners))


@lowering("upsample_bicubic2d", static=_SCALES)
def upsample_bicubic2d(self: Array, output_size: Sequence[int], align_corners: bool, *scales: float | None) -> Array:
    return _forward(self, output_size, scales, _cubic_rule(self, align_corners))


@lowering("upsample_bicubic2d_backward", static=_SCALES)
def upsample_bicubic2d_backward(
    grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Array:
    return _backward(grad_output, output_size, input_size, scales, _cubic_rule(grad_output, align_corners))


def _register_antialiased(name: str, kind: str) -> None:
    @lowering(name, static=_SCALES)
    def forward(self: Array, output_size: Sequence[int], align_corners: bool, *scales: float | None) -> Array:
        return _forward(self, output_size, scales, _antialiased_rule(self, align_corners, kind))

    @lowering(f"{name}_backward", static=_SCALES)
    def backward(grad_output: Array, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool, *scales: float | None) -> Array:
        return _backward(grad_output, output_size, input_size, scales, _antialiased_rule(grad_output, align_corners, kind))


for _name, _kind in (("bilinear", "linear"), ("bicubic", "cubic"), ("lanczos", "lanczos")):
    _register_antialiased(f"_upsample_{_name}2d_aa", _kind)
